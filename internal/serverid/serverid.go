// Package serverid identifies the server, or the cluster, that executes a statement.
//
//	server, err := serverid.Query(ctx, db)
//	db.QueryRow("SELECT " + server.Identity).Scan(&identity)
//
// A source and its replicas have different identities. The nodes of a Galera cluster share one identity, since a fail-over between
// them loses no commit. The members of a group of Group Replication also share one. A server that may lose its last commits in a
// crash has another identity after each start.
package serverid

import (
	"context"
	"database/sql"
	"strings"

	"github.com/leafsql/leafsql/internal/versions"
)

// A Server has SQL expressions about the server that executes them.
type Server struct {
	Identity string // "" if the server cannot be identified, such as TiDB and Vitess
	Hash     string // the first 16 hexadecimal digits of the SHA-256 of Identity; "" if Identity is "", except on Vitess

	// Statements is true if the server replicates the text of statements, so that a replica evaluates the expressions itself.
	Statements bool
}

// A Queryer is a connection or a pool.
type Queryer interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

// MySQL is a single MySQL server, not a member of a cluster.
var MySQL = serverOf(map[string]string{"server_uuid": "", "server_id": "", "hostname": "", "port": "", "innodb_flush_log_at_trx_commit": "", "sync_binlog": "", "log_bin": ""})

// variables names the variables that an expression may use, and the variables that decide which expression is used.
const variables = "'version', 'server_uuid', 'server_id', 'hostname', 'port', 'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'binlog_format', " +
	"'group_replication_group_name', 'wsrep_on', 'wsrep_provider'"

// Query returns the expressions that identify the servers to which q leads, or the error of the query.
func Query(ctx context.Context, q Queryer) (s Server, err error) {
	rows, err := q.QueryContext(ctx, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ("+variables+")")
	if err != nil {
		return s, err
	}
	defer rows.Close()
	values := make(map[string]string)
	for rows.Next() {
		var name string
		var value sql.NullString
		if err := rows.Scan(&name, &value); err != nil {
			return s, err
		}
		values[strings.ToLower(name)] = value.String
	}
	return serverOf(values), rows.Err()
}

func serverOf(values map[string]string) (s Server) {
	s.Identity = identity(values)
	hashed := s.Identity
	if _, known := values["server_uuid"]; known && versions.Vitess(values["version"]) {
		// A statement on a table of a keyspace without shards reads the variable on the primary tablet, but a SELECT without a table may
		// read it on any shard of the database in use. Vitess does not run statements that also read global_status,
		// so the start of a server that may lose commits is not part of its identity.
		hashed = "CONCAT('server ', @@server_uuid)"
	}
	if hashed != "" {
		s.Hash = "LEFT(SHA2(" + hashed + ", 256), 16)"
	}
	s.Statements = isOn(values["log_bin"]) && strings.EqualFold(values["binlog_format"], "STATEMENT")
	return s
}

func identity(values map[string]string) string {
	if version := values["version"]; versions.TiDB(version) || versions.Vitess(version) {
		return ""
	}
	// It uses @@global.server_id, because the thread that applies a source's events has the source's server_id in its session.
	name, status := "CONCAT(@@global.server_id, '@', @@hostname, ':', @@port)", "information_schema.GLOBAL_STATUS"
	uses := []string{"server_id", "hostname", "port", "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin"}
	if _, mysql := values["server_uuid"]; mysql {
		name, status = "@@server_uuid", "performance_schema.global_status"
	}
	value := func(variable string) string {
		return "(SELECT VARIABLE_VALUE FROM " + status + " WHERE VARIABLE_NAME = '" + variable + "')"
	}
	if isGalera(values) {
		return "CONCAT('galera ', " + value("wsrep_cluster_state_uuid") + ")"
	}
	if values["group_replication_group_name"] != "" {
		return "CONCAT('group ', @@group_replication_group_name)"
	}
	for _, used := range uses {
		if _, known := values[used]; !known {
			return ""
		}
	}
	// The expression contains no empty string, which would be NULL under sql_mode=EMPTY_STRING_IS_NULL.
	return "IF(@@global.innodb_flush_log_at_trx_commit <> 1 OR @@global.log_bin AND @@global.sync_binlog <> 1, " +
		"CONCAT('server ', " + name + ", ' started at ', UNIX_TIMESTAMP() - CAST(" + value("Uptime") + " AS SIGNED)), CONCAT('server ', " + name + "))"
}

// InCluster reports whether a server with these global variables is a node of Galera or a member of Group Replication.
func InCluster(values map[string]string) bool {
	return isGalera(values) || values["group_replication_group_name"] != ""
}

func isGalera(values map[string]string) bool {
	provider := values["wsrep_provider"]
	return isOn(values["wsrep_on"]) && provider != "" && provider != "none"
}

func isOn(value string) bool { return value == "1" || strings.EqualFold(value, "ON") }
