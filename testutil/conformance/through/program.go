package through

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"regexp"

	"github.com/go-sql-driver/mysql"

	leafsql "github.com/leafsql/leafsql/driver"
)

// A program is a driver for suites with tables that have AUTO_INCREMENT keys.
// It connects to the server at addr, whatever server and user the suite's DSNs
// name.
type program struct {
	addr  string
	leaf  bool // use mysql-leaf, which fills every table
	strip bool // remove AUTO_INCREMENT from the suite's CREATE TABLE and ALTER TABLE
}

// Open implements driver.Driver; database/sql calls OpenConnector.
func (p program) Open(dsn string) (driver.Conn, error) {
	return nil, fmt.Errorf("through: Open(%q) is not expected", dsn)
}

// OpenConnector adds the parameters with which mysql-leaf fills all tables of a program.
func (p program) OpenConnector(dsn string) (driver.Connector, error) {
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	cfg.User, cfg.Passwd, cfg.Net, cfg.Addr, cfg.TLSConfig = "root", "", "tcp", p.addr, ""
	var connector driver.Connector
	if !p.leaf {
		connector, err = mysql.NewConnector(cfg)
	} else {
		connector, err = leafConnector(cfg)
	}
	if err != nil {
		return nil, err
	}
	return strippingConnector{connector, p}, nil
}

func leafConnector(cfg *mysql.Config) (driver.Connector, error) {
	with := map[string]string{"leafTables": "*", "leafCreate": "true"}
	maps.Copy(with, cfg.Params)
	cfg.Params = with
	parsed, err := leafsql.ParseDSN(cfg.FormatDSN())
	if err != nil {
		return nil, err
	}
	return leafsql.NewConnector(parsed)
}

// A strippingConnector changes the suite's statements before it passes them to the
// driver.
type strippingConnector struct {
	driver.Connector
	program program
}

// Close closes mysql-leaf's connector.
func (s strippingConnector) Close() error {
	if c, ok := s.Connector.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (s strippingConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := s.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &strippingConn{c.(conn), s.program}, nil
}

type strippingConn struct {
	conn
	program program
}

func (c *strippingConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	res, err := c.conn.ExecContext(ctx, c.program.text(text), args)
	return res, markError(err)
}

func (c *strippingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.conn.PrepareContext(ctx, c.program.text(text))
	if err != nil {
		return nil, markError(err)
	}
	return errorStmt{s.(stmt)}, nil
}

func (c *strippingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.conn.QueryContext(ctx, c.program.text(text), args)
	return rows, markError(err)
}

// stmt has the methods of both drivers' statements.
type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type errorStmt struct{ stmt }

func (s errorStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	res, err := s.stmt.ExecContext(ctx, args)
	return res, markError(err)
}

func (s errorStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.stmt.QueryContext(ctx, args)
	return rows, markError(err)
}

var (
	definitions   = regexp.MustCompile(`(?is)\b(?:CREATE\s+(?:TEMPORARY\s+)?|ALTER\s+)TABLE\b`)
	serial        = regexp.MustCompile(`(?i)\bid\s+serial\b`)
	autoIncrement = regexp.MustCompile(`(?i)\bAUTO_?INCREMENT\b(?:\s*=\s*\d+)?`)
)

// text returns a suite's query as it is passed to the driver.
func (p program) text(text string) string {
	if !p.strip {
		return text
	}
	return StripAutoIncrement(text)
}

// StripAutoIncrement removes AUTO_INCREMENT from a text that creates or alters tables.
func StripAutoIncrement(text string) string {
	if !definitions.MatchString(text) {
		return text
	}
	return autoIncrement.ReplaceAllString(serial.ReplaceAllString(text, "id BIGINT UNSIGNED NOT NULL"), "")
}

// ErrorPrefix begins a line with an error of mysql-leaf in a run's output. The line is
// necessary because a suite may not print the error itself.
const ErrorPrefix = "mysql-leaf said: "

func markError(err error) error {
	var refused *leafsql.RefusedError
	var fill *leafsql.FillError
	if errors.As(err, &refused) || errors.As(err, &fill) {
		fmt.Fprintf(os.Stderr, "\n%s%v\n", ErrorPrefix, err)
	}
	return err
}
