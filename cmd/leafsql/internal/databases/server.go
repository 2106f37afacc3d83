package databases

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/versions"
)

// A Server is a connection pool to a server, and the database in use there.
type Server struct {
	Label    string // address/database
	Database string
	DB       *sql.DB

	MariaDB    bool
	TiDB       bool
	NoTriggers string // "TiDB" or "Vitess", which create no triggers
	Version    string
	ID         string            // equal for two pools on the same server
	Session    map[string]string // variables of the application's connections
	Global     map[string]string // global variables, which other clients start with
}

// maxConns is the maximum number of concurrent queries on a server.
const maxConns = 4

// statsExpiry is MySQL's variable for the maximum age of the cached AUTO_INCREMENT value in information_schema.
// Its default is one day.
const statsExpiry = "information_schema_stats_expiry"

// variableNames lists the variables that are read.
const variableNames = "'version', 'hostname', 'port', 'server_id', 'server_uuid', 'datadir', 'socket', 'sql_mode', 'read_only', 'super_read_only', 'innodb_read_only', " +
	"'innodb_flush_log_at_trx_commit', 'sync_binlog', 'log_bin', 'binlog_format', 'autocommit', 'lower_case_table_names', 'auto_increment_increment', 'redirect_url', 'wsrep_on', 'wsrep_provider', 'group_replication_group_name', '" + statsExpiry + "'"

// connect opens a server's pool, and reads its variables.
func connect(ctx context.Context, cfg *mysql.Config) (*Server, error) {
	s := &Server{Label: Label(cfg), Database: cfg.DBName}
	appDB, err := openPool(cfg, nil)
	if err != nil {
		return nil, s.connectError(err)
	}
	defer appDB.Close()
	if s.Session, err = readVariables(ctx, appDB, "SESSION"); err == nil {
		s.Global, err = readVariables(ctx, appDB, "GLOBAL")
	}
	if err == nil {
		vars := maps.Clone(sessionVariables)
		if _, caches := s.Session[statsExpiry]; caches {
			vars[statsExpiry] = "0"
		}
		s.DB, err = openPool(cfg, vars)
	}
	if err != nil {
		return nil, s.connectError(err)
	}
	s.DB.SetMaxOpenConns(maxConns)
	s.Version = s.Global["version"]
	if s.foldsCase() {
		s.Database = strings.ToLower(s.Database) // package driver uses the same spelling
	}
	switch s.TiDB = versions.TiDB(s.Version); {
	case s.TiDB:
		s.NoTriggers = "TiDB"
	case versions.Vitess(s.Version):
		s.NoTriggers = "Vitess"
	}
	s.MariaDB = strings.Contains(strings.ToLower(s.Version), "mariadb")
	for _, name := range []string{"hostname", "port", "server_id", "server_uuid", "datadir", "socket"} {
		s.ID += s.Global[name] + "\x00"
	}
	return s, nil
}

// foldsCase reports whether the server ignores the case of the names of databases and tables.
func (s *Server) foldsCase() bool { return s.Global["lower_case_table_names"] != "0" }

// SameName reports whether a and b name the same table, or the same database.
func (s *Server) SameName(a, b string) bool {
	return a == b || s.foldsCase() && strings.EqualFold(a, b)
}

// sessionVariables are the variables of the command's connections. They override the variables in the application's DSN.
// With them, results are complete, statements are committed at once and do not wait long for locks, values are stored
// unchanged, and the server quotes with backticks.
var sessionVariables = map[string]string{
	"autocommit": "1", "completion_type": "0", "sql_select_limit": "9223372036854775807", "lock_wait_timeout": "10", "innodb_lock_wait_timeout": "10",
	"sql_mode": "'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION,NO_AUTO_VALUE_ON_ZERO'", "sql_quote_show_create": "1", "time_zone": "'+00:00'",
}

// openPool opens a pool with cfg and additional variables, which take precedence over the parameters of cfg.
func openPool(cfg *mysql.Config, vars map[string]string) (*sql.DB, error) {
	cfg = cfg.Clone()
	cfg.InterpolateParams, cfg.ClientFoundRows, cfg.MultiStatements, cfg.ColumnsWithAlias = true, false, false, false
	cfg.ParseTime, cfg.Loc = true, time.UTC
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Second
	}
	params := maps.Clone(vars)
	if params == nil {
		params = make(map[string]string)
	}
	for k, v := range cfg.Params {
		if _, ours := params[k]; !ours {
			params[k] = v
		}
	}
	cfg.Params = params
	cfg.Apply(mysql.Charset("utf8mb4", "")) // names may contain any characters
	connector, err := mysql.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

func readVariables(ctx context.Context, db *sql.DB, scope string) (map[string]string, error) {
	vars := make(map[string]string)
	err := eachRow(ctx, db, func(scan func(...any) error) error {
		var name, value string
		err := scan(&name, &value)
		vars[strings.ToLower(name)] = value
		return err
	}, "SHOW "+scope+" VARIABLES WHERE Variable_name IN ("+variableNames+")")
	return vars, err
}

// Each calls f for every row of a query's result, until f returns an error. f has to use scan before it
// returns.
func (s *Server) Each(ctx context.Context, f func(scan func(...any) error) error, query string, args ...any) error {
	return eachRow(ctx, s.DB, f, query, args...)
}

// EachVisible is like Each, and reports whether the server returned all rows. For tables that stay locked, MariaDB omits
// the rows of information_schema and returns a warning.
func (s *Server) EachVisible(ctx context.Context, f func(scan func(...any) error) error, query string) (all bool, err error) {
	conn, err := s.DB.Conn(ctx)
	if err != nil {
		return false, err
	}
	defer conn.Close()
	if s.MariaDB {
		query = "SET STATEMENT lock_wait_timeout = 1 FOR " + query
	}
	if err := eachRow(ctx, conn, f, query); err != nil {
		return false, err
	}
	all = true
	err = eachRow(ctx, conn, func(scan func(...any) error) error {
		var level, message string
		var code uint16
		err := scan(&level, &code, &message)
		all = all && code != servererr.LockWait
		return err
	}, "SHOW WARNINGS")
	return all, err
}

// List returns the values of a query with one column.
func (s *Server) List(ctx context.Context, query string, args ...any) ([]string, error) {
	var values []string
	err := s.Each(ctx, func(scan func(...any) error) error {
		var v string
		err := scan(&v)
		values = append(values, v)
		return err
	}, query, args...)
	return values, err
}

type querier interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
}

func eachRow(ctx context.Context, db querier, f func(scan func(...any) error) error, query string, args ...any) error {
	rows, err := db.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	for rows.Next() {
		if err := f(rows.Scan); err != nil {
			return err
		}
	}
	return rows.Err()
}

func (s *Server) connectError(err error) error {
	return fmt.Errorf("leafsql: cannot connect to %s: %w; %s", s.Label, err, Hint(err))
}

// Label returns a connection's address and database, address/database, without the user.
func Label(cfg *mysql.Config) string {
	if cfg.DBName == "" {
		return cfg.Addr
	}
	return strings.TrimSuffix(cfg.Addr, "/") + "/" + cfg.DBName
}

// ReadOnly reports whether the server refuses writes.
func (s *Server) ReadOnly() bool {
	for _, name := range []string{"read_only", "super_read_only", "innodb_read_only"} {
		if v := strings.ToUpper(s.Global[name]); v != "" && v != "OFF" && v != "0" {
			return true
		}
	}
	return false
}

// User returns the account of the connection, in the form that GRANT uses.
func (s *Server) User(ctx context.Context) (string, error) {
	var user string
	err := s.DB.QueryRowContext(ctx, "SELECT CURRENT_USER()").Scan(&user)
	name, host, _ := strings.Cut(user, "@")
	if i := strings.LastIndexByte(user, '@'); i >= 0 {
		name, host = user[:i], user[i+1:]
	}
	return quote.String(name) + "@" + quote.String(host), err
}
