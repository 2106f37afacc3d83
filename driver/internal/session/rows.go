package session

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/pool"
)

// QueryValue returns the value of an SQL expression on the application's connection, like the function QueryValue.
func (s *Session) QueryValue(ctx context.Context, expression string) (string, error) {
	return QueryValue(ctx, s.Conn, expression)
}

// QueryValue queries the value of an expression, "" for NULL. The query casts it to bytes and has
// its own LIMIT, so the result does not depend on the session's character_set_results
// and sql_select_limit. The error is io.ErrUnexpectedEOF if the server returns no row, and
// otherwise conn's.
func QueryValue(ctx context.Context, conn pool.Conn, expression string) (string, error) {
	_, row, err := QueryRow(ctx, conn, "SELECT CAST("+expression+" AS BINARY) LIMIT 1")
	switch {
	case err != nil:
		return "", err
	case len(row) == 0:
		return "", io.ErrUnexpectedEOF
	}
	return row[0], nil
}

// textOf returns a value of a text result as a string, for any type that the inner driver uses.
func textOf(v driver.Value, _ int) string {
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

// QueryRow runs a query, reads its whole result, and returns the names of its columns and its first row as text, "" for NULL.
// row is nil if there is no row. The error is conn's.
func QueryRow(ctx context.Context, conn pool.Conn, query string) (columns, row []string, err error) {
	rows, err := conn.QueryContext(ctx, query, nil)
	if err != nil {
		return nil, nil, err
	}
	defer rows.Close()
	columns = rows.Columns()
	values := make([]driver.Value, len(columns))
	for err = rows.Next(values); err == nil; err = rows.Next(values) {
		if row == nil {
			row = lo.Map(values, textOf)
		}
	}
	if err != io.EOF {
		return nil, nil, err
	}
	return columns, row, nil
}

// ResultCounts returns the affected rows and the last insert id of a result.
func ResultCounts(res driver.Result) (affected, id int64) {
	affected, _ = res.RowsAffected() // go-sql-driver returns no errors here
	id, _ = res.LastInsertId()
	return affected, id
}
