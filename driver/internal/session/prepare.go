package session

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/leafsql/leafsql/driver/internal/pool"
)

// PrepareStmt prepares a text on the server. The caller has to close the statement. The error is the inner
// driver's, or an error with a hint if the driver's statements accept no context.
func (s *Session) PrepareStmt(ctx context.Context, text string) (pool.Stmt, error) {
	stmt, err := s.Conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if inner, ok := stmt.(pool.Stmt); ok {
		return inner, nil
	}
	stmt.Close()
	return nil, errors.New("leafsql: the wrapped driver's statements accept no context; wrap a driver whose statements implement driver.StmtExecContext and driver.StmtQueryContext")
}

// TryPrepare prepares a text, which runs nothing, and returns the server's error for it, or nil.
func (s *Session) TryPrepare(ctx context.Context, text string) error {
	stmt, err := s.Conn.PrepareContext(ctx, text)
	if err == nil {
		stmt.Close()
	}
	return err
}

// ExecArgs executes a text with arguments. It prepares the text if prepared is set, as for a
// statement that the user prepared, or if the inner driver cannot interpolate the arguments.
// It never returns ErrSkip: database/sql would then prepare and execute the query, which would need other ids.
func (s *Session) ExecArgs(ctx context.Context, text string, args []driver.NamedValue, prepared bool) (driver.Result, error) {
	if !prepared || len(args) == 0 {
		res, err := s.Conn.ExecContext(ctx, text, args)
		if err != driver.ErrSkip {
			return res, err
		}
	}
	stmt, err := s.PrepareStmt(ctx, text)
	if err != nil {
		return nil, err
	}
	defer stmt.Close()
	return stmt.ExecContext(ctx, args)
}

// ExecText runs a text without arguments.
func (s *Session) ExecText(ctx context.Context, text string) error {
	_, err := s.Conn.ExecContext(ctx, text, nil)
	return err
}

// Renumber returns a copy of args with ordinals from 1.
func Renumber(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}
