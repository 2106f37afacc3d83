package pool

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// failing is a server that returns the same error on every connection.
type failing struct {
	err   error
	dials int
}

func (f *failing) Connect(context.Context) (driver.Conn, error) {
	f.dials++
	return &failingConn{f: f}, nil
}
func (f *failing) Driver() driver.Driver { return nil }

type failingConn struct {
	Conn
	f *failing
}

func (c *failingConn) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	if text == sessionSettings {
		return driver.ResultNoRows, nil
	}
	return nil, c.f.err
}
func (c *failingConn) QueryContext(_ context.Context, _ string, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	return nil, c.f.err
}
func (c *failingConn) PrepareContext(_ context.Context, text string) (driver.Stmt, error) {
	if text == "no" {
		return nil, c.f.err
	}
	return &failingStmt{f: c.f}, nil
}
func (c *failingConn) CheckNamedValue(*driver.NamedValue) error { return nil }
func (c *failingConn) ResetSession(context.Context) error       { return nil }
func (c *failingConn) IsValid() bool                            { return true }
func (c *failingConn) Close() error                             { return nil }

type failingStmt struct {
	Stmt
	f *failing
}

func (s *failingStmt) ExecContext(context.Context, []driver.NamedValue) (driver.Result, error) {
	return nil, s.f.err
}
func (s *failingStmt) QueryContext(context.Context, []driver.NamedValue) (driver.Rows, error) {
	return nil, s.f.err
}
func (s *failingStmt) CheckNamedValue(*driver.NamedValue) error { return nil }
func (s *failingStmt) NumInput() int                            { return -1 }
func (s *failingStmt) Close() error                             { return nil }

// TestConnectionWithServerErrorIsReplaced: after an error that another server would not return, from any method,
// the next statement uses a new connection.
func TestConnectionWithServerErrorIsReplaced(t *testing.T) {
	ways := map[string]func(*sql.DB) error{
		"exec":             func(db *sql.DB) error { _, err := db.Exec("x"); return err },
		"query":            func(db *sql.DB) error { _, err := db.Query("x"); return err },
		"prepare":          func(db *sql.DB) error { _, err := db.Prepare("no"); return err },
		"query, prepared":  func(db *sql.DB) error { _, err := db.Query("x", 1); return err },
		"exec, a prepared": func(db *sql.DB) error { s, _ := db.Prepare("x"); defer s.Close(); _, err := s.Exec(); return err },
	}
	for name, way := range ways {
		for number, leaves := range map[uint16]bool{1047: true, 1290: true, 1792: true, 1836: true, 3100: true, 1213: false, 1062: false} {
			server := &failing{err: &mysql.MySQLError{Number: number}}
			db := Open(server, 2)
			for range 3 {
				var answer *mysql.MySQLError
				if err := way(db); !errors.As(err, &answer) || answer.Number != number {
					t.Errorf("%s: error %v, want error %d", name, err, number)
				}
			}
			if want := map[bool]int{true: 3, false: 1}[leaves]; server.dials != want {
				t.Errorf("%s: %d connections for 3 errors %d, want %d", name, server.dials, number, want)
			}
			db.Close()
		}
	}
}
