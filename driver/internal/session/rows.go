package session

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"slices"

	"github.com/leafsql/leafsql/driver/internal/ownpool"
)

// Database asks for the database in use, "" for none.
func Database(ctx context.Context, conn ownpool.Conn) (string, error) {
	return Value(ctx, conn, "DATABASE()")
}

// Value asks what an expression is, "" for NULL. As bytes, and with a limit of
// its own, the answer is the same whatever the session's character_set_results
// and sql_select_limit are.
func Value(ctx context.Context, conn ownpool.Conn, expression string) (string, error) {
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
	return Text(dest[0]), nil
}

// Text reads a value of a text result, whatever the inner driver made of it.
func Text(v driver.Value) string {
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

// Rows are rows that were read whole.
type Rows struct {
	All     [][]driver.Value
	columns []string
}

// ReadAll runs a query and reads all its rows.
func ReadAll(ctx context.Context, conn ownpool.Conn, text string) (*Rows, error) {
	rows, err := conn.QueryContext(ctx, text, nil)
	if err != nil {
		return nil, err
	}
	defer rows.Close()
	r := &Rows{columns: rows.Columns()}
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
		r.All = append(r.All, row)
	}
}

// Counts are the affected rows and the id of an answer.
func Counts(res driver.Result) (affected, id int64) {
	affected, _ = res.RowsAffected() // go-sql-driver gives no errors here
	id, _ = res.LastInsertId()
	return affected, id
}
