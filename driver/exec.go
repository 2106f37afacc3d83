package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// errUnclear says that an argument in the key column is such that only the
// server can tell whether it is a key.
var errUnclear = errors.New("leafsql: only the server knows what an argument means as a key")

// A sender sends a text whose keys are filled in, in one of the ways there
// are: executed or queried, as text or prepared.
type sender func(p *insert.Plan, blocks []insert.Block, args []driver.NamedValue) error

// run is the way of every statement that writes a configured table: reserve
// ids for the rows that lack a key, send the text with them. send is not
// called where ids cannot be had. The blocks are valid until the next run.
func (c *conn) run(ctx context.Context, st *statement, text string, args []driver.NamedValue, prepared bool, send sender) (*statement, []insert.Block, error) {
	blocks, err := c.reserve(ctx, st.plan, args)
	if err == errUnclear {
		if args, err = c.evaluateArgs(ctx, st.plan, text, args, prepared); err == nil {
			blocks, err = c.reserve(ctx, st.plan, args)
		}
	}
	if err != nil {
		return st, nil, c.connector.counts.note(err)
	}
	err = send(st.plan, blocks, args)
	c.after(st, err)
	if again := c.again(ctx, st, text, err); again != nil && again.apart() == nil {
		st = again
		if blocks, err = c.reserve(ctx, st.plan, args); err == nil {
			err = send(st.plan, blocks, args)
			c.after(st, err)
		}
	}
	if err != nil {
		err = c.explain(ctx, st, text, blocks, err)
	}
	return st, blocks, err
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

// exec executes a text, as one that is not prepared.
func (c *conn) exec(ctx context.Context, st *statement, text string, args []driver.NamedValue) (res driver.Result, err error) {
	if !st.inserts() {
		if res, err = c.innerConn.ExecContext(ctx, text, args); err != driver.ErrSkip {
			c.after(st, err)
		}
		return res, err
	}
	if st.apart() != nil {
		return c.execApart(ctx, st, text, args, false)
	}
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

// query is exec for texts that answer with rows, which say the ids themselves.
func (c *conn) query(ctx context.Context, st *statement, text string, args []driver.NamedValue) (rows driver.Rows, err error) {
	if !st.inserts() {
		if rows, err = c.innerConn.QueryContext(ctx, text, args); err != driver.ErrSkip {
			c.afterQuery(st, err)
		}
		return rows, err
	}
	if st.apart() != nil {
		return c.queryApart(ctx, st, text, args, false)
	}
	st, blocks, err := c.run(ctx, st, text, args, false, func(p *insert.Plan, blocks []insert.Block, args []driver.NamedValue) (err error) {
		if len(args) == 0 {
			rows, err = c.innerConn.QueryContext(ctx, p.Text(blocks), nil)
			return err
		}
		t := p.Template(blocks)
		rows, err = c.innerConn.QueryContext(ctx, t.Text, c.bindArgs(p, t, blocks, args)) // ErrSkip: the block is a gap
		c.unbindArgs()
		return err
	})
	if err != nil {
		return nil, err
	}
	if st.plan.Use != "" { // whether later statements work is not known yet
		c.dbUnknown, c.last = true, nil
	}
	collect(ctx, st.plan, blocks)
	return c.tellLate(ctx, st.plan, blocks, rows)
}

// afterQuery is after for rows that are still to be read, and with them the
// answers of later statements: whether those work is not known yet.
func (c *conn) afterQuery(st *statement, err error) {
	c.after(st, err)
	if st.plan.Use != "" {
		c.dbUnknown, c.last = true, nil
	}
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

// execInParts executes a text that has to be cut: what is behind the cut can
// be planned only when what is before it has run.
func (c *conn) execInParts(ctx context.Context, p *insert.Plan, text string, args []driver.NamedValue) (driver.Result, error) {
	if len(args) > 0 && !c.connector.interpolates() {
		return nil, driver.ErrSkip // the server has an error for it
	}
	before, behind := partArgs(p, args)
	first, err := c.ExecContext(ctx, text[:p.Cut], before)
	if err != nil {
		return nil, err
	}
	second, err := c.ExecContext(ctx, text[p.Cut:], behind)
	if err != nil {
		return nil, partError(err)
	}
	return joined(first, second), nil
}

// queryInParts is execInParts for a text that answers with rows. Those of its
// first part could not be had with the others: it must be an INSERT without
// any, of those that take a text of their own.
func (c *conn) queryInParts(ctx context.Context, p *insert.Plan, text string, args []driver.NamedValue) (driver.Rows, error) {
	first, err := c.statement(ctx, text[:p.Cut])
	if err != nil {
		return nil, err
	}
	if in := first.plan.Inserts; len(in) != 1 || !in[0].Alone() || in[0].Returning || first.plan.Results != 1 {
		return nil, &RefusedError{Reason: "its statements have to be sent one by one, and the rows of all but the last would be lost", Fix: "send it with Exec, or send them one by one"}
	}
	before, behind := partArgs(p, args)
	if _, err := c.ExecContext(ctx, text[:p.Cut], before); err != nil {
		return nil, err
	}
	rows, err := c.QueryContext(ctx, text[p.Cut:], behind)
	return rows, partError(err)
}

// partArgs are the arguments of a text's two parts.
func partArgs(p *insert.Plan, args []driver.NamedValue) (before, behind []driver.NamedValue) {
	if len(args) == 0 {
		return nil, nil
	}
	return args[:p.CutInput], renumber(args[p.CutInput:])
}

// partError keeps a part that cannot be executed from being taken for the text.
func partError(err error) error {
	if err == driver.ErrSkip {
		return fmt.Errorf("leafsql: a text that runs in parts: an argument cannot be put into the text; write its statements one by one")
	}
	return err
}

// renumber gives arguments the ordinals of a text of their own.
func renumber(args []driver.NamedValue) []driver.NamedValue {
	args = slices.Clone(args)
	for i := range args {
		args[i].Ordinal = i + 1
	}
	return args
}

// reserve decides for each statement which rows lack a key and takes a block
// of ids for them, after the counters were moved above all keys that the text
// gives: none of its ids must meet one of those.
func (c *conn) reserve(ctx context.Context, p *insert.Plan, args []driver.NamedValue) ([]insert.Block, error) {
	if !c.connector.used.Load() {
		c.connector.used.Store(true)
	}
	c.blocks = c.blocks[:0]
	for i := range p.Inserts {
		in := &p.Inserts[i]
		b := insert.Block{N: in.Lacking}
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
			floor = max(floor, f)
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

// interpolates reports whether the inner driver puts arguments into texts.
func (c *Connector) interpolates() bool {
	return c.cfg.MySQL != nil && c.cfg.MySQL.InterpolateParams
}

// foundRows reports whether affected counts are of rows found.
func (c *Connector) foundRows() bool {
	return c.cfg.MySQL != nil && c.cfg.MySQL.ClientFoundRows
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
