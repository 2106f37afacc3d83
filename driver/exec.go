package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// ExecContext runs a text, with keys for the rows it writes.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	st, err := c.statement(ctx, text)
	if err != nil {
		return nil, err
	}
	switch {
	case st.way == passedThrough:
		res, err := c.innerConn.ExecContext(ctx, text, args)
		if st.effects && err != driver.ErrSkip {
			c.after(st, err)
		}
		return res, err
	case len(args) > 0 && len(args) != st.plan.NumInput: // database/sql has the error for it, and gives it when it is told to prepare
		return nil, driver.ErrSkip
	case st.way == inParts:
		return c.execInParts(ctx, st.plan, text, args)
	case st.way == apart:
		return c.execApart(ctx, st, text, args, false)
	}
	var res driver.Result
	st, blocks, err := c.run(ctx, st, text, args, false, func(p *insert.Plan, blocks []insert.Block, args []driver.NamedValue) (err error) {
		if len(args) == 0 {
			res, err = c.innerConn.ExecContext(ctx, p.Text(blocks), nil)
			return err
		}
		t := p.Template(blocks)
		res, err = c.execArgs(ctx, t.Text, c.bindArgs(p, t, blocks, args), false)
		c.unbindArgs()
		return err
	})
	if err != nil {
		return nil, err
	}
	return c.result(ctx, st.plan, blocks, res)
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
		rows, err := c.innerConn.QueryContext(ctx, text, args)
		if st.effects && err != driver.ErrSkip {
			c.after(st, err)
			c.doubtUse(st)
		}
		return rows, err
	case len(args) > 0 && (len(args) != st.plan.NumInput || !c.connector.interpolates()):
		return nil, driver.ErrSkip
	case st.way == inParts:
		return c.queryInParts(ctx, st.plan, text, args)
	case st.way == apart:
		return c.queryApart(ctx, st, text, args, false)
	}
	var rows driver.Rows
	st, blocks, err := c.run(ctx, st, text, args, false, func(p *insert.Plan, blocks []insert.Block, args []driver.NamedValue) (err error) {
		if len(args) == 0 {
			rows, err = c.innerConn.QueryContext(ctx, p.Text(blocks), nil)
			return err
		}
		t := p.Template(blocks)
		rows, err = c.innerConn.QueryContext(ctx, t.Text, c.bindArgs(p, t, blocks, args)) // if ErrSkip, database/sql prepares, and these ids are lost
		c.unbindArgs()
		return err
	})
	if err != nil {
		return nil, err
	}
	c.doubtUse(st)
	collect(ctx, st.plan, blocks)
	return c.tellLate(ctx, st.plan, blocks, rows)
}

// A sender sends a text whose keys are filled in, in one of the ways there
// are: executed or queried, as text or prepared.
type sender func(p *insert.Plan, blocks []insert.Block, args []driver.NamedValue) error

// run is the way of every statement that writes a configured table: reserve
// ids for the rows that lack a key, send the text with them. send is not
// called where ids cannot be had. The blocks are valid until the next run.
func (c *conn) run(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool, send sender) (*statement, []insert.Block, error) {
	var blocks []insert.Block
	var err error
	for tried := false; ; tried = true {
		if blocks, err = c.reserve(ctx, st.plan, args); err == errUnclear {
			if args, err = c.evaluateArgs(ctx, st, text, args, prepared); err == nil {
				blocks, err = c.reserve(ctx, st.plan, args)
			}
		}
		if err != nil {
			return st, nil, c.connector.counts.note(err)
		}
		if err = send(st.plan, blocks, args); err == nil && !st.effects {
			return st, blocks, nil
		}
		c.after(st, err)
		if tried {
			break
		}
		again := c.again(ctx, st, text, err)
		if again == nil || again.way != filled {
			break
		}
		st = again
	}
	if err != nil {
		err = c.explain(ctx, st, text, blocks, err)
	}
	return st, blocks, err
}

// errUnclear says that an argument in the key column is such that only the
// server can tell whether it is a key.
var errUnclear = errors.New("leafsql: only the server knows what an argument means as a key")

// reserve decides for each statement which rows lack a key and takes a block
// of ids for them, after the counters were moved above all keys that the text
// gives: none of its ids must meet one of those.
func (c *conn) reserve(ctx context.Context, p *insert.Plan, args []driver.NamedValue) ([]insert.Block, error) {
	if !c.connector.used.Load() { // a store at each statement would slow down all connections
		c.connector.used.Store(true)
	}
	c.blocks = c.blocks[:0]
	for i := range p.Inserts {
		in := &p.Inserts[i]
		b := insert.Block{N: in.Lacking, OwnKey: in.OwnKey}
		floor := in.Floor
		for k, key := range in.ArgKeys {
			// Without arguments a placeholder is a syntax error, for the
			// server to tell: nothing needs to be drawn for it.
			m, f := insert.Given, int64(0)
			if len(args) > 0 {
				m, f = in.Table.KeyMeaning(args[key.Arg].Value)
			}
			switch m {
			case insert.Wanted:
				b.N++
				continue
			case insert.Unclear:
				return nil, errUnclear
			}
			if b.Explicit == nil {
				b.Explicit = make([]bool, len(in.ArgKeys))
			}
			b.Explicit[k] = true
			if in.Rows == 1 {
				b.OwnKey = in.Table.WholeKey(args[key.Arg].Value)
			}
			floor = max(floor, f)
		}
		if t := in.Table.Ref.(*table); b.OwnKey > t.highest || t.triggered {
			b.OwnKey = 0 // the row may have another, or there is none
		}
		if floor > 0 {
			if err := in.Table.Ref.(*table).skip(ctx, c.innerConn, floor); err != nil {
				return nil, err
			}
		}
		c.blocks = append(c.blocks, b)
	}
	for i := range c.blocks {
		b := &c.blocks[i]
		if b.N == 0 {
			continue
		}
		if err := p.Inserts[i].Table.Ref.(*table).draw(ctx, c.innerConn, b); err != nil {
			return nil, err
		}
	}
	return c.blocks, nil
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
		res, err := c.innerConn.ExecContext(ctx, text, args)
		if err != driver.ErrSkip {
			return res, err
		}
	}
	s, err := c.innerConn.PrepareContext(ctx, text)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return execStmt(ctx, s, args)
}

// again is the statement for one more try, nil for none: somebody else changed
// a table since it was looked at, and the server found that a column is
// missing or one too many, which it does before it writes a row.
func (c *conn) again(ctx context.Context, st *statement, text string, err error) *statement {
	if err == nil || !isServerError(err, errUnknownColumn, errColumnCount) || !st.positional() {
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
		return err
	}
	switch mysqlErr.Number {
	case errDuplicateKey:
		for i, b := range blocks {
			if t := st.plan.Inserts[i].Table.Ref.(*table); b.N > 0 {
				t.afterDuplicate(ctx, c.innerConn, b, mysqlErr.Message)
			}
		}
	case errParse:
		if st.plan.Results != 1 {
			return err
		}
		s, own := c.innerConn.PrepareContext(ctx, text)
		if own == nil {
			s.Close()
		} else if isServerError(own, errParse) {
			return own
		}
	}
	return err
}

// interpolates reports whether the inner driver puts arguments into texts.
func (c *Connector) interpolates() bool {
	return c.cfg.MySQL != nil && c.cfg.MySQL.InterpolateParams
}

// foundRows reports whether affected counts are of rows found.
func (c *Connector) foundRows() bool {
	return c.cfg.MySQL != nil && c.cfg.MySQL.ClientFoundRows
}
