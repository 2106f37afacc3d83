package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// stmt is a prepared statement whose rows may need keys. Where the mark goes
// depends on which arguments are keys already, so it keeps one statement of
// the inner driver's for each text that came up; the likely one is made first.
type stmt struct {
	c    *conn
	text string
	db   string // in use when it was prepared, and so what its names mean
	view *view
	e    *entry

	inner map[string]driver.Stmt
	shape *insert.Shape // of the last execution, and its inner statement
	last  driver.Stmt
	spent []driver.Stmt // done with, but perhaps still read from
}

// prepare makes a statement of ours, and the inner one that fills every row.
func (c *conn) prepare(ctx context.Context, e *entry, text string) (driver.Stmt, error) {
	s := &stmt{c: c, text: text, db: c.db, view: c.view, e: e, inner: make(map[string]driver.Stmt, 1)}
	likely := e.plan.Shape(s.likely())
	first := likely.Text
	if likely.Literal { // made anew each time; what can be checked now is the user's text
		first = text
	}
	if _, err := s.variant(ctx, first); err != nil {
		return nil, c.native(ctx, e.plan, text, err)
	}
	return s, nil
}

// likely are fills for every row that can be filled.
func (s *stmt) likely() []insert.Fill {
	fills := make([]insert.Fill, len(s.e.plan.Inserts))
	for i, in := range s.e.plan.Inserts {
		fills[i] = insert.Fill{First: 1, N: in.Holes + len(in.ArgKeys)}
	}
	return fills
}

// variant returns the inner statement of a text.
func (s *stmt) variant(ctx context.Context, text string) (driver.Stmt, error) {
	if inner, ok := s.inner[text]; ok {
		return inner, nil
	}
	inner, err := s.make(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(s.inner) >= maxVariants {
		for old, stmt := range s.inner { // any: batches whose keys come and go have no favourite
			stmt.Close()
			delete(s.inner, old)
			break
		}
		s.shape, s.last = nil, nil
	}
	s.inner[text] = inner
	return inner, nil
}

// maxVariants bounds the statements one prepared statement keeps on the
// server, which has a limit for all clients together.
const maxVariants = 16

// make prepares a text, which has to mean what the user's did.
func (s *stmt) make(ctx context.Context, text string) (driver.Stmt, error) {
	if err := s.sameDatabase(); err != nil {
		return nil, err
	}
	return s.c.innerConn.PrepareContext(ctx, text)
}

func (s *stmt) sameDatabase() error {
	if s.c.db == s.db && !s.c.dbUnknown {
		return nil
	}
	return &RefusedError{
		Table:  tableOf(s.e.plan).name,
		Reason: "the statement was prepared under another database in use, and these arguments need a text that was not prepared then",
		Way:    "write db.table in it, or prepare it again after USE",
	}
}

// NumInput is the count of the user's own placeholders.
func (s *stmt) NumInput() int { return s.e.plan.NumInput }

// CheckNamedValue converts as the inner driver does.
func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.c.innerConn.CheckNamedValue(nv)
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	if s.e.selects { // its text is made anew for each block
		if err := s.sameDatabase(); err != nil {
			return nil, err
		}
		return s.c.exec(ctx, s.e, s.text, args)
	}
	r, err := s.fill(ctx, args)
	if err != nil {
		return nil, err
	}
	defer s.c.unsplice()
	if r.once {
		defer r.inner.Close()
	}
	res, err := execStmt(ctx, r.inner, r.args)
	s.c.after(s.e, err)
	if err != nil {
		return nil, err
	}
	return s.c.result(ctx, s.e.plan, r.fills, res)
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	if s.e.selects {
		return nil, &RefusedError{tableOf(s.e.plan).name, "INSERT … SELECT … RETURNING with arguments or prepared", "send it as text without arguments"}
	}
	r, err := s.fill(ctx, args)
	if err != nil {
		return nil, err
	}
	defer s.c.unsplice()
	if r.once { // the rows need it until they are read
		s.spent = append(s.spent, r.inner)
	}
	q, ok := r.inner.(driver.StmtQueryContext)
	if !ok {
		return nil, errStmt
	}
	rows, err := q.QueryContext(ctx, r.args)
	s.c.after(s.e, err)
	if err != nil {
		return nil, err
	}
	collect(ctx, s.e.plan, r.fills)
	return rows, nil
}

// A run is one execution: its ids, and the inner statement with the arguments
// that carry them.
type run struct {
	fills []insert.Fill
	inner driver.Stmt
	args  []driver.NamedValue
	once  bool // inner holds the ids in its text and serves this run only
}

// fill draws the ids of one execution and finds the inner statement for them.
func (s *stmt) fill(ctx context.Context, args []driver.NamedValue) (run, error) {
	if len(args) != s.NumInput() { // database/sql sees to it, others may not
		return run{}, fmt.Errorf("leafsql: the statement takes %d arguments, got %d", s.NumInput(), len(args))
	}
	if err := s.refresh(ctx); err != nil {
		return run{}, err
	}
	fills, err := s.c.draw(ctx, s.e.plan, args)
	if err != nil {
		return run{}, err
	}
	shape := s.e.plan.Shape(fills)
	r := run{fills: fills, once: shape.Literal, inner: s.last}
	switch {
	case r.once:
		r.inner, err = s.make(ctx, shape.Text)
	case shape != s.shape:
		r.inner, err = s.variant(ctx, shape.Text)
		s.shape, s.last = shape, r.inner
	}
	if err != nil {
		s.shape = nil
		return run{}, err
	}
	r.args = s.c.splice(shape, fills, args)
	return r, nil
}

// refresh plans the text again when what was known of the tables has aged.
func (s *stmt) refresh(ctx context.Context) error {
	v := s.c.c.view.Load()
	if v == s.view {
		return nil
	}
	if s.sameDatabase() != nil {
		return nil // its names mean what they meant when it was prepared
	}
	e, err := s.c.entry(ctx, s.text)
	if err != nil {
		return err
	}
	if len(e.plan.Inserts) == 0 {
		e = s.e // no longer configured, as far as a new statement goes
	}
	s.e, s.view = e, v
	return nil
}

func (s *stmt) Close() error {
	var errs []error
	for _, inner := range s.inner {
		errs = append(errs, inner.Close())
	}
	for _, inner := range s.spent {
		errs = append(errs, inner.Close())
	}
	s.inner, s.spent = nil, nil
	return errors.Join(errs...)
}

// Exec and Query are for those who go around database/sql.

func (s *stmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func (s *stmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}

var errStmt = errors.New("leafsql: the wrapped driver's statements take no context; wrap one that implements driver.StmtExecContext and driver.StmtQueryContext")

func execStmt(ctx context.Context, s driver.Stmt, args []driver.NamedValue) (driver.Result, error) {
	x, ok := s.(driver.StmtExecContext)
	if !ok {
		return nil, errStmt
	}
	return x.ExecContext(ctx, args)
}
