package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/google/uuid"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/internal/servererr"
)

// ExecContext executes a query, with generated keys for the rows that it writes.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	st, err := c.Statement(ctx, text)
	if err == nil && st.Way == planner.PassedThrough && !st.Effects {
		return c.Conn.ExecContext(ctx, text, args)
	}
	if err == nil {
		e := &execution{c: c, st: st, text: text, args: args}
		if err = e.run(ctx); err == nil {
			return e.result, nil
		}
	}
	return nil, c.connector.countRefusal(err)
}

// QueryContext executes a query that returns rows, such as INSERT … RETURNING. The rows
// contain the ids.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	st, err := c.Statement(ctx, text)
	if err == nil && st.Way == planner.PassedThrough && !st.Effects {
		return c.Conn.QueryContext(ctx, text, args)
	}
	if err == nil {
		e := &execution{c: c, st: st, text: text, args: args, wantRows: true}
		if err = e.run(ctx); err == nil {
			return e.rows, nil
		}
	}
	return nil, c.connector.countRefusal(err)
}

// An execution is one run of a query or of a prepared statement, for its result or for the rows
// that it returns.
type execution struct {
	c         *conn
	stmt      *stmt // nil for a query
	st        *planner.Statement
	text      string
	args      []driver.NamedValue
	wantRows  bool
	forClient bool // for a client of MySQL's protocol, which gets rows if the statement returns rows

	result       driver.Result
	rows         driver.Rows
	sourceResult driver.Result // result of reading a staged statement's source
}

// run executes the query: it plans the query if it has no plan, reserves ids for the rows that lack a key, sends the
// statement with these ids, and sets them in the result. If no ids are available, it sends nothing. If the table has
// changed since planning, the statement is planned and sent once more.
func (e *execution) run(ctx context.Context) (err error) {
	c := e.c
	switch {
	case e.stmt != nil:
		if err = e.stmt.Refresh(ctx, len(e.args)); err != nil {
			return err
		}
		if e.st, e.text = e.stmt.Statement, e.stmt.Text; e.st.Way == planner.Staged {
			if err = e.stmt.CheckMeaning(ctx); err != nil {
				return err
			}
		}
	case e.st == nil:
		if e.st, err = c.Statement(ctx, e.text); err != nil {
			return err
		}
	}
	if e.stmt == nil {
		switch {
		case e.st.Way == planner.PassedThrough:
			return e.passThrough(ctx)
		// After ErrSkip, database/sql prepares the query, reports a wrong number of arguments, and closes the statement
		// after its rows. The rows outlive this call, so a statement prepared here would have to stay open until they are closed.
		case len(e.args) > 0 && (len(e.args) != e.st.Plan.NumInput || e.wantRows && !c.connector.interpolates):
			return driver.ErrSkip
		case e.st.Way == planner.InParts:
			return e.runInParts(ctx)
		}
	}
	if e.forClient {
		e.wantRows = len(e.st.Plan.Inserts) == 1 && e.st.Plan.Inserts[0].Returning
	}
	for tried := false; ; tried = true {
		plan, blocks, unproven, err := e.st.Plan, []insert.Block(nil), false, error(nil)
		guarded := c.Permitted != nil && len(plan.Inserts) > 0
		if guarded {
			if unproven, err = c.Permit(ctx, e.st, e.text, 1); err == planner.ErrTemporary {
				e.st = nil // run plans it again
				return e.run(ctx)
			}
		}
		if err == nil {
			if e.st.Way == planner.Staged {
				blocks, err = e.runStaged(ctx, unproven)
			} else if blocks, err = e.reserveIDs(ctx); err != nil {
				return err
			} else {
				err = e.send(ctx, blocks)
			}
			if guarded {
				err = c.JudgeResult(ctx, e.st, e.text, unproven, err)
			}
		}
		if err != nil || e.st.Effects {
			e.recordOutcome(err)
		}
		if err == nil {
			if !e.wantRows && e.st.Way == planner.Filled {
				e.result = e.resultWithIDs(ctx, blocks)
			}
			if !e.forClient { // Value may start a timer
				if to, ok := ctx.Value(idRecorderKey{}).(*idRecorder); ok {
					to.collect(plan, blocks)
				}
			}
			return nil
		}
		again := c.Replan(ctx, e.st, e.text, err)
		if tried || again == nil || again.Way != e.st.Way {
			return c.explainError(ctx, e.st, e.text, blocks, err)
		}
		e.st = again
	}
}

// passThrough sends the query unchanged.
func (e *execution) passThrough(ctx context.Context) (err error) {
	if e.wantRows {
		e.rows, err = e.c.Conn.QueryContext(ctx, e.text, e.args)
	} else {
		e.result, err = e.c.Conn.ExecContext(ctx, e.text, e.args)
	}
	if e.st.Effects && err != driver.ErrSkip {
		e.recordOutcome(err)
	}
	return err
}

// errUnread is recorded in place of the errors that results may contain which have not been read.
var errUnread = errors.New("leafsql: earlier results have not been read")

// recordOutcome records the outcome of the statement.
func (e *execution) recordOutcome(err error) {
	if e.wantRows && err == nil && e.st.Plan.Results > 1 {
		err = errUnread
	}
	e.c.RecordEffects(e.st, e.stmt != nil, err)
}

// runStaged runs an INSERT … SELECT or a LOAD DATA, whose rows get their keys in a temporary table. The statement returns
// no rows. unproven is set if the account may lack the right to write the rows.
func (e *execution) runStaged(ctx context.Context, unproven bool) ([]insert.Block, error) {
	in := &e.st.Plan.Inserts[0]
	r := staged.Run{ConnState: &e.c.stageState, Session: &e.c.Session, Insert: in, Args: e.args,
		Prepared: e.stmt != nil, FoundRows: e.c.foundRows, CopySucceeded: &e.st.CopySucceeded, Unproven: unproven}
	err := r.Do(ctx)
	if err == nil {
		e.result, e.rows, e.sourceResult = &result{Result: r.Result, id: r.ID}, emptyRows{}, r.Source
		if e.stmt == nil && e.st.Plan.Results > 1 { // the server also returns a result for a comment after the statement
			e.result = joinResults(e.result, driver.RowsAffected(0))
		}
	}
	return []insert.Block{r.Block}, err
}

// emptyRows is an empty driver.Rows.
type emptyRows struct{}

func (emptyRows) Columns() []string         { return nil }
func (emptyRows) Close() error              { return nil }
func (emptyRows) Next([]driver.Value) error { return io.EOF }

// send sends the statement with the ids of blocks.
func (e *execution) send(ctx context.Context, blocks []insert.Block) (err error) {
	c, s := e.c, e.stmt
	var inner pool.Stmt // nil if a query is sent
	var text string
	var args []driver.NamedValue
	if s == nil && len(e.args) == 0 {
		text = e.st.Plan.Text(blocks)
	} else {
		t := e.st.Plan.Template(blocks)
		if s != nil {
			if t != s.lastTemplate {
				if err := s.chooseVariant(ctx, t, e.wantRows); err != nil {
					return err
				}
			}
			inner = s.lastVariant
		}
		plan := e.st.Plan
		args = insert.AppendArgs(c.args[:0], e.args, t, blocks, func(i int, b *insert.Block, k int) driver.NamedValue {
			return driver.NamedValue{Value: idValue(plan.Inserts[i].Table.UUID, b, k)}
		}, func(n int64) driver.NamedValue { return driver.NamedValue{Value: n} })
		for i := range args {
			args[i].Ordinal = i + 1
		}
		text, c.args = t.Text, args
	}
	switch {
	case inner != nil && e.wantRows:
		e.rows, err = inner.QueryContext(ctx, args)
	case inner != nil:
		e.result, err = inner.ExecContext(ctx, args)
	case e.wantRows:
		e.rows, err = c.Conn.QueryContext(ctx, text, args) // after ErrSkip, database/sql prepares the query, and these ids are lost
	case s != nil:
		e.result, err = c.ExecArgs(ctx, text, args, true)
	default:
		if e.result, err = c.Conn.ExecContext(ctx, text, args); err == driver.ErrSkip {
			e.result, err = c.ExecArgs(ctx, text, args, true)
		}
	}
	if clear(args); len(args) > maxKeptArgs {
		c.args = nil
	}
	if len(blocks) == 1 && blocks[0].PendingSkip > 0 {
		e.st.Plan.Inserts[0].Table.SkipAfter(ctx, blocks[0].PendingSkip, err)
	}
	return err
}

// maxKeptArgs is the maximum number of arguments in the buffer that a connection keeps between statements.
const maxKeptArgs = 1024

// resultWithIDs returns the result of a statement with its generated ids. If the inner driver's
// result already contains these ids, it returns that result.
func (e *execution) resultWithIDs(ctx context.Context, blocks []insert.Block) driver.Result {
	c, res := e.c, e.result
	switch {
	case len(blocks) == 0:
		return res
	case e.stmt == nil && e.st.Plan.Results != 1:
		return c.resultsWithIDs(ctx, e.st.Plan, blocks, res)
	}
	in, b := &e.st.Plan.Inserts[0], &blocks[0]
	affected, _ := res.RowsAffected() // go-sql-driver returns no errors here
	server, _ := res.LastInsertId()
	if in.Conditional && affected == 0 && in.Duplicates <= insert.Replace {
		b.N = 0 // its WHERE clause matched no row
	}
	id, ask := in.ResultID(b, affected, server, c.foundRows)
	if ask || in.Way == insert.IDSetAfter || in.Update == insert.AlwaysUpdate {
		id = c.syncSessionID(ctx, in, b, affected, server, id, ask)
	}
	if id == server {
		return res
	}
	return &result{Result: res, id: id}
}

// reserveIDs finds the rows of each statement that lack a key, and reserves a block of
// ids for them. Before that, it raises the counters above all explicit keys of the
// query, so that no id is equal to one of these keys.
func (e *execution) reserveIDs(ctx context.Context) ([]insert.Block, error) {
	c, p := e.c, e.st.Plan
	if used := &c.connector.tables.Used; !used.Load() { // an atomic store for each statement would slow down all connections
		used.Store(true)
	}
	c.blocks = slices.Grow(c.blocks[:0], len(p.Inserts))[:len(p.Inserts)]
	for i := range p.Inserts {
		in, b := &p.Inserts[i], &c.blocks[i]
		if e.wantRows {
			if err := in.CheckReturning(); err != nil {
				return nil, err
			}
		}
		*b = insert.Block{N: in.RowsWithoutKey, ExplicitKey: in.ExplicitKey}
		floor := in.Floor
		for k, key := range in.ArgKeys {
			// Without arguments a placeholder is a syntax error, which the
			// server reports, so no id is reserved for it.
			m, f, exact := insert.KeyGiven, int64(0), false
			if len(e.args) > 0 {
				var err error
				if m, f, exact, err = c.keyMeaning(ctx, in, e.text, e.args[key].Value); err != nil {
					return nil, err
				}
			}
			if m == insert.KeyWanted {
				b.N++
				continue
			}
			if b.Explicit == nil {
				b.Explicit = make([]bool, len(in.ArgKeys))
			}
			b.Explicit[k] = true
			if exact && in.Rows == 1 {
				b.ExplicitKey = f
			}
			floor = max(floor, f)
		}
		switch {
		case b.ExplicitKey == 0:
		case b.ExplicitKey > in.Table.Highest || in.Table.AutoIncrement:
			b.ExplicitKey = 0 // the server changes or refuses the key; with AUTO_INCREMENT, the server's result contains it
		case in.KeyArg > 0 && len(e.args) > 0:
			_, key, exact := in.Table.KeyMeaning(e.args[in.KeyArg-1].Value)
			b.KeyMoved = !exact || key != b.ExplicitKey
		}
		if floor > 0 {
			if err := in.Table.Skip(ctx, c, floor, lo.Ternary(b.N == 0 && p.Results == 1, b, nil)); err != nil {
				return nil, err
			}
		}
	}
	for i := range c.blocks {
		if b := &c.blocks[i]; b.N > 0 {
			if err := p.Inserts[i].Table.Draw(ctx, c, b); err != nil {
				return nil, err
			}
		}
	}
	if len(c.blocks) == 1 && c.blocks[0].N == 0 && p.Inserts[0].Update == insert.AlwaysUpdate {
		if err := c.ExecText(ctx, "SET "+insert.SaveID); err != nil {
			return nil, err
		}
	}
	return c.blocks, nil
}

// keyMeaning returns the meaning of an argument in the place of a key: a key, or a request for an id. It queries the
// session's sql_mode if the meaning depends on it. It refuses a value with a meaning that only the server can decide.
func (c *conn) keyMeaning(ctx context.Context, in *insert.Insert, text string, v driver.Value) (m insert.KeyMeaning, floor int64, exact bool, err error) {
	switch m, floor, exact = in.Table.KeyMeaning(v); m {
	case insert.KeyBySession:
		err = c.LoadSettings(ctx, text)
		m = in.Table.ZeroMeaningIn(c.Settings.KeepsZero)
	case insert.KeyUnclear:
		kind := fmt.Sprintf("of type %T ", v)
		if _, client := v.(interface{ KeyValue() any }); client { // the error for a client of the protocol names no Go type
			kind = ""
		}
		err = &insert.Refusal{Table: in.Table.Name, Column: in.Table.Key, Reason: "a key " + kind + "with this value has no certain meaning, which depends on the column and the session",
			Fix: "pass a whole number, or nil for a generated key"}
	}
	return m, floor, exact, err
}

// idValue returns the k-th id of a block as an argument.
func idValue(form insert.UUIDForm, b *insert.Block, k int) driver.Value {
	switch form {
	case insert.UUIDText:
		return uuid.UUID(b.UUIDAt(k)).String()
	case insert.UUIDBytes:
		id := b.UUIDAt(k)
		return id[:]
	}
	return b.First + int64(k)
}

// explainError returns the error to report for a statement that was sent. After a syntax
// error it prepares the user's original query, and returns the server's error for that.
// After a duplicate key it moves the counter above keys that were inserted without leafsql.
func (c *conn) explainError(ctx context.Context, st *planner.Statement, text string, blocks []insert.Block, err error) error {
	switch {
	case servererr.Is(err, servererr.DuplicateKey):
		for i := range blocks {
			if b := &blocks[i]; b.N > 0 {
				st.Plan.Inserts[i].Table.SkipDuplicate(ctx, b)
			}
		}
	case servererr.Is(err, servererr.Parse) && st.Plan.Results == 1:
		if own := c.TryPrepare(ctx, text); servererr.Is(own, servererr.Parse) {
			return own
		}
	case c.Settings.Vitess && st.Plan.Results == 1 && strings.Contains(servererr.Message(err), "cannot update vindex column"):
		if i := slices.IndexFunc(st.Plan.Inserts, func(in insert.Insert) bool { return in.Update >= insert.RowUpdate }); i >= 0 {
			return st.Plan.Inserts[i].Table.Refuse("Vitess does not run upserts that assign the vindex column, the key, as leafsql does to return the id of an updated row",
				"set leafLastInsertID=result in the DSN")
		}
	}
	return err
}

// namedValues returns the arguments with their ordinals.
func namedValues(args []driver.Value) []driver.NamedValue {
	return lo.Map(args, func(v driver.Value, i int) driver.NamedValue { return driver.NamedValue{Ordinal: i + 1, Value: v} })
}
