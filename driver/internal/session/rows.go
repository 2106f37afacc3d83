package session

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/ownpool"
)

// Value returns the value of an expression on the application's connection, as the function Value does.
func (s *Session) Value(ctx context.Context, expression string) (string, error) {
	return Value(ctx, s.Conn, expression)
}

// Value asks what an expression is, "" for NULL. As bytes, and with a limit of
// its own, the answer is the same whatever the session's character_set_results
// and sql_select_limit are.
func Value(ctx context.Context, conn ownpool.Conn, expression string) (string, error) {
	_, row, err := Row(ctx, conn, "SELECT CAST("+expression+" AS BINARY) LIMIT 1")
	switch {
	case err != nil:
		return "", err
	case len(row) == 0:
		return "", io.ErrUnexpectedEOF
	}
	return row[0], nil
}

// text reads a value of a text result, whatever the inner driver made of it.
func text(v driver.Value, _ int) string {
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

// Row runs a query to its end, and returns the names of its columns and its first row as text, "" for NULL. row is nil if there
// is none.
func Row(ctx context.Context, conn ownpool.Conn, query string) (columns, row []string, err error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	columns = rows.Columns()
	values := make([]driver.Value, len(columns))
	for err = rows.Next(values); err == nil; err = rows.Next(values) {
		if row == nil {
			row = lo.Map(values, text)
		}
	}
	if err != io.EOF {
		return nil, nil, err
	}
	return columns, row, nil
}

// Counts are the affected rows and the id of an answer.
func Counts(res driver.Result) (affected, id int64) {
	affected, _ = res.RowsAffected() // go-sql-driver gives no errors here
	id, _ = res.LastInsertId()
	return affected, id
}
