package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/servererr"
)

// ExecContext runs a text, with keys for the rows it writes.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	st, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	switch {
	case st.way == passedThrough:
		res, err := c.Conn.ExecContext(ctx, text, args)
		if st.effects && err != driver.ErrSkip {
			c.after(st, err)
		}
		return res, err
	case len(args) > 0 && len(args) != st.plan.NumInput: // database/sql has the error for it, and gives it when it is told to prepare
		return nil, driver.ErrSkip
	case st.way == inParts:
		return c.execInParts(ctx, st.plan, text, args)
	}
	e := execution{c: c, st: st, text: text, args: args}
	return e.exec(ctx)
}

// QueryContext runs a text that answers with rows, such as INSERT … RETURNING. They
// say the ids themselves.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	st, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	// Rows outlive this call and so would the statement that database/sql
	// would otherwise close: let it prepare one, before any id is drawn.
	switch {
	case st.way == passedThrough:
		rows, err := c.Conn.QueryContext(ctx, text, args)
		if st.effects && err != driver.ErrSkip {
			c.after(st, st.unread(err))
		}
		return rows, err
	case len(args) > 0 && (len(args) != st.plan.NumInput || !c.connector.interpolates):
		return nil, driver.ErrSkip
	case st.way == inParts:
		return c.queryInParts(ctx, st.plan, text, args)
	}
	e := execution{c: c, st: st, text: text, args: args, rows: true}
	return e.query(ctx)
}

// An execution is one run of a statement that writes a configured table, by text or
// prepared, or of any that is prepared and has effects: for its result or for the rows
// that it answers with.
type execution struct {
	c    *conn
	stmt *stmt // nil: by text
	st   *statement
	text string
	args []driver.NamedValue
	rows bool // it answers with rows

	result driver.Result
	answer driver.Rows
}

// exec runs the statement for its result.
func (e *execution) exec(ctx context.Context) (driver.Result, error) {
	if e.st.way == staged {
		ran, err := e.runStaged(ctx)
		if err != nil {
			return nil, err
		}
		return &result{Result: e.result, id: ran.id}, nil
	}
	blocks, err := e.run(ctx)
	if err != nil {
		return nil, err
	}
	return e.c.result(ctx, e, blocks)
}

// query runs the statement for its rows. A staged one has none.
func (e *execution) query(ctx context.Context) (driver.Rows, error) {
	if e.st.way == staged {
		if _, err := e.runStaged(ctx); err != nil {
			return nil, err
		}
		return noRows{}, nil
	}
	blocks, err := e.run(ctx)
	if err != nil {
		return nil, err
	}
	collect(ctx, e.st.plan, blocks)
	return e.answer, nil
}

// noRows are the answer of a statement that has none.
type noRows struct{}

func (noRows) Columns() []string         { return nil }
func (noRows) Close() error              { return nil }
func (noRows) Next([]driver.Value) error { return io.EOF }

// run is the way of a statement whose rows are in its text: reserve ids for those that
// lack a key, send the text with them. It is not sent where ids cannot be had. The
// blocks are valid until the next run.
func (e *execution) run(ctx context.Context) (blocks []insert.Block, err error) {
	c := e.c
	if e.rows {
		if err := e.refuseIDAfterRows(); err != nil {
			return nil, c.connector.counts.note(err)
		}
	}
	for tried := false; ; tried = true {
		if blocks, err = c.reserve(ctx, e.st.plan, e.args); err != nil {
			return nil, c.connector.counts.note(err)
		}
		if len(blocks) == 1 && blocks[0].N == 0 && e.st.plan.Inserts[0].OwnMarker {
			if _, err := c.Conn.ExecContext(ctx, "SET @leafsql_l = LAST_INSERT_ID()", nil); err != nil {
				return nil, err
			}
		}
		err := e.send(ctx, blocks)
		if told := err; told != nil || e.st.effects {
			if e.rows {
				told = e.st.unread(err)
			}
			c.after(e.st, told)
			if e.stmt != nil { // MariaDB runs a prepared USE in the database of its Prepare, and may go back from there
				c.doubtDatabase(e.st)
			}
		}
		if err == nil {
			return blocks, nil
		}
		again := c.replanned(ctx, e.st, e.text, err)
		if tried || again == nil || again.way != filled {
			return blocks, c.explain(ctx, e.st, e.text, blocks, err)
		}
		e.st = again
	}
}

// refuseIDAfterRows refuses a statement that answers with rows and would have to tell the session
// its id once they are read: whoever reads them may ask first.
func (e *execution) refuseIDAfterRows() error {
	for i := range e.st.plan.Inserts {
		switch in := &e.st.plan.Inserts[i]; {
		case in.SetIDAfter && in.Table.ReadsID:
			return &RefusedError{in.Table.Ref.(*table).name.String(), "", "a trigger or a default of the table reads LAST_INSERT_ID(), and the statement answers with rows", "run it with Exec"}
		case in.SetIDAfter:
			return &RefusedError{in.Table.Ref.(*table).name.String(), "", "it reads LAST_INSERT_ID() behind its key, and answers with rows",
				"write the key column behind LAST_INSERT_ID(), or run it with Exec"}
		}
	}
	return nil
}

// send sends the text with the ids of blocks in it.
func (e *execution) send(ctx context.Context, blocks []insert.Block) (err error) {
	if e.stmt != nil {
		return e.stmt.send(ctx, e, blocks)
	}
	var text string
	var args []driver.NamedValue
	if p := e.st.plan; len(e.args) == 0 {
		text = p.Text(blocks)
	} else {
		t := p.Template(blocks)
		text, args = t.Text, e.c.bindArgs(p, t, blocks, e.args)
	}
	if e.rows {
		e.answer, err = e.c.Conn.QueryContext(ctx, text, args) // if ErrSkip, database/sql prepares, and these ids are lost
	} else {
		e.result, err = e.c.execArgs(ctx, text, args, false)
	}
	e.c.unbindArgs()
	return err
}

// reserve decides for each statement which rows lack a key and takes a block
// of ids for them, after the counters were moved above all keys that the text
// gives: none of its ids must meet one of those.
func (c *conn) reserve(ctx context.Context, p *insert.Plan, args []driver.NamedValue) ([]insert.Block, error) {
	if !c.connector.used.Load() { // a store at each statement would slow down all connections
		c.connector.used.Store(true)
	}
	c.blocks = slices.Grow(c.blocks[:0], len(p.Inserts))[:len(p.Inserts)]
	for i := range p.Inserts {
		in, b := &p.Inserts[i], &c.blocks[i]
		*b = insert.Block{N: in.Lacking, OwnKey: in.OwnKey}
		floor := in.Floor
		for k, key := range in.ArgKeys {
			// Without arguments a placeholder is a syntax error, for the
			// server to tell: nothing needs to be drawn for it.
			m, f, exact := insert.Given, int64(0), false
			if len(args) > 0 {
				m, f, exact = in.Table.KeyMeaning(args[key.Arg].Value)
			}
			switch m {
			case insert.Wanted:
				b.N++
				continue
			case insert.Unclear:
				return nil, unclearKey(in, args[key.Arg].Value)
			}
			if b.Explicit == nil {
				b.Explicit = make([]bool, len(in.ArgKeys))
			}
			b.Explicit[k] = true
			if exact && in.Rows == 1 {
				b.OwnKey = f
			}
			floor = max(floor, f)
		}
		t := in.Table.Ref.(*table)
		switch {
		case b.OwnKey == 0:
		case b.OwnKey > t.highest || t.key.AutoIncrement:
			b.OwnKey = 0 // it is clipped or refused; or, of AUTO_INCREMENT, the server says it
		case in.KeyArg > 0 && len(args) > 0:
			_, key, exact := in.Table.KeyMeaning(args[in.KeyArg-1].Value)
			b.Moved = !exact || key != b.OwnKey
		}
		if floor > 0 {
			if err := t.skip(ctx, c.Conn, floor); err != nil {
				return nil, err
			}
		}
	}
	for i := range c.blocks {
		b := &c.blocks[i]
		if b.N == 0 {
			continue
		}
		if err := p.Inserts[i].Table.Ref.(*table).draw(ctx, c.Conn, b); err != nil {
			return nil, err
		}
	}
	return c.blocks, nil
}

// unclearKey refuses a value for a key that only the server could judge.
func unclearKey(in *insert.Insert, v driver.Value) error {
	t := in.Table.Ref.(*table)
	return &RefusedError{t.name.String(), t.key.Name, fmt.Sprintf("what a key of the type %T with this value means depends on the column and the session", v),
		"give a whole number, or nil for a generated one"}
}

// bindArgs makes a template's arguments in the connection's scratch.
func (c *conn) bindArgs(p *insert.Plan, t *insert.Template, blocks []insert.Block, args []driver.NamedValue) []driver.NamedValue {
	c.args = insert.AppendArgs(c.args[:0], args, t, blocks, func(i int, b *insert.Block, k int) driver.NamedValue {
		return driver.NamedValue{Value: idValue(p.Inserts[i].Table.UUID, b, k)}
	}, func(n int64) driver.NamedValue { return driver.NamedValue{Value: n} })
	for i := range c.args {
		c.args[i].Ordinal = i + 1
	}
	return c.args
}

// maxScratch keeps a connection from holding on to a large batch's arguments.
const maxScratch = 1024

// unbindArgs forgets what the scratch carried.
func (c *conn) unbindArgs() {
	clear(c.args)
	if cap(c.args) > maxScratch {
		c.args = nil
	}
}

// idValue is the k-th id of a block as an argument.
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

// execArgs executes a text with arguments: prepared where the inner driver
// cannot put them into the text, or where the user prepared it. Passing its
// ErrSkip up would make database/sql prepare, which would draw ids once more.
func (c *conn) execArgs(ctx context.Context, text string, args []driver.NamedValue, prepared bool) (driver.Result, error) {
	if !prepared || len(args) == 0 {
		res, err := c.Conn.ExecContext(ctx, text, args)
		if err != driver.ErrSkip {
			return res, err
		}
	}
	s, err := c.prepareInner(ctx, text)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return s.ExecContext(ctx, args)
}

// replanned is the statement for one more try, nil for none: somebody else changed
// a table since it was looked at, and the server found that a column is
// missing or one too many, which it does before it writes a row.
func (c *conn) replanned(ctx context.Context, st *statement, text string, err error) *statement {
	if err == nil || !servererr.Is(err, servererr.UnknownColumn, servererr.ColumnCount) || !st.positional() {
		return nil
	}
	again, err := c.statement(ctx, text)
	if err != nil || len(again.plan.Inserts) != len(st.plan.Inserts) {
		return nil
	}
	for i := range again.plan.Inserts {
		if !slices.Equal(again.plan.Inserts[i].Table.Columns, st.plan.Inserts[i].Table.Columns) {
			return again
		}
	}
	return nil
}

// explain looks at the error of a statement that was sent. A syntax error is
// given as the server words it for the user's own text: preparing executes
// nothing. A generated key that is in use tells that keys came to the table
// unseen: the next ids are above them.
func (c *conn) explain(ctx context.Context, st *statement, text string, blocks []insert.Block, err error) error {
	var mysqlErr *mysql.MySQLError
	if !errors.As(err, &mysqlErr) {
		return refused(err)
	}
	switch mysqlErr.Number {
	case servererr.DuplicateKey:
		for i, b := range blocks {
			if t := st.plan.Inserts[i].Table.Ref.(*table); b.N > 0 {
				t.afterDuplicate(ctx, b)
			}
		}
	case servererr.Parse:
		if st.plan.Results != 1 {
			return err
		}
		if own := c.tryPrepare(ctx, text); servererr.Is(own, servererr.Parse) {
			return own
		}
	}
	return err
}
