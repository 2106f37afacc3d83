//go:build unix

// Package mysqltest gives tests a real MariaDB or MySQL server and fresh databases on it.
//
//	func TestOrders(t *testing.T) {
//		db, err := sql.Open("mysql", mysqltest.Database(t))
//		...
//	}
//
// The server is private and temporary: it has its own data directory in a temporary folder and a free port on
// 127.0.0.1, and is removed when the test binary ends for any reason. Each test binary starts a server when it first
// needs one; a run of many binaries shares one through the program in serve, which sets LEAFSQL_TEST_DSN for its child.
//
// LEAFSQL_TEST_DSN (and LEAFSQL_TEST_MYSQL_DSN for [Targets]) makes tests use a server that is already running. Tests
// then change only databases that they created. LEAFSQL_TEST_SERVER=mysql-8.0 makes tests use only the server of that
// name, which .ci/server has installed. LEAFSQL_TEST_DATA=/dev/shm keeps the data of started servers in memory.
//
// The package never uses a system service or existing data, and never skips: without a server the test fails with a
// hint on what to install. It does not create tables or users.
package mysqltest

import (
	"context"
	"crypto/rand"
	"database/sql"
	"encoding/hex"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/versions"
)

// EnvDSN and EnvMySQLDSN name servers that are already running. EnvServer names a server of .ci/server, such as
// mysql-8.0, that tests start and use alone.
const (
	EnvDSN      = "LEAFSQL_TEST_DSN"       // any server; MariaDB in make test
	EnvMySQLDSN = "LEAFSQL_TEST_MYSQL_DSN" // a real MySQL, for Targets
	EnvServer   = "LEAFSQL_TEST_SERVER"
	EnvData     = "LEAFSQL_TEST_DATA" // folder for the data of started servers; that of temporary files if empty
)

// DSN returns a data source name of the shared server without a database.
func DSN(t testing.TB) string {
	t.Helper()
	return defaultTarget(t).dsn
}

// Database creates a database with a unique name on the shared server and returns its data source name. The database is
// dropped when the test ends.
func Database(t testing.TB) string {
	t.Helper()
	return defaultTarget(t).Database(t)
}

// A Target is one server that a test matrix runs against.
type Target struct {
	Name   string // "mariadb" or "mysql"
	dsn    string
	vitess bool
}

// Targets returns the servers for a matrix: MariaDB and MySQL, or one server if EnvDSN and EnvMySQLDSN name the same
// one, or if EnvServer is set.
func Targets(t testing.TB) []Target {
	t.Helper()
	if os.Getenv(EnvServer) != "" {
		return []Target{defaultTarget(t)}
	}
	first, second := findTarget(t, MariaDB, EnvDSN, &sharedAny), findTarget(t, MySQL, EnvMySQLDSN, &sharedMySQL)
	if first.dsn == second.dsn {
		return []Target{first}
	}
	return []Target{first, second}
}

// DSN returns the target's data source name without a database.
func (g Target) DSN() string { return g.dsn }

// TargetOf returns the target of a kind. It skips the test if tests run only on a server of the other kind.
func TargetOf(t testing.TB, kind Kind) Target {
	t.Helper()
	for _, g := range Targets(t) {
		if g.Name == string(kind) {
			return g
		}
	}
	t.Skipf("%s%s alone", Lacks, kind)
	return Target{}
}

// SkipUnless skips a test that needs the feature what, if the server of EnvServer lacks it (see Has). The servers of
// make test have every feature.
func (g Target) SkipUnless(t testing.TB, what string, mariaDB, mySQL int) {
	t.Helper()
	if !g.Has(t, mariaDB, mySQL) {
		t.Skip(Lacks + what)
	}
}

// Has reports whether the server has a feature that was added in these versions of MariaDB and MySQL, such as 100600
// and 80000, or 0 if all versions have it. If EnvServer is not set, it returns true.
func (g Target) Has(t testing.TB, mariaDB, mySQL int) bool {
	t.Helper()
	since := mariaDB
	if g.Name == string(MySQL) {
		since = mySQL
	}
	return os.Getenv(EnvServer) == "" || g.version(t) >= since
}

// Texts that tests print if the server lacks a feature, or if leafsql refuses it on the server's version. The table of
// servers is made from these texts.
const (
	Lacks   = "the server does not have it: "
	Refused = "refused on this version: "
)

// version returns the server's version, such as 101119 for 10.11.19.
func (g Target) version(t testing.TB) (version int) {
	t.Helper()
	db, err := sql.Open("mysql", g.dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	var major, minor, patch int
	var text string
	if err := db.QueryRow("SELECT VERSION()").Scan(&text); err != nil {
		t.Fatal(err)
	}
	if _, err := fmt.Sscanf(text, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatalf("mysqltest: the server's version %q: %v", text, err)
	}
	return major*10000 + minor*100 + patch
}

// Database creates a database with a unique name on the target and returns its data source name. The database is dropped
// when the test ends.
func (g Target) Database(t testing.TB) string {
	t.Helper()
	if g.vitess {
		return WithDatabase(g.dsn, g.keyspace(t))
	}
	name := g.create(t)
	t.Cleanup(func() {
		if err := execute(g.dsn, "DROP DATABASE IF EXISTS "+name); err != nil {
			t.Errorf("mysqltest: drop the test's database (does a connection still hold a lock on it?): %v", err)
		}
	})
	return WithDatabase(g.dsn, name)
}

// create creates a database with a unique name.
func (g Target) create(t testing.TB) (name string) {
	t.Helper()
	var suffix [6]byte
	rand.Read(suffix[:])
	name = "leafsql_" + hex.EncodeToString(suffix[:])
	if err := execute(g.dsn, "CREATE DATABASE "+name); err != nil {
		t.Fatalf("mysqltest: create a database on %s: %v", g.Name, err)
	}
	return name
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

// A sharedServer is started, or found through its environment variable, once per process. A started server ends with
// the process.
type sharedServer struct {
	once   sync.Once
	target Target
	err    error
}

var sharedAny, sharedMySQL sharedServer

func defaultTarget(t testing.TB) Target {
	t.Helper()
	return findTarget(t, "", EnvDSN, &sharedAny)
}

func findTarget(t testing.TB, kind Kind, env string, s *sharedServer) Target {
	t.Helper()
	dsn := os.Getenv(env)
	s.once.Do(func() {
		if dsn != "" {
			s.target, s.err = connectTarget(dsn)
			return
		}
		var server *Server
		if server, s.err = Start(Config{Kind: kind}); s.err == nil {
			s.target = server.Target()
		}
	})
	if s.err == nil && dsn == "" && kind != "" && s.target.Name != string(kind) { // started for a test that accepts any kind
		_, s.err = findBinary(kind, searchPath())
	}
	if s.err != nil {
		t.Fatal(s.err)
	}
	return s.target
}

// connectTarget connects to a running server and returns it as a target of its kind.
func connectTarget(dsn string) (Target, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return Target{}, fmt.Errorf("mysqltest: the data source name in the environment: %w", err)
	}
	cfg.DBName = ""
	g := Target{Name: string(MySQL), dsn: cfg.FormatDSN()}
	db, err := sql.Open("mysql", g.dsn)
	if err != nil {
		return Target{}, fmt.Errorf("mysqltest: %w", err)
	}
	defer db.Close()
	var version string
	if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		return Target{}, fmt.Errorf("mysqltest: the server that the environment names, at %s: %w", cfg.Addr, err)
	}
	if strings.Contains(version, "MariaDB") {
		g.Name = string(MariaDB)
	}
	g.vitess = versions.Vitess(version)
	return g, nil
}

// execute runs one statement on a separate connection, so that no connection stays open between
// calls.
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
