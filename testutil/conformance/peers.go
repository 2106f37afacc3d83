//go:build unix

package main

import (
	"slices"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// peers contains all peers.
var peers = slices.Concat(libraries, programs)

// A peer is a project with tests to run.
type peer struct {
	name   string
	module string // with a version if no module of this repository requires it
	folder string // folder of this repository's module that requires it

	repository, commit string   // source of a program that is not an importable module
	sparse             []string // the needed files; empty: all

	pkgs  []string // folders of the tests
	modes []string // modes of the runs

	init     string   // Go code that runs once the driver "mysql" is registered
	without  []string // other databases' drivers, whose imports are dropped
	stubs    []string // modules that it requires, but that are not compiled here
	edits    []edit   // other changes of its files
	ownTests string   // test file in testdata, for a program without tests on MySQL
	tags     string   // build tags of its tests
	schema   []string // its SQL files that create its databases before each run
	tests    string   // tests to run; empty: all

	env  func(s *mysqltest.Server, database string) []string
	args func(s *mysqltest.Server, database string) []string
}

// libraries are modules that other programs import.

var libraries = []peer{
	{
		name: "go-sql-driver", module: "github.com/go-sql-driver/mysql", folder: ".", pkgs: []string{"."}, modes: ofADriver,
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"MYSQL_TEST_USER=root", "MYSQL_TEST_ADDR=" + s.Addr(), "MYSQL_TEST_DBNAME=" + database}
		},
	},
	{
		name: "sqlx", module: "github.com/jmoiron/sqlx", folder: ".", pkgs: []string{"."}, modes: ofKeylessTables,
		init:    "sqlx.ConnectAll() // again: the suite's own init came too early",
		without: []string{"github.com/mattn/go-sqlite3", "github.com/lib/pq"},
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"SQLX_MYSQL_DSN=" + s.DSN(database), "SQLX_POSTGRES_DSN=skip", "SQLX_SQLITE_DSN=skip"}
		},
	},
	{
		name: "xorm", module: "xorm.io/xorm", folder: "examples", pkgs: []string{"tests"}, modes: ofTables,
		without: []string{
			"gitee.com/travelliu/dm", "github.com/jackc/pgx/v5/stdlib", "github.com/lib/pq", "github.com/mattn/go-sqlite3",
			"github.com/microsoft/go-mssqldb", "github.com/ziutek/mymysql/godrv", "modernc.org/sqlite",
		},
		args: func(s *mysqltest.Server, database string) []string {
			return []string{"-db=mysql", "-show_sql=false", "-conn_str=" + s.DSN(database) + "?charset=utf8"}
		},
	},
	{
		name: "xorm-adapter", module: "github.com/casbin/xorm-adapter/v3@v3.4.0", folder: ".", pkgs: []string{"."}, modes: ofAutoIncrement,
		stubs: []string{"gitee.com/travelliu/dm"},
		edits: []edit{{"adapter_test.go", `"postgres", "user=postgres password=postgres host=127.0.0.1 port=5432 sslmode=disable"`, `"mysql", "root:@tcp(127.0.0.1:3306)/"`}},
	},
	{
		name: "gorm-adapter", module: "github.com/casbin/gorm-adapter/v3@v3.41.0", folder: ".", pkgs: []string{"."}, modes: ofAutoIncrement,
		edits: []edit{
			{"adapter_test.go", `{"postgres", "user=postgres password=postgres host=127.0.0.1 port=5432 sslmode=disable", nil},`, ""},
			{"adapter_test.go", `"postgres", "user=postgres password=postgres host=127.0.0.1 port=5432 sslmode=disable")`, `"mysql", "root:@tcp(127.0.0.1:3306)/", "casbin3")`},
			{"adapter_test.go", `postgres.Open("user=postgres password=postgres host=127.0.0.1 port=5432 sslmode=disable dbname=casbin")`, `mysql.Open("root:@tcp(127.0.0.1:3306)/casbin3")`},
			{"adapter_test.go", `"sqlserver", "sqlserver://sa:SqlServer123@localhost:1433", "master", "casbin_rule")`, `"mysql", "root:@tcp(127.0.0.1:3306)/", "casbin4", "casbin_rule")`},
			{"adapter_test.go", `sqlserver.Open("sqlserver://sa:SqlServer123@localhost:1433?database=master")`, `mysql.Open("root:@tcp(127.0.0.1:3306)/casbin4")`},
			{"adapter_test.go", "\t\"gorm.io/driver/sqlserver\"\n", ""},
			{"adapter_test.go", `db, err = gorm.Open(postgres.Open("user=postgres password=postgres host=localhost`, `return; db, err = gorm.Open(postgres.Open("user=postgres password=postgres host=localhost`},
		},
	},
	{
		name: "gorp", module: "github.com/go-gorp/gorp/v3@v3.1.0", folder: ".", pkgs: []string{"."}, modes: ofAutoIncrement, tags: "integration",
		without: []string{"github.com/mattn/go-sqlite3", "github.com/lib/pq"},
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"GORP_TEST_DIALECT=mysql", "GORP_TEST_DSN=" + s.DSN(database) + "?parseTime=true"}
		},
		args: func(*mysqltest.Server, string) []string { return []string{"-trace=false"} },
	},
	{
		name: "watermill-sql", module: "github.com/ThreeDotsLabs/watermill-sql/v4@v4.1.2", folder: ".", pkgs: []string{"pkg/sql"}, tests: "MySQL",
		modes: ofAutoIncrement[:3], // in the control it waits for messages until the timeout
		edits: []edit{{"pkg/sql/pubsub_test.go", `conf.DBName = "watermill"`, `conf.DBName = "conformance"`}},
		args:  func(*mysqltest.Server, string) []string { return []string{"-test.short"} },
	},
}
