package driver

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/internal/servererr"
)

var _ pool.Stmt = (*stmt)(nil)
var _ driver.NamedValueChecker = (*stmt)(nil)

// stmt is a prepared statement that may need keys, or that has effects on the session. The
// text to send depends on which arguments are keys, since one generated id is written as
// the marker (see package insert). So stmt keeps an inner statement for each variant of the
// text that was needed. The likely variant is prepared first.
type stmt struct {
	planner.Prepared
	c *conn

	variants     map[string]pool.Stmt
	lastTemplate *insert.Template // template of the last execution; lastVariant is its inner statement
	lastVariant  pool.Stmt
}

// prepare returns a stmt, with the likely variant prepared.
func (c *conn) prepare(ctx context.Context, st *planner.Statement, text string) (*stmt, error) {
	prepared, err := c.Planner.Prepare(ctx, st, text)
	s := &stmt{Prepared: prepared, c: c, variants: make(map[string]pool.Stmt, 1)}
	var inner pool.Stmt
	if err == nil {
		inner, err = s.prepareVariant(ctx, st.LikelyText(text))
	}
	if err == nil {
		if len(st.Plan.Inserts) == 0 { // the inner statement has the same text
			s.Prepared.NumInput = inner.NumInput()
		}
		return s, nil
	}
	if s.Fixed {
		return nil, err
	}
	if c.Permitted != nil && st.Way == planner.Filled && servererr.Denied(err) {
		return nil, c.ExplainDenial(ctx, st, text, err)
	}
	c.RecordEffects(st, true, err)
	if again := c.Replan(ctx, st, text, err); again != nil {
		return c.prepare(ctx, again, text)
	}
	return nil, c.explainError(ctx, st, text, nil, err)
}

// prepareVariant returns the inner statement for text. It prepares a new one only if the user's query still has the same meaning in the session.
func (s *stmt) prepareVariant(ctx context.Context, text string) (pool.Stmt, error) {
	if inner, ok := s.variants[text]; ok {
		return inner, nil
	}
	if err := s.CheckMeaning(ctx); err != nil {
		return nil, err
	}
	inner, err := s.c.PrepareStmt(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(s.variants) >= maxVariants {
		for old, stmt := range s.variants { // evict an arbitrary variant
			stmt.Close()
			delete(s.variants, old)
			break
		}
		s.lastTemplate, s.lastVariant = nil, nil
	}
	s.variants[text] = inner
	return inner, nil
}

// maxVariants limits the inner statements of one stmt, because the server limits the
// number of prepared statements of all clients together.
const maxVariants = 16

// chooseVariant sets lastVariant, the statement to send, to the inner statement of t, a text with placeholders for
// the keys. A text that contains the ids themselves is used for only one execution, so it is not prepared.
func (s *stmt) chooseVariant(ctx context.Context, t *insert.Template, wantRows bool) (err error) {
	s.lastTemplate, s.lastVariant = nil, nil
	switch {
	case !t.Literal:
		if s.lastVariant, err = s.prepareVariant(ctx, t.Text); err == nil {
			s.lastTemplate = t
		}
		return err
	case wantRows:
		return s.Statement.Plan.Inserts[0].Table.Refuse("with a placeholder for each key it has more placeholders than the server allows, and it returns rows", "write fewer rows, or run it with Exec")
	}
	return s.CheckMeaning(ctx)
}

// NumInput returns the number of placeholders in the user's query.
func (s *stmt) NumInput() int { return s.Prepared.NumInput }

// CheckNamedValue converts an argument as the inner driver does.
func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.c.Conn.CheckNamedValue(nv)
}

// ExecContext executes the statement, with generated keys for the rows that it writes.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	e := &execution{c: s.c, stmt: s, args: args}
	if err := e.run(ctx); err != nil {
		return nil, s.c.connector.countRefusal(err)
	}
	return e.result, nil
}

// QueryContext executes a statement that returns rows, such as INSERT … RETURNING.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	e := &execution{c: s.c, stmt: s, args: args, wantRows: true}
	if err := e.run(ctx); err != nil {
		return nil, s.c.connector.countRefusal(err)
	}
	return e.rows, nil
}

// Close closes all inner statements.
func (s *stmt) Close() error {
	var errs []error
	for _, inner := range s.variants {
		errs = append(errs, inner.Close())
	}
	s.variants = nil
	return errors.Join(errs...)
}

// Exec and Query are for callers that bypass database/sql.

func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), namedValues(args))
}

func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), namedValues(args))
}
