package session

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
)

// A Stmt is what the inner driver's statements have to be.
type Stmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// PrepareStmt prepares a text on the server.
func (s *Session) PrepareStmt(ctx context.Context, text string) (Stmt, error) {
	stmt, err := s.Conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if inner, ok := stmt.(Stmt); ok {
		return inner, nil
	}
	stmt.Close()
	return nil, errors.New("leafsql: the wrapped driver's statements take no context; wrap one that implements driver.StmtExecContext and driver.StmtQueryContext")
}

// TryPrepare is the server's error for a text, in its own words: preparing runs nothing.
func (s *Session) TryPrepare(ctx context.Context, text string) error {
	stmt, err := s.Conn.PrepareContext(ctx, text)
	if err == nil {
		stmt.Close()
	}
	return err
}

// ExecArgs executes a text with arguments: prepared where the inner driver
// cannot put them into the text, or where the user prepared it. Passing its
// ErrSkip up would make database/sql prepare, which would draw ids once more.
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

// Renumber gives arguments the ordinals of a text of their own.
func Renumber(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}
