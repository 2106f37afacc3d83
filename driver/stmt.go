package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
	"github.com/leafsql/leafsql/driver/internal/session"
)

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// stmt is a prepared statement whose rows may need keys, or that has effects to be
// noted each time. Where the marker goes depends on which arguments are keys already, so
// it keeps one statement of the inner driver's for each text that came up; the likely one
// is made first.
type stmt struct {
	c       *conn
	text    string
	fixed   bool    // it writes no table that a rule means: what it runs never changes
	table   string  // the configured table that it writes, db.table; "": none
	reads   bool    // sql_mode or the character set decide what its text means
	meaning meaning // when it was prepared
	schema  *schema
	plans   *plancache.Cache[*statement]
	st      *statement

	numInput int // the user's own placeholders
	inner    map[string]innerStmt
	template *insert.Template // of the last execution, and its inner statement
	last     innerStmt
}

// A meaning is what a session's texts mean: the database in use and, where a text could
// be read in several ways, how the session reads it.
type meaning struct{ db, reading string }

// prepare makes a statement of ours, and the inner one that fills every row.
func (c *conn) prepare(ctx context.Context, st *statement, text string) (driver.Stmt, error) {
	s := &stmt{c: c, text: text, schema: c.schema, plans: c.plans, st: st, inner: make(map[string]innerStmt, 1)}
	if len(st.plan.Inserts) > 0 {
		s.table = st.plan.Inserts[0].Table.Ref.(*table).name.String()
	}
	var err error
	if s.fixed = s.table == "" && !st.mayFill; !s.fixed {
		// The server keeps the meaning of what is prepared now, and not of what is
		// prepared of the same text later.
		s.reads = !readsOneWay(text)
		s.meaning, err = s.now(ctx)
	}
	var inner innerStmt
	if err == nil {
		inner, err = s.variant(ctx, s.likely())
	}
	if err == nil {
		if s.numInput = st.plan.NumInput; s.table == "" { // its text is the inner one's
			s.numInput = inner.NumInput()
		}
		return s, nil
	}
	if s.fixed {
		return nil, err
	}
	c.after(st, err)
	if again := c.replanned(ctx, st, text, err); again != nil {
		return c.prepare(ctx, again, text)
	}
	return nil, c.explain(ctx, st, text, nil, err)
}

// likely is the text that is wanted first: with every row filled that can be. What runs
// in several steps, or with its ids in its text, is prepared to see its errors now.
func (s *stmt) likely() string {
	if s.st.way != filled {
		return s.text
	}
	blocks := make([]insert.Block, len(s.st.plan.Inserts))
	for i, in := range s.st.plan.Inserts {
		blocks[i] = insert.Block{First: 1, N: in.Lacking + len(in.ArgKeys)}
	}
	if t := s.st.plan.Template(blocks); !t.Literal {
		return t.Text
	}
	return s.text
}

// variant returns the inner statement of a text, which has to mean what the user's did.
func (s *stmt) variant(ctx context.Context, text string) (innerStmt, error) {
	if inner, ok := s.inner[text]; ok {
		return inner, nil
	}
	if err := s.keepsMeaning(ctx); err != nil {
		return nil, err
	}
	inner, err := s.c.prepareInner(ctx, text)
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

// now is what the text would mean if it was prepared now. What is not known of that is
// asked for.
func (s *stmt) now(ctx context.Context) (m meaning, err error) {
	if err = s.c.KnowDatabase(ctx, s.text); err == nil && s.reads {
		err = s.c.KnowSettings(ctx, s.text)
		m.reading = s.c.Reading
	}
	m.db = s.c.DB
	return m, err
}

// sameMeaning says whether the text still means what it did when it was prepared.
func (s *stmt) sameMeaning(ctx context.Context) (bool, error) {
	now, err := s.now(ctx)
	return now == s.meaning, err
}

// keepsMeaning refuses a text that would not mean now what the user's meant when it was
// prepared.
func (s *stmt) keepsMeaning(ctx context.Context) error {
	if s.fixed {
		return nil
	}
	if same, err := s.sameMeaning(ctx); same || err != nil {
		return err
	}
	return &RefusedError{
		Table:  s.table,
		Reason: "the statement was prepared under another database in use, sql_mode or character set, and these arguments need a text that was not prepared then",
		Fix:    "prepare it again after such a change",
	}
}

// readsOneWay says whether a text means the same under every sql_mode and every
// character set: it has no quotes but around plain literals, no operators that
// a mode gives another meaning, and no characters but ASCII.
func readsOneWay(text string) bool {
	return !strings.ContainsAny(text, "\"\\|![-") && !strings.Contains(text, "''") && !strings.Contains(strings.ToLower(text), "not") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// NumInput is the count of the user's own placeholders.
func (s *stmt) NumInput() int { return s.numInput }

// CheckNamedValue converts as the inner driver does.
func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.c.Conn.CheckNamedValue(nv)
}

// ExecContext executes the statement, with keys for the rows it writes.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if err := s.begin(ctx, args); err != nil {
		return nil, err
	}
	e := execution{c: s.c, stmt: s, st: s.st, text: s.text, args: args}
	return e.exec(ctx)
}

// QueryContext is ExecContext for statements that answer with rows.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if err := s.begin(ctx, args); err != nil {
		return nil, err
	}
	e := execution{c: s.c, stmt: s, st: s.st, text: s.text, args: args, rows: true}
	return e.query(ctx)
}

// begin is what comes before each execution.
func (s *stmt) begin(ctx context.Context, args []driver.NamedValue) error {
	err := s.refresh(ctx, args)
	if err == nil && s.st.way == staged {
		err = s.keepsMeaning(ctx)
	}
	if err != nil {
		return refused(err)
	}
	return nil
}

// send sends the statement with the ids of blocks.
func (s *stmt) send(ctx context.Context, e *execution, blocks []insert.Block) (err error) {
	p := e.st.plan
	t := p.Template(blocks)
	if t.Literal {
		return s.sendOnce(ctx, e, t, blocks)
	}
	if t != s.template {
		inner, err := s.variant(ctx, t.Text)
		if err != nil {
			s.template = nil
			return err
		}
		s.template, s.last = t, inner
	}
	args := s.c.bindArgs(p, t, blocks, e.args)
	if e.rows {
		e.answer, err = s.last.QueryContext(ctx, args)
	} else {
		e.result, err = s.last.ExecContext(ctx, args)
	}
	s.c.unbindArgs()
	return err
}

// sendOnce sends a text that has its ids in it and serves this execution only.
func (s *stmt) sendOnce(ctx context.Context, e *execution, t *insert.Template, blocks []insert.Block) (err error) {
	if err = s.keepsMeaning(ctx); err != nil {
		return err
	}
	in := &e.st.plan.Inserts[0]
	if e.rows {
		return s.c.connector.counts.note(&RefusedError{in.Table.Ref.(*table).name.String(), "", "with a placeholder for each key it has more than a statement may have, and it answers with rows", "write fewer rows, or run it with Exec"})
	}
	e.result, err = s.c.execArgs(ctx, t.Text, s.c.bindArgs(e.st.plan, t, blocks, e.args), true)
	s.c.unbindArgs()
	return err
}

// refresh plans the text again when what was known of the tables has changed.
func (s *stmt) refresh(ctx context.Context, args []driver.NamedValue) error {
	if len(args) != s.numInput { // database/sql sees to it, others may not
		return fmt.Errorf("leafsql: the statement takes %d arguments, got %d", s.numInput, len(args))
	}
	s.c.follow()
	schema := s.c.connector.schema.Load()
	if s.fixed || schema == s.schema && s.plans == s.c.plans && !s.c.opaque && s.st.expires.IsZero() {
		return nil
	}
	if s.c.DBUnknown && session.MayReadCounts(s.text) && !s.st.positional() {
		return nil // asking would change what it stores
	}
	if same, err := s.sameMeaning(ctx); err != nil || !same {
		return err // it means what it meant when it was prepared
	}
	st, err := s.c.statement(ctx, s.text)
	if err != nil {
		return err
	}
	s.st, s.schema, s.plans = st, schema, s.c.plans
	return nil
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

// An innerStmt is what the inner driver's statements have to be.
type innerStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

// prepareInner prepares a text on the server.
func (c *conn) prepareInner(ctx context.Context, text string) (innerStmt, error) {
	s, err := c.Conn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	if inner, ok := s.(innerStmt); ok {
		return inner, nil
	}
	s.Close()
	return nil, errors.New("leafsql: the wrapped driver's statements take no context; wrap one that implements driver.StmtExecContext and driver.StmtQueryContext")
}

// tryPrepare is the server's error for a text, in its own words: preparing runs nothing.
func (c *conn) tryPrepare(ctx context.Context, text string) error {
	s, err := c.Conn.PrepareContext(ctx, text)
	if err == nil {
		s.Close()
	}
	return err
}
