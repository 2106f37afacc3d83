//go:build unix

// Package mysqltest gives tests a real MariaDB or MySQL server and fresh databases on it.
//
//	func TestOrders(t *testing.T) {
//		db, err := sql.Open("mysql", mysqltest.Database(t))
//		...
//	}
//
// The server is private and throw-away: its own data directory in a temporary folder, a free port on 127.0.0.1, and gone
// when the test binary ends, however it ends. Each test binary starts one when it first needs it; a run of many binaries
// shares one through the program in serve, which sets LEAFSQL_TEST_DSN for its child.
//
// LEAFSQL_TEST_DSN (and LEAFSQL_TEST_MYSQL_DSN for [Targets]) points tests at a server that already runs. Tests then touch
// only databases they created themselves.
//
// The package never uses a system service or existing data, and never skips: without a server the test fails and says what
// to install. It does not create tables or users.
package mysqltest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
)

// The variables that point tests at servers which already run.
const (
	EnvDSN      = "LEAFSQL_TEST_DSN"       // any server; MariaDB in make test
	EnvMySQLDSN = "LEAFSQL_TEST_MYSQL_DSN" // a real MySQL, for Targets
)

// DSN returns a data source name of the shared server, naming no database.
func DSN(t testing.TB) string {
	t.Helper()
	return defaultTarget(t).dsn
}

// Database creates a database with a unique name on the shared server and returns its data source name. It is dropped when
// the test ends.
func Database(t testing.TB) string {
	t.Helper()
	return defaultTarget(t).Database(t)
}

// A Target is one server that a test matrix runs against.
type Target struct {
	Name string // "mariadb" or "mysql"
	dsn  string
}

// Targets returns the servers a matrix runs against: MariaDB and MySQL.
func Targets(t testing.TB) []Target {
	t.Helper()
	return []Target{defaultTarget(t), target(t, MySQL, EnvMySQLDSN, &sharedMySQL)}
}

// DSN returns the target's data source name, naming no database.
func (g Target) DSN() string { return g.dsn }

// Database creates a database with a unique name on the target and returns its data source name. It is dropped when the
// test ends.
func (g Target) Database(t testing.TB) string {
	t.Helper()
	var suffix [6]byte
	rand.Read(suffix[:])
	name := "leafsql_" + hex.EncodeToString(suffix[:])
	if err := execute(g.dsn, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("mysqltest: create a database on %s: %v", g.Name, err)
	}
	t.Cleanup(func() {
		if err := execute(g.dsn, "DROP DATABASE IF EXISTS "+name); err != nil {
			t.Errorf("mysqltest: drop the test's database (does a connection still hold a lock on it?): %v", err)
		}
	})
	return WithDatabase(g.dsn, name)
}

// WithDatabase returns dsn with another database name. It panics if dsn cannot be parsed.
func WithDatabase(dsn, name string) string {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		panic(fmt.Sprintf("mysqltest: %v", err))
	}
	cfg.DBName = name
	return cfg.FormatDSN()
}

// A shared server is started once per process and ends with it.
type shared struct {
	once   sync.Once
	server *Server
	err    error
}

var sharedAny, sharedMySQL shared

func defaultTarget(t testing.TB) Target {
	t.Helper()
	return target(t, "", EnvDSN, &sharedAny)
}

func target(t testing.TB, kind Kind, env string, s *shared) Target {
	t.Helper()
	if dsn := os.Getenv(env); dsn != "" {
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatalf("mysqltest: %s: %v", env, err)
		}
		cfg.DBName = ""
		name := string(kind)
		if name == "" {
			name = string(MariaDB)
		}
		return Target{Name: name, dsn: cfg.FormatDSN()}
	}
	s.once.Do(func() { s.server, s.err = Start(Config{Kind: kind}) })
	if s.err != nil {
		t.Fatal(s.err)
	}
	return Target{Name: string(s.server.Kind()), dsn: s.server.DSN("")}
}

// execute runs one statement on a connection of its own, so that nothing stays open between calls.
func execute(dsn, stmt string) error {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return err
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	_, err = db.ExecContext(ctx, stmt)
	return err
}
