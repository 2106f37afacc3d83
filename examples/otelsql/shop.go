// Package shop puts otelsql's spans on either side of mysql-leaf.
package shop

import (
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"

	"github.com/XSAM/otelsql"
	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
)

// quiet keeps healthy statements free of errors and traces free of noise:
// go-sql-driver answers driver.ErrSkip for a statement that database/sql then
// prepares, and database/sql resets a connection each time that it is used again.
var quiet = otelsql.WithSpanOptions(otelsql.SpanOptions{DisableErrSkip: true, OmitConnResetSession: true})

// OpenOutside puts otelsql between the application and mysql-leaf: spans show
// the application's own SQL, and a span of an INSERT includes the wait for ids,
// if there is one.
func OpenOutside(dsn string, opts ...otelsql.Option) (*sql.DB, error) {
	return otelsql.Open(driver.Name, dsn, append([]otelsql.Option{quiet}, opts...)...)
}

// OpenInside puts otelsql between mysql-leaf and go-sql-driver: spans show the
// SQL that the server receives, with the keys in it.
func OpenInside(dsn string, opts ...otelsql.Option) (*sql.DB, error) {
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	traced, ok := otelsql.WrapDriver(mysql.MySQLDriver{}, append([]otelsql.Option{quiet}, opts...)...).(sqldriver.DriverContext)
	if !ok {
		return nil, fmt.Errorf("otelsql's driver is no driver.DriverContext")
	}
	inner, err := traced.OpenConnector(cfg.MySQL.FormatDSN())
	if err != nil {
		return nil, err
	}
	c, err := driver.Wrap(inner, cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(c), nil
}
