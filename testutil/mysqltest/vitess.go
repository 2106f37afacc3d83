//go:build unix

package mysqltest

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/internal/quote"
)

// Vitess keeps its rows in a MySQL server that Stop ends. CREATE DATABASE creates a keyspace without shards, with a database vt_NAME_0
// in MySQL.

// ShardedKeyspace names a keyspace of Vitess with two shards. ALTER VSCHEMA adds the vindexes of its tables.
const ShardedKeyspace = "sharded"

// startMySQL starts the MySQL server in which Vitess keeps its rows.
func (s *Server) startMySQL() error {
	bin, err := findInstalled("mysql-8.0")
	if err != nil {
		return err
	}
	if s.mysql, err = prepare(bin, Config{Args: append([]string{"--log-bin", "--sync-binlog=1", "--max-connections=15000"}, s.args...)}); err != nil {
		return err
	}
	return s.mysql.startOnFreePort()
}

// emptyKeyspaces are keyspaces of tests that have ended, by the server's DSN.
var emptyKeyspaces = struct {
	sync.Mutex
	of map[string][]string
}{of: map[string][]string{}}

// keyspace returns the name of an empty keyspace. Tests use it one after the other: CREATE DATABASE takes half a minute if Vitess has
// hundreds of keyspaces, and Vitess may crash if one keyspace is dropped while another is created.
func (g Target) keyspace(t testing.TB) (name string) {
	t.Helper()
	emptyKeyspaces.Lock()
	defer emptyKeyspaces.Unlock()
	if empty := emptyKeyspaces.of[g.dsn]; len(empty) > 0 {
		name, emptyKeyspaces.of[g.dsn] = empty[0], empty[1:]
	} else {
		name = g.create(t)
	}
	t.Cleanup(func() {
		if err := dropObjects(g.dsn, name); err != nil {
			t.Errorf("mysqltest: empty the test's keyspace (does a connection still hold a lock on it?): %v", err)
			return
		}
		emptyKeyspaces.Lock()
		defer emptyKeyspaces.Unlock()
		emptyKeyspaces.of[g.dsn] = append(emptyKeyspaces.of[g.dsn], name)
	})
	return name
}

// dropObjects drops the views, tables and procedures of a keyspace.
func dropObjects(dsn, keyspace string) error {
	db, err := sql.Open("mysql", WithDatabase(dsn, keyspace+":0@primary")+"?foreign_key_checks=0") // statements for a shard reach MySQL unchanged: vtgate drops no view
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	for _, objects := range []struct{ kind, names string }{
		{"VIEW", "table_name FROM information_schema.views WHERE table_schema = DATABASE()"},
		{"TABLE", "table_name FROM information_schema.tables WHERE table_schema = DATABASE()"},
		{"PROCEDURE", "routine_name FROM information_schema.routines WHERE routine_schema = DATABASE()"},
	} {
		names, err := queryNames(ctx, db, "SELECT "+objects.names)
		if err != nil {
			return err
		}
		for _, name := range names {
			if _, err := db.ExecContext(ctx, "DROP "+objects.kind+" "+quote.Name(name)); err != nil {
				return err
			}
		}
	}
	return nil
}

// queryNames returns the only column of a query's rows.
func queryNames(ctx context.Context, db *sql.DB, query string) (names []string, err error) {
	rows, err := db.QueryContext(ctx, query)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	for rows.Next() {
		var name string
		if err := rows.Scan(&name); err != nil {
			return nil, err
		}
		names = append(names, name)
	}
	return names, rows.Err()
}

// vitessArgs returns the arguments of a start of Vitess, more included. A restarted Vitess has the keyspaces that it had before.
func vitessArgs(s *Server, more []string) ([]string, error) {
	db, err := sql.Open("mysql", s.mysql.DSN(""))
	if err != nil {
		return nil, err
	}
	defer db.Close()
	databases, err := queryNames(context.Background(), db, `SHOW DATABASES LIKE 'vt\_%\_0'`)
	if err != nil {
		return nil, err
	}
	databases = append(databases, "vt_unsharded_0")
	const primaries = " replica_count: 1 rdonly_count: -1 "
	topology := `keyspaces { name: "` + ShardedKeyspace + `" shards { name: "-80" } shards { name: "80-" }` + primaries + `}`
	for _, name := range slices.Compact(slices.Sorted(slices.Values(databases))) {
		name = strings.TrimSuffix(strings.TrimPrefix(name, "vt_"), "_0")
		topology += ` keyspaces { name: "` + name + `" shards { name: "0" }` + primaries + `}`
	}
	mysql := s.mysql.filePath("sock")
	args := append(slices.Clone(more),
		"--bind-address", "127.0.0.1", "--log-level", "error", // no HTTP without --port
		"--mysql-server-bind-address", "127.0.0.1", "--mysql-server-port", strconv.Itoa(s.port), "--mysql-server-socket-path", s.filePath("sock"), "--mysql-auth-server-impl", "none",
		"--proto-topo", topology, "--tablet-types-to-wait", "primary",
		"--dbddl-plugin", "vttest", "--tablet-refresh-interval", "100ms", "--srv-topo-cache-refresh", "100ms", // CREATE DATABASE waits for both
		"--vschema-ddl-authorized-users", "%",
		"--mycnf-server-id", "1", "--mycnf-socket-file", mysql, "--db-socket", mysql,
		"--queryserver-config-pool-size", "50", "--queryserver-config-stream-pool-size", "50", "--queryserver-config-transaction-cap", "300",
		"--queryserver-config-transaction-timeout", "5m", "--tablet-hostname", "127.0.0.1",
	)
	for _, user := range []string{"allprivs", "app", "appdebug", "dba", "filtered", "repl"} {
		args = append(args, "--db-"+user+"-user", "root")
	}
	return args, nil
}
