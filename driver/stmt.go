package driver

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/servererr"
)

var _ session.Stmt = (*stmt)(nil)
var _ driver.NamedValueChecker = (*stmt)(nil)

// stmt is a prepared statement whose rows may need keys, or that has effects to be
// noted each time. Where the marker goes depends on which arguments are keys already, so
// it keeps one statement of the inner driver's for each text that came up; the likely one
// is made first.
type stmt struct {
	planner.Prepared
	c *conn

	inner    map[string]session.Stmt
	template *insert.Template // of the last execution, and its inner statement
	last     session.Stmt
}

// prepare makes a statement of ours, and the inner one that fills every row.
func (c *conn) prepare(ctx context.Context, st *planner.Statement, text string) (*stmt, error) {
	prepared, err := c.Planner.Prepare(ctx, st, text)
	s := &stmt{Prepared: prepared, c: c, inner: make(map[string]session.Stmt, 1)}
	var inner session.Stmt
	if err == nil {
		inner, err = s.variant(ctx, st.Likely(text))
	}
	if err == nil {
		if len(st.Plan.Inserts) == 0 { // its text is the inner one's
			s.Prepared.NumInput = inner.NumInput()
		}
		return s, nil
	}
	if s.Fixed {
		return nil, err
	}
	if c.Permitted != nil && st.Way == planner.Filled && servererr.Denied(err) {
		return nil, c.Denial(ctx, st, text, err)
	}
	c.After(st, err)
	if again := c.Replanned(ctx, st, text, err); again != nil {
		return c.prepare(ctx, again, text)
	}
	return nil, c.explain(ctx, st, text, nil, err)
}

// variant returns the inner statement of a text, which has to mean what the user's did.
func (s *stmt) variant(ctx context.Context, text string) (session.Stmt, error) {
	if inner, ok := s.inner[text]; ok {
		return inner, nil
	}
	if err := s.KeepsMeaning(ctx); err != nil {
		return nil, err
	}
	inner, err := s.c.PrepareStmt(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(s.inner) >= maxVariants {
		for old, stmt := range s.inner { // any one: which is wanted next cannot be told
			stmt.Close()
			delete(s.inner, old)
			break
		}
		s.template, s.last = nil, nil
	}
	s.inner[text] = inner
	return inner, nil
}

// maxVariants bounds the statements one prepared statement keeps on the
// server, which has a limit for all clients together.
const maxVariants = 16

// choose makes the template's statement the one that is sent. A text that has its ids in it
// serves one execution only, and none is kept.
func (s *stmt) choose(ctx context.Context, t *insert.Template, wantRows bool) (err error) {
	s.template, s.last = nil, nil
	switch {
	case !t.Literal:
		if s.last, err = s.variant(ctx, t.Text); err == nil {
			s.template = t
		}
		return err
	case wantRows:
		return s.Statement.Plan.Inserts[0].Table.Refuse("with a placeholder for each key it has more than a statement may have, and it answers with rows", "write fewer rows, or run it with Exec")
	}
	return s.KeepsMeaning(ctx)
}

// NumInput is the count of the user's own placeholders.
func (s *stmt) NumInput() int { return s.Prepared.NumInput }

// CheckNamedValue converts as the inner driver does.
func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.c.Conn.CheckNamedValue(nv)
}

// ExecContext executes the statement, with keys for the rows it writes.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	e := execution{c: s.c, stmt: s, args: args}
	if err := e.run(ctx); err != nil {
		return nil, s.c.connector.refused(err)
	}
	return e.result, nil
}

// QueryContext is ExecContext for statements that answer with rows.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	e := execution{c: s.c, stmt: s, args: args, wantRows: true}
	if err := e.run(ctx); err != nil {
		return nil, s.c.connector.refused(err)
	}
	return e.rows, nil
}

// Close closes all statements on the server.
func (s *stmt) Close() error {
	var errs []error
	for _, inner := range s.inner {
		errs = append(errs, inner.Close())
	}
	s.inner = nil
	return errors.Join(errs...)
}

// Exec and Query are for those who go around database/sql.

func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}
