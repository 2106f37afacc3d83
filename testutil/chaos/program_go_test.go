//go:build storm

package chaos

import (
	"database/sql"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/go-sql-driver/mysql"
)

// programEnv is the environment variable that makes the test binary run as the Go program.
const programEnv = "LEAFSQL_CHAOS_PROGRAM"

// rowsPerStatement is the number of rows of most statements.
const rowsPerStatement = 20

// A goWriter is the writer in Go.
type goWriter struct{ writer, next, left int }

// writeOrders runs one life of a writer in Go.
func writeOrders() error {
	w := new(goWriter)
	for name, value := range map[string]*int{"WRITER": &w.writer, "NEXT": &w.next, "LEFT": &w.left} {
		var err error
		if *value, err = strconv.Atoi(os.Getenv(name)); err != nil {
			return err
		}
	}
	ports := strings.Split(os.Getenv("DB_PORTS"), ",")
	for turn := w.writer; w.left > 0; turn++ {
		err := w.write(ports[turn%len(ports)])
		if err == nil {
			continue
		}
		number, text := uint16(0), strings.ReplaceAll(err.Error(), "\n", " ")
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok {
			number = e.Number
		}
		fmt.Printf("! %d %s\n", number, text)
		time.Sleep(50 * time.Millisecond)
	}
	return nil
}

// write inserts rows through one proxy, until all are acknowledged or a statement fails.
func (w *goWriter) write(port string) error {
	cfg := mysql.NewConfig()
	cfg.Net, cfg.Addr = "tcp", os.Getenv("DB_HOST")+":"+port
	cfg.User, cfg.Passwd, cfg.DBName = os.Getenv("DB_USER"), os.Getenv("DB_PASSWORD"), os.Getenv("DB_NAME")
	db, err := sql.Open("mysql", cfg.FormatDSN())
	if err != nil {
		return err
	}
	defer db.Close()
	one, err := db.Prepare(insertText(1))
	if err != nil {
		return err
	}
	several, err := db.Prepare(insertText(rowsPerStatement))
	if err != nil {
		return err
	}
	for i := 0; w.left > 0; i++ {
		var acknowledged string
		rows := rowsPerStatement
		switch i % 8 {
		case 0:
			rows = 1
			acknowledged, err = w.text(db, rows)
		case 1:
			rows = 1
			acknowledged, err = w.prepared(one, rows)
		case 2:
			rows++
			acknowledged, err = w.transaction(db, one)
		case 3, 5, 7:
			acknowledged, err = w.prepared(several, rows)
		default:
			acknowledged, err = w.text(db, rows)
		}
		if err != nil {
			return err
		}
		os.Stdout.WriteString(acknowledged)
		w.left -= rows
	}
	return nil
}

// insertText returns an INSERT for preparing.
func insertText(rows int) string {
	return "INSERT INTO orders (writer, n) VALUES (?, ?)" + strings.Repeat(", (?, ?)", rows-1)
}

// transaction inserts rows in a transaction of two statements.
func (w *goWriter) transaction(db *sql.DB, one *sql.Stmt) (acknowledged string, err error) {
	tx, err := db.Begin()
	if err != nil {
		return "", err
	}
	defer tx.Rollback()
	first, err := w.text(tx, rowsPerStatement)
	if err != nil {
		return "", err
	}
	second, err := w.prepared(tx.Stmt(one), 1)
	if err != nil {
		return "", err
	}
	return first + second, tx.Commit()
}

// text inserts rows with values in the text.
func (w *goWriter) text(db interface {
	Exec(string, ...any) (sql.Result, error)
}, rows int) (acknowledged string, err error) {
	first := w.take(rows)
	var values []string
	for n := first; n < w.next; n++ {
		values = append(values, fmt.Sprintf("(%d, %d)", w.writer, n))
	}
	return acknowledge(rows, first)(db.Exec("INSERT INTO orders (writer, n) VALUES " + strings.Join(values, ", ")))
}

// prepared inserts rows with a prepared statement.
func (w *goWriter) prepared(insert *sql.Stmt, rows int) (acknowledged string, err error) {
	first := w.take(rows)
	var args []any
	for n := first; n < w.next; n++ {
		args = append(args, w.writer, n)
	}
	return acknowledge(rows, first)(insert.Exec(args...))
}

// take reserves the numbers of the next rows and returns the first one.
func (w *goWriter) take(rows int) (first int) {
	w.next += rows
	return w.next - rows
}

// acknowledge returns a function that makes the line that acknowledges a statement from its result.
func acknowledge(rows, first int) func(sql.Result, error) (string, error) {
	return func(result sql.Result, err error) (string, error) {
		if err != nil {
			return "", err
		}
		id, err := result.LastInsertId()
		return fmt.Sprintf("%d %d %d\n", rows, first, id), err
	}
}
