package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/ownpool"
	"github.com/leafsql/leafsql/driver/internal/plancache"
)

var (
	_ driver.Stmt              = (*stmt)(nil)
	_ driver.StmtExecContext   = (*stmt)(nil)
	_ driver.StmtQueryContext  = (*stmt)(nil)
	_ driver.NamedValueChecker = (*stmt)(nil)
)

// stmt is a prepared statement whose rows may need keys. Where the marker goes
// depends on which arguments are keys already, so it keeps one statement of
// the inner driver's for each text that came up; the likely one is made first.
type stmt struct {
	c      *conn
	text   string
	db     string // in use when it was prepared, and so what its names mean
	reads  string // how the session read texts then, where that matters
	schema *schema
	plans  *plancache.Cache[*statement]
	st     *statement

	inner    map[string]driver.Stmt
	template *insert.Template // of the last execution, and its inner statement
	last     driver.Stmt
	once     driver.Stmt   // has its ids in its text and serves one execution only
	spent    []driver.Stmt // done with, but perhaps still read from
}

// prepare makes a statement of ours, and the inner one that fills every row.
func (c *conn) prepare(ctx context.Context, st *statement, text string) (driver.Stmt, error) {
	s := &stmt{c: c, text: text, db: c.db, schema: c.schema, plans: c.plans, st: st, inner: make(map[string]driver.Stmt, 1)}
	first := text // prepared to see its errors now, where what runs is made anew each time
	if st.way == filled {
		if likely := st.plan.Template(s.likely()); !likely.Literal {
			first = likely.Text
		}
	}
	err := s.noteReading(ctx)
	if err == nil {
		_, err = s.variant(ctx, first)
	}
	if err != nil {
		c.after(st, err)
	}
	if again := c.again(ctx, st, text, err); again != nil {
		return c.prepare(ctx, again, text)
	}
	if err != nil {
		return nil, c.explain(ctx, st, text, nil, err)
	}
	return s, nil
}

// likely are blocks for every row that can be filled.
func (s *stmt) likely() []insert.Block {
	blocks := make([]insert.Block, len(s.st.plan.Inserts))
	for i, in := range s.st.plan.Inserts {
		blocks[i] = insert.Block{First: 1, N: in.Lacking + len(in.ArgKeys)}
	}
	return blocks
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

// make prepares a text, which has to mean what the user's did.
func (s *stmt) make(ctx context.Context, text string) (driver.Stmt, error) {
	if err := s.sameMeaning(ctx); err != nil {
		return nil, err
	}
	return s.c.innerConn.PrepareContext(ctx, text)
}

// sameMeaning refuses a text that would not mean now what the user's meant when
// it was prepared.
func (s *stmt) sameMeaning(ctx context.Context) error {
	reason, fix := "", "prepare it again"
	same, err := s.sameDatabase(ctx)
	if err != nil {
		return err
	}
	if !same {
		reason, fix = "database in use", "write db.table in it, or prepare it again after USE"
	} else if same, err = s.sameReading(ctx); err != nil {
		return err
	} else if !same {
		reason = "sql_mode or character set"
	}
	if same {
		return nil
	}
	return &RefusedError{
		Table:  s.st.plan.Inserts[0].Table.Ref.(*table).name.String(),
		Reason: "the statement was prepared under another " + reason + ", and these arguments need a text that was not prepared then",
		Fix:    fix,
	}
}

func (s *stmt) sameDatabase(ctx context.Context) (bool, error) {
	if s.c.dbUnknown {
		if err := s.c.mayAsk(s.text, "database in use", "write db.table"); err != nil {
			return false, err
		}
	}
	err := s.c.knowDatabase(ctx)
	return s.c.db == s.db, err
}

// noteReading notes how the session reads texts, where this one could be read in
// another way: the server keeps that for what is prepared now, and not for what
// is prepared of the same text later.
func (s *stmt) noteReading(ctx context.Context) error {
	if readsOneWay(s.text) {
		return nil
	}
	err := s.c.knowSession(ctx)
	s.reads = s.c.reading
	return err
}

func (s *stmt) sameReading(ctx context.Context) (bool, error) {
	if s.reads == "" || len(s.inner) == 0 { // it is just being prepared
		return true, nil
	}
	if !s.c.settings.SessionKnown {
		if err := s.c.mayAsk(s.text, "sql_mode", "pass strings as arguments"); err != nil {
			return false, err
		}
	}
	err := s.c.knowSession(ctx)
	return s.c.reading == s.reads, err
}

// readsOneWay says whether a text means the same under every sql_mode and every
// character set: it has no quotes but around plain literals, no operators that
// a mode gives another meaning, and no characters but ASCII.
func readsOneWay(text string) bool {
	return !strings.ContainsAny(text, "\"\\|![-") && !strings.Contains(text, "''") && !strings.Contains(strings.ToLower(text), "not") &&
		!strings.ContainsFunc(text, func(r rune) bool { return r >= utf8.RuneSelf })
}

// NumInput is the count of the user's own placeholders.
func (s *stmt) NumInput() int { return s.st.plan.NumInput }

// CheckNamedValue converts as the inner driver does.
func (s *stmt) CheckNamedValue(nv *driver.NamedValue) error {
	return s.c.innerConn.CheckNamedValue(nv)
}

// ExecContext executes the statement, with keys for the rows it writes.
func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	e, err := s.execution(ctx, args)
	if err != nil {
		return nil, err
	}
	return e.exec(ctx)
}

// QueryContext is ExecContext for statements that answer with rows.
func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	e, err := s.execution(ctx, args)
	if err != nil {
		return nil, err
	}
	e.rows = true
	return e.query(ctx)
}

// execution is one run of the statement.
func (s *stmt) execution(ctx context.Context, args []driver.NamedValue) (e execution, err error) {
	s.c.tellLate(ctx)
	if err = s.refresh(ctx, args); err == nil && s.st.way != filled {
		err = s.sameMeaning(ctx)
	}
	return execution{c: s.c, stmt: s, st: s.st, text: s.text, args: args}, err
}

// send sends the statement with the ids of blocks.
func (s *stmt) send(ctx context.Context, e *execution, blocks []insert.Block) error {
	inner, args, err := s.bind(ctx, e.st.plan, blocks, e.args)
	switch {
	case err != nil:
	case e.rows:
		e.answer, err = queryStmt(ctx, inner, args)
		if s.once != nil && err == nil { // the rows need it until they are read
			s.spent, s.once = append(s.spent, s.once), nil
		}
	default:
		e.result, err = execStmt(ctx, inner, args)
	}
	s.c.unbindArgs()
	s.closeOnce()
	return err
}

// bind finds the inner statement for blocks of ids, and its arguments.
func (s *stmt) bind(ctx context.Context, p *insert.Plan, blocks []insert.Block, args []driver.NamedValue) (driver.Stmt, []driver.NamedValue, error) {
	s.closeSpent()
	t := p.Template(blocks)
	inner := s.last
	var err error
	switch {
	case t.Literal:
		inner, err = s.make(ctx, t.Text)
		s.once = inner
	case t != s.template:
		inner, err = s.variant(ctx, t.Text)
		s.template, s.last = t, inner
	}
	if err != nil {
		s.template, s.once = nil, nil
		return nil, nil, err
	}
	return inner, s.c.bindArgs(p, t, blocks, args), nil
}

func (s *stmt) closeOnce() {
	if s.once != nil {
		s.once.Close()
		s.once = nil
	}
}

// closeSpent closes what the rows of earlier executions needed. The next
// execution on a connection begins when they have been read.
func (s *stmt) closeSpent() error {
	var errs []error
	for _, inner := range s.spent {
		errs = append(errs, inner.Close())
	}
	s.spent = nil
	return errors.Join(errs...)
}

// refresh plans the text again when what was known of the tables has changed.
func (s *stmt) refresh(ctx context.Context, args []driver.NamedValue) error {
	if len(args) != s.NumInput() { // database/sql sees to it, others may not
		return fmt.Errorf("leafsql: the statement takes %d arguments, got %d", s.NumInput(), len(args))
	}
	schema := s.c.connector.schema.Load()
	if schema == s.schema && s.plans == s.c.plans && !s.c.unseen && s.st.until.IsZero() {
		return nil
	}
	if s.c.dbUnknown && mayReadCounts(s.text) && !s.st.positional() {
		return nil // asking would change what it stores
	}
	for _, same := range []func(context.Context) (bool, error){s.sameDatabase, s.sameReading} {
		if ok, err := same(ctx); err != nil || !ok {
			return err // it means what it meant when it was prepared
		}
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
	return errors.Join(append(errs, s.closeSpent())...)
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

func queryStmt(ctx context.Context, s driver.Stmt, args []driver.NamedValue) (driver.Rows, error) {
	x, ok := s.(driver.StmtQueryContext)
	if !ok {
		return nil, errStmt
	}
	return x.QueryContext(ctx, args)
}

// A notedStmt is a prepared statement that needs no keys, and whose effects on
// the session or on tables are noted each time it is executed.
type notedStmt struct {
	ownpool.Stmt
	c  *conn
	st *statement
}

// noteEach notes the effects of a statement of the inner driver's.
func (c *conn) noteEach(st *statement, s driver.Stmt) (driver.Stmt, error) {
	inner, ok := s.(ownpool.Stmt)
	if !ok {
		s.Close()
		return nil, errStmt
	}
	return &notedStmt{inner, c, st}, nil
}

func (s *notedStmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	res, err := s.Stmt.ExecContext(ctx, args)
	s.note(err)
	return res, err
}

func (s *notedStmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := s.Stmt.QueryContext(ctx, args)
	s.note(err)
	return rows, err
}

// note is after. To which database a prepared USE leads is asked: MariaDB runs it
// in the one that was in use when it was prepared, and may go back from there.
func (s *notedStmt) note(err error) {
	s.c.after(s.st, err)
	s.c.doubtUse(s.st)
}

func (s *notedStmt) Exec(args []driver.Value) (driver.Result, error) {
	return s.ExecContext(context.Background(), named(args))
}

func (s *notedStmt) Query(args []driver.Value) (driver.Rows, error) {
	return s.QueryContext(context.Background(), named(args))
}
