package main

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A server is the demo's database server: a private one, or the user's. On both, the demo works in databases that it
// creates and drops.
type server struct {
	private *mysqltest.Server // nil for the user's server
	config  *mysql.Config
	db      *sql.DB
	prefix  string // prefix of the databases' names
	created []string
	version string
}

// databases are the demo's databases, without the prefix.
var databases = []string{"mysql_a", "mysql_b", "mysql_merged", "leaf_a", "leaf_b", "leaf_merged", "alloc"}

// openServer starts a server, or connects to the one that dsn names, and creates the databases.
func openServer(ctx context.Context, dsn string) (_ *server, err error) {
	var suffix [3]byte
	rand.Read(suffix[:])
	s := &server{prefix: "leafsql_demo_" + hex.EncodeToString(suffix[:]) + "_"}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.cleanUp())
		}
	}()
	if dsn == "" {
		if s.private, err = mysqltest.Start(mysqltest.Config{}); err != nil {
			return s, err
		}
		dsn = s.private.DSN("")
	}
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		return s, fmt.Errorf("LEAFSQL_DSN cannot be read: %w\n  write for example: user:password@tcp(127.0.0.1:3306)/", err)
	}
	s.config = cfg.MySQL
	s.config.DBName = ""
	s.config.Timeout = max(s.config.Timeout, 10*time.Second)
	s.config.Logger = &mysql.NopLogger{} // its errors are returned as well
	connector, err := mysql.NewConnector(s.config)
	if err != nil {
		return s, err
	}
	s.db = sql.OpenDB(connector)
	s.db.SetMaxOpenConns(1) // createTables and merge rely on USE
	if err := s.db.QueryRowContext(ctx, "SELECT VERSION()").Scan(&s.version); err != nil {
		return s, fmt.Errorf("cannot use the server at %s: %w\n  check the address, user and password in LEAFSQL_DSN", s.config.Addr, err)
	}
	for _, name := range databases {
		if _, err := s.db.ExecContext(ctx, "CREATE DATABASE "+s.name(name)); err != nil {
			var my *mysql.MySQLError
			if errors.As(err, &my) && (my.Number == 1044 || my.Number == 1227) {
				err = fmt.Errorf("%w\n  the user of LEAFSQL_DSN needs rights on the databases this demo creates and drops:\n  GRANT ALL ON `leafsql\\_demo\\_%%`.* TO '%s'@'…'", err, s.config.User)
			}
			return s, err
		}
		s.created = append(s.created, s.name(name))
	}
	return s, nil
}

// name returns the full name of one of the demo's databases.
func (s *server) name(database string) string { return s.prefix + database }

// dsn returns the data source name of a database.
func (s *server) dsn(database string) string {
	cfg := s.config.Clone()
	cfg.DBName = database
	return cfg.FormatDSN()
}

// leafDSN is like dsn with leafsql's parameters: the tables to fill, and the one leaf_alloc that all shards
// share.
func (s *server) leafDSN(database string) string {
	cfg, err := driver.ParseDSN(s.dsn(database) + leafParams(s.dsn(database)))
	if err != nil {
		panic(err) // the demo itself built it
	}
	cfg.Store = s.dsn(s.name("alloc"))
	return cfg.FormatDSN()
}

func leafParams(dsn string) string {
	separator := "?"
	if strings.Contains(dsn, "?") {
		separator = "&"
	}
	return separator + "leafTables=" + strings.Join(tables, ",") + "&leafCreate=true"
}

// describe returns the server's name and version, without secrets.
func (s *server) describe() string {
	kind := "MySQL " + s.version
	if before, _, ok := strings.Cut(s.version, "-MariaDB"); ok {
		kind = "MariaDB " + before
	}
	if s.private != nil {
		return kind + ", private and throw-away, on this machine"
	}
	return kind + " at " + s.config.Addr + ", in databases " + s.prefix + "*"
}

// A cleanupError names the databases that were not removed.
type cleanupError struct{ error }

// cleanUp drops the databases and ends the private server. Its error is a cleanupError.
func (s *server) cleanUp() error {
	// Not the caller's context, which may have ended by Ctrl-C.
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	var errs []error
	if s.private == nil {
		for _, name := range s.created {
			if _, err := s.db.ExecContext(ctx, "DROP DATABASE "+name); err != nil {
				errs = append(errs, fmt.Errorf("database %s is left behind: %w", name, err))
			}
		}
	}
	if s.db != nil {
		errs = append(errs, s.db.Close())
	}
	if s.private != nil {
		errs = append(errs, s.private.Stop())
	}
	if err := errors.Join(errs...); err != nil {
		return cleanupError{err}
	}
	return nil
}
