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

// A program is a driver for suites whose tables have keys with AUTO_INCREMENT.
// Whatever server and user the suite's DSNs name, it connects to the one at
// addr.
type program struct {
	addr  string
	leaf  bool // through mysql-leaf, which fills every table
	strip bool // AUTO_INCREMENT is taken out of the suite's CREATE TABLE and ALTER TABLE
}

// Open is part of driver.Driver; database/sql calls OpenConnector.
func (p program) Open(dsn string) (driver.Conn, error) {
	return nil, fmt.Errorf("through: Open(%q) is not expected", dsn)
}

// OpenConnector adds to the DSN what somebody would who moves a whole program.
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
	return stripping{connector, p}, nil
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

// A stripping connector stands between the suite and the driver.
type stripping struct {
	driver.Connector
	program program
}

// Close ends what belongs to mysql-leaf's connector.
func (s stripping) Close() error {
	if c, ok := s.Connector.(io.Closer); ok {
		return c.Close()
	}
	return nil
}

func (s stripping) Connect(ctx context.Context) (driver.Conn, error) {
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
	return res, told(err)
}

func (c *strippingConn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	s, err := c.conn.PrepareContext(ctx, c.program.text(text))
	if err != nil {
		return nil, told(err)
	}
	return tellingStmt{s.(stmt)}, nil
}

func (c *strippingConn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.conn.QueryContext(ctx, c.program.text(text), args)
	return rows, told(err)
}

// stmt is what both drivers' statements are.
type stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
	driver.NamedValueChecker
}

type tellingStmt struct{ stmt }

func (s tellingStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	res, err := s.stmt.ExecContext(ctx, args)
	return res, told(err)
}

func (s tellingStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.stmt.QueryContext(ctx, args)
	return rows, told(err)
}

var (
	definitions   = regexp.MustCompile(`(?is)\b(?:CREATE\s+(?:TEMPORARY\s+)?|ALTER\s+)TABLE\b`)
	serial        = regexp.MustCompile(`(?i)\bid\s+serial\b`)
	autoIncrement = regexp.MustCompile(`(?i)\bAUTO_?INCREMENT\b(?:\s*=\s*\d+)?`)
)

// text is what the driver gets of a suite's text.
func (p program) text(text string) string {
	if !p.strip {
		return text
	}
	return Stripped(text)
}

// Stripped takes AUTO_INCREMENT out of a text that makes or alters tables.
func Stripped(text string) string {
	if !definitions.MatchString(text) {
		return text
	}
	return autoIncrement.ReplaceAllString(serial.ReplaceAllString(text, "id BIGINT UNSIGNED NOT NULL"), "")
}

// Told begins a line of a run's output that says what mysql-leaf refused or
// could not fill: a suite may keep such an error for itself.
const Told = "mysql-leaf said: "

func told(err error) error {
	var refused *leafsql.RefusedError
	var fill *leafsql.FillError
	if errors.As(err, &refused) || errors.As(err, &fill) {
		fmt.Fprintf(os.Stderr, "\n%s%v\n", Told, err)
	}
	return err
}
