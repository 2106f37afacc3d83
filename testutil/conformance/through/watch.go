package through

import (
	"context"
	"database/sql/driver"
	"regexp"
	"strings"
)

// A watchedConnector records the tables that its connections create and drop.
// mysql-leaf uses it instead of go-sql-driver's connector.
type watchedConnector struct {
	driver.Connector
	tables *tables
}

// conn has the methods that mysql-leaf needs in a connection.
type conn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

type watchedConn struct {
	conn
	tables *tables
}

func (w watchedConnector) Connect(ctx context.Context) (driver.Conn, error) {
	c, err := w.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &watchedConn{c.(conn), w.tables}, nil
}

var (
	createPattern   = regexp.MustCompile("(?is)^\\s*CREATE\\s+(TEMPORARY\\s+)?TABLE\\s+(?:IF\\s+NOT\\s+EXISTS\\s+)?((?:`[^`]+`|\\w+)(?:\\.(?:`[^`]+`|\\w+))?)\\s*(\\()")
	truncatePattern = regexp.MustCompile("(?is)^\\s*(?:DROP|TRUNCATE)\\s+(?:TABLE\\s+)?(?:IF\\s+EXISTS\\s+)?((?:`[^`]+`|\\w+)(?:\\.(?:`[^`]+`|\\w+))?)")
)

// bareName returns a table's name without its database and quotes.
func bareName(name string) string {
	return strings.Trim(name[strings.LastIndexByte(name, '.')+1:], "`")
}

func (c *watchedConn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	m := createPattern.FindStringSubmatchIndex(text)
	if m == nil {
		if m := truncatePattern.FindStringSubmatch(text); m != nil {
			c.tables.restart(bareName(m[1]))
		}
		return c.conn.ExecContext(ctx, text, args)
	}
	name := bareName(text[m[4]:m[5]])
	c.tables.restart(name)
	keyed := strings.Contains(strings.ToUpper(text), "PRIMARY KEY")
	if !keyed {
		text = text[:m[7]] + c.tables.hidden + text[m[7]:]
	}
	res, err := c.conn.ExecContext(ctx, text, args)
	if err == nil {
		c.tables.recordTable(ctx, c.conn, name, keyed)
	}
	return res, err
}
