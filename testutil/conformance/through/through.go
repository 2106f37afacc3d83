// Package through registers a driver named "mysql", which a peer's test suite
// uses instead of go-sql-driver's. The suite is linked with
//
//	-ldflags "-X github.com/go-sql-driver/mysql.driverName=mysql-inner"
//
// so that the name is free. The variable LEAFSQL_CONFORMANCE selects the
// driver: go-sql-driver itself ("bare"), mysql-leaf that fills nothing
// ("none"), or mysql-leaf that fills every table it can ("filled").
//
// Most tables of the suites have no key. If LEAFSQL_CONFORMANCE_HIDDEN is set,
// the mode "filled" adds a hidden key. Its results are compared with the mode
// "hidden": go-sql-driver with AUTO_INCREMENT on the hidden key.
//
// A program's suite, whose tables have AUTO_INCREMENT, runs on go-sql-driver
// ("bare"), through mysql-leaf with the tables unchanged ("left"), through
// mysql-leaf with AUTO_INCREMENT removed from them ("dropped"), and on
// go-sql-driver with the same tables ("control"), which shows how many tests
// depend on the ids.
package through

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"os"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
)

// The variables that configure a run.
const (
	EnvMode   = "LEAFSQL_CONFORMANCE"        // bare, proxied, none, hidden or filled; for a program: bare, left, dropped or control
	EnvAddr   = "LEAFSQL_CONFORMANCE_ADDR"   // the server of a program's suite
	EnvTables = "LEAFSQL_CONFORMANCE_TABLES" // file with the created tables: written by none, read by hidden and filled
	EnvDSN    = "LEAFSQL_CONFORMANCE_DSN"    // the database of the suite
	EnvHidden = "LEAFSQL_CONFORMANCE_HIDDEN" // add a hidden key to tables without a key
)

func init() {
	mode, addr := os.Getenv(EnvMode), os.Getenv(EnvAddr)
	if addr != "" {
		sql.Register("mysql", program{addr, mode == "left" || mode == "dropped", mode == "dropped" || mode == "control"})
		return
	}
	switch mode {
	case "": // not in a suite
	case "bare", "proxied": // these modes differ only in the address of the server
		sql.Register("mysql", mysql.MySQLDriver{})
	case "none", "hidden", "filled":
		tables, err := openTables(mode, os.Getenv(EnvTables), os.Getenv(EnvHidden) != "")
		if err != nil {
			panic(err)
		}
		sql.Register("mysql", through{tables})
	default:
		panic(fmt.Sprintf("%s=%q: want bare, proxied, none, hidden or filled", EnvMode, mode))
	}
}

type through struct{ tables *tables }

// Open implements driver.Driver; database/sql calls OpenConnector.
func (t through) Open(dsn string) (sqldriver.Conn, error) {
	return nil, fmt.Errorf("through: Open(%q) is not expected", dsn)
}

// OpenConnector adds the parameters that an application would add.
func (t through) OpenConnector(dsn string) (sqldriver.Connector, error) {
	sep := "?"
	if strings.Contains(dsn[strings.LastIndexByte(dsn, '/')+1:], "?") {
		sep = "&"
	}
	cfg, err := driver.ParseDSN(dsn + sep + "leafTables=none")
	if err != nil {
		return nil, err
	}
	inner, err := mysql.NewConnector(cfg.MySQL)
	if err != nil {
		return nil, err
	}
	if t.tables.mode == "hidden" {
		return watchedConnector{inner, t.tables}, nil
	}
	cfg.Tables = t.tables.rules()
	cfg.None = len(cfg.Tables) == 0
	return driver.Wrap(watchedConnector{inner, t.tables}, cfg)
}
