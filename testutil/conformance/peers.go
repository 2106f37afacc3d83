//go:build unix

package main

import "github.com/leafsql/leafsql/testutil/mysqltest"

// A peer is a project whose tests are run.
type peer struct {
	name   string
	module string
	in     string // folder of this repository's module that requires it
	pkg    string // folder of the tests, in its module

	init    string   // Go code that runs once the driver "mysql" is there
	without []string // other databases' drivers, whose imports are dropped
	hidden  bool     // tables without a key get a hidden one, so that they are filled too

	env  func(s *mysqltest.Server, database string) []string
	args func(s *mysqltest.Server, database string) []string
}

var peers = []peer{
	{
		name: "go-sql-driver", module: "github.com/go-sql-driver/mysql", in: ".", pkg: ".", hidden: true,
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"MYSQL_TEST_USER=root", "MYSQL_TEST_ADDR=" + s.Addr(), "MYSQL_TEST_DBNAME=" + database}
		},
	},
	{
		name: "sqlx", module: "github.com/jmoiron/sqlx", in: ".", pkg: ".", hidden: true,
		init:    "sqlx.ConnectAll() // again: the suite's own init came too early",
		without: []string{"github.com/mattn/go-sqlite3", "github.com/lib/pq"},
		env: func(s *mysqltest.Server, database string) []string {
			return []string{"SQLX_MYSQL_DSN=" + s.DSN(database), "SQLX_POSTGRES_DSN=skip", "SQLX_SQLITE_DSN=skip"}
		},
	},
	{
		name: "xorm", module: "xorm.io/xorm", in: "examples", pkg: "tests",
		without: []string{
			"gitee.com/travelliu/dm", "github.com/jackc/pgx/v5/stdlib", "github.com/lib/pq", "github.com/mattn/go-sqlite3",
			"github.com/microsoft/go-mssqldb", "github.com/ziutek/mymysql/godrv", "modernc.org/sqlite",
		},
		args: func(s *mysqltest.Server, database string) []string {
			return []string{"-db=mysql", "-show_sql=false", "-conn_str=" + s.DSN(database) + "?charset=utf8"}
		},
	},
}
