package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// ask completes settings by what is missing, on the application's own
// connection: they are the session's.
func (c *conn) ask(ctx context.Context, settings insert.Settings, missing insert.Missing) (insert.Settings, error) {
	if missing&insert.MissingSQLMode != 0 && !settings.SQLModeKnown {
		v, err := value(ctx, c.innerConn, "@@sql_mode")
		if err != nil {
			return settings, err
		}
		settings.SetSQLMode(v)
	}
	if missing&insert.MissingCharset != 0 && !settings.CharsetKnown {
		v, err := value(ctx, c.innerConn, "@@character_set_client")
		if err != nil {
			return settings, err
		}
		settings.Charset, settings.CharsetKnown = v, true
		c.settings.Charset, c.settings.CharsetKnown = v, true // until a text sets it
		c.replan()
	}
	return settings, nil
}

// parseVersion reads VERSION() as version comments write it: "10.11.19-MariaDB"
// is 101119, "8.4.3" is 80403. MariaDB may put "5.5.5-" before its own.
func parseVersion(s string) (mariaDB bool, version int) {
	mariaDB = strings.Contains(strings.ToLower(s), "mariadb")
	if mariaDB {
		s = strings.TrimPrefix(s, "5.5.5-")
	}
	s, _, _ = strings.Cut(s, "-")
	parts := strings.SplitN(s, ".", 4)
	for i := range 3 {
		version *= 100
		if i < len(parts) {
			n, _ := strconv.Atoi(parts[i]) // a part that is no number counts 0
			version += min(n, 99)
		}
	}
	return mariaDB, version
}

// text reads a value of a text result, whatever the inner driver made of it.
func text(v driver.Value) string {
	switch v := v.(type) {
	case []byte:
		return string(v)
	case string:
		return v
	case nil:
		return ""
	}
	return fmt.Sprint(v)
}

// legibly runs a question whose answer is made of names, as it is no matter
// what the session has answers made into, and how many rows of one it wants.
func (c *conn) legibly(ctx context.Context, question func(innerConn) error) error {
	if _, err := c.innerConn.ExecContext(ctx, "SET @leafsql_r = @@character_set_results, @leafsql_o = @@sql_select_limit,"+
		" character_set_results = utf8mb4, sql_select_limit = 18446744073709551615", nil); err != nil {
		return err
	}
	err := question(c.innerConn)
	if c.always(ctx, "SET character_set_results = @leafsql_r, sql_select_limit = @leafsql_o") != nil {
		c.broken = true
		c.innerConn.Close()
		return driver.ErrBadConn // nothing was written
	}
	return err
}

// visibleColumns asks for the columns of a table as this connection sees it. It
// reads nothing, so that no snapshot of a transaction begins with it.
func (c *conn) visibleColumns(ctx context.Context, name catalog.Name) (columns []string, err error) {
	err = c.legibly(ctx, func(conn innerConn) error {
		rows, err := conn.QueryContext(ctx, "SELECT * FROM "+name.Quoted()+" LIMIT 0", nil)
		if err != nil {
			return err
		}
		columns = rows.Columns()
		return rows.Close()
	})
	return columns, err
}

// temporaryColumns asks on the application's own connection, the only one
// that sees its temporary tables. The error is the server's own, 1146 where
// there is no such table.
func (c *conn) temporaryColumns(ctx context.Context, name catalog.Name) (columns []catalog.Column, err error) {
	err = c.legibly(ctx, func(conn innerConn) error {
		rows, err := conn.QueryContext(ctx, "SHOW COLUMNS FROM "+name.Quoted(), nil)
		if err != nil {
			return err
		}
		defer rows.Close()
		dest := make([]driver.Value, len(rows.Columns()))
		for err = rows.Next(dest); err == nil; err = rows.Next(dest) { // Field, Type, Null, Key, Default, Extra
			col := catalog.Column{Name: text(dest[0]), Type: text(dest[1]), Updatable: true}
			col.Describe(text(dest[3]), text(dest[4]), text(dest[5]))
			columns = append(columns, col)
		}
		if err != io.EOF {
			return err
		}
		return nil
	})
	return columns, err
}

func currentDatabase(ctx context.Context, conn innerConn) (string, error) {
	return value(ctx, conn, "DATABASE()")
}

// value asks what an expression is, "" for NULL. As bytes, and with a limit of
// its own, the answer is the same whatever the session's character_set_results
// and sql_select_limit are.
func value(ctx context.Context, conn innerConn, expression string) (string, error) {
	rows, err := conn.QueryContext(ctx, "SELECT CAST("+expression+" AS BINARY) LIMIT 1", nil)
	if err != nil {
		return "", err
	}
	defer rows.Close()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		if err == io.EOF {
			err = io.ErrUnexpectedEOF
		}
		return "", err
	}
	return text(dest[0]), nil
}
