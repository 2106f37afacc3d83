package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// What is asked on the application's own connection, because only its session
// knows the answer, and rows that were read whole.

// knowSession asks for what decides how the session reads texts, where it is not known,
// for a text to be read.
func (c *conn) knowSession(ctx context.Context, text string) error {
	if c.settings.SessionKnown {
		return nil
	}
	if err := c.mayAsk(text, "sql_mode or character set", "pass strings as arguments"); err != nil {
		return err
	}
	answer, err := value(ctx, c.innerConn, "CONCAT(@@sql_mode, ' ', @@character_set_client, ' ', @@collation_connection)")
	if err != nil {
		return err
	}
	mode, charset, _ := strings.Cut(answer, " ")
	charset, _, _ = strings.Cut(charset, " ")
	c.settings.SetSession(mode, charset)
	c.reading = answer
	c.replan()
	return nil
}

// forgetSession notes that a text may have changed that.
func (c *conn) forgetSession() {
	if c.settings.SessionKnown {
		c.settings = c.connector.settings
		c.replan()
	}
}

// allowsSeveral says whether the connection takes texts of several statements. Where
// that is not known the server is asked, once: a connection that does not has an error
// for the question.
func (c *conn) allowsSeveral(ctx context.Context, text string) (bool, error) {
	if c.severalKnown {
		return c.several, nil
	}
	if err := c.mayAsk(text, "capability for several statements in a text", "send its statements one by one"); err != nil {
		return false, err
	}
	_, err := c.innerConn.ExecContext(ctx, "DO 0; DO 0", nil)
	var answer *mysql.MySQLError
	switch {
	case err == nil, isServerError(err, errParse):
		c.several, c.severalKnown = err == nil, true
		return c.several, nil
	case errors.As(err, &answer):
		return false, &RefusedError{Reason: "it has to be sent in parts, and whether the connection allows several statements cannot be asked (" + answer.Message + ")", Fix: "send its statements one by one"}
	}
	return false, err
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

// valueText reads a value of a text result, whatever the inner driver made of it.
func valueText(v driver.Value) string {
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

// visibleColumns asks for the columns of a table as this connection sees it. It reads no
// row, so that no snapshot of a transaction begins with it. For the question
// character_set_results and sql_select_limit are set, and put back behind it, so that
// names come in UTF-8 and no row is cut off.
func (c *conn) visibleColumns(ctx context.Context, text string, table insert.TableName) ([]string, error) {
	if err := c.mayAsk(text, "columns", "list them"); err != nil {
		return nil, err
	}
	if err := c.knowDatabase(ctx, text); err != nil {
		return nil, err
	}
	if _, err := c.innerConn.ExecContext(ctx, "SET @leafsql_r = @@character_set_results, @leafsql_o = @@sql_select_limit,"+
		" character_set_results = utf8mb4, sql_select_limit = 18446744073709551615", nil); err != nil {
		return nil, err
	}
	rows, err := c.readAll(ctx, "SELECT * FROM "+c.nameOf(table).Quoted()+" LIMIT 0")
	if c.always(ctx, "SET character_set_results = @leafsql_r, sql_select_limit = @leafsql_o") != nil {
		c.giveUp()
		return nil, driver.ErrBadConn // nothing was written
	}
	if err != nil {
		return nil, err
	}
	return rows.columns, nil
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
	return valueText(dest[0]), nil
}

// readRows are rows that were read whole.
type readRows struct {
	columns []string
	rows    [][]driver.Value
}

func (r *readRows) Columns() []string         { return r.columns }
func (r *readRows) Close() error              { return nil }
func (r *readRows) Next([]driver.Value) error { return io.EOF } // as an answer they have none

// readAll runs a query and reads all its rows.
func (c *conn) readAll(ctx context.Context, text string) (*readRows, error) {
	rows, err := c.innerConn.QueryContext(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	r := &readRows{columns: rows.Columns()}
	for {
		row := make([]driver.Value, len(r.columns))
		switch err := rows.Next(row); err {
		case nil:
		case io.EOF:
			return r, nil
		default:
			return nil, err
		}
		for i, v := range row {
			if b, ok := v.([]byte); ok {
				row[i] = slices.Clone(b)
			}
		}
		r.rows = append(r.rows, row)
	}
}
