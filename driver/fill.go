package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"strconv"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// exec is the way of one INSERT: count the rows that lack a key, draw one
// block for each statement, put the ids into the text or its arguments, run
// it, and say the first id in the Result.
func (c *conn) exec(ctx context.Context, e *entry, text string, args []driver.NamedValue) (driver.Result, error) {
	p := e.plan
	if len(p.Inserts) == 0 {
		res, err := c.innerConn.ExecContext(ctx, text, args)
		if err != driver.ErrSkip {
			c.after(e, err)
		}
		return res, err
	}
	var fills []insert.Fill
	var res driver.Result
	var err error
	if e.selects {
		fills, err = c.execSelect(ctx, p, args, func(fills []insert.Fill) (err error) {
			res, err = c.send(ctx, p, fills, args)
			return err
		})
	} else {
		if fills, err = c.draw(ctx, p, args); err != nil {
			return nil, err
		}
		res, err = c.send(ctx, p, fills, args)
	}
	c.after(e, err)
	if err != nil {
		return nil, c.native(ctx, p, text, err)
	}
	return c.result(ctx, p, fills, res)
}

// send runs a filled text.
func (c *conn) send(ctx context.Context, p *insert.Plan, fills []insert.Fill, args []driver.NamedValue) (driver.Result, error) {
	if len(args) == 0 {
		return c.innerConn.ExecContext(ctx, p.Text(fills), nil)
	}
	shape := p.Shape(fills)
	args = c.splice(shape, fills, args)
	defer c.unsplice()
	res, err := c.innerConn.ExecContext(ctx, shape.Text, args)
	if err != driver.ErrSkip {
		return res, err
	}
	// Passing ErrSkip up would make database/sql prepare, which would draw
	// ids once more.
	s, err := c.innerConn.PrepareContext(ctx, shape.Text)
	if err != nil {
		return nil, err
	}
	defer s.Close()
	return execStmt(ctx, s, args)
}

// query is exec for texts that answer with rows, which say the ids themselves.
func (c *conn) query(ctx context.Context, e *entry, text string, args []driver.NamedValue) (driver.Rows, error) {
	p := e.plan
	if len(p.Inserts) == 0 {
		rows, err := c.innerConn.QueryContext(ctx, text, args)
		if err != driver.ErrSkip {
			c.afterQuery(e, err)
		}
		return rows, err
	}
	var fills []insert.Fill
	var rows driver.Rows
	var err error
	if e.selects {
		fills, err = c.execSelect(ctx, p, args, func(fills []insert.Fill) (err error) {
			rows, err = c.sendQuery(ctx, p, fills, args)
			return err
		})
	} else {
		if fills, err = c.draw(ctx, p, args); err != nil {
			return nil, err
		}
		rows, err = c.sendQuery(ctx, p, fills, args)
	}
	if err == driver.ErrSkip {
		return nil, err // an argument that cannot be interpolated: the block is a gap
	}
	c.afterQuery(e, err)
	if err != nil {
		return nil, c.native(ctx, p, text, err)
	}
	collect(ctx, p, fills)
	return rows, nil
}

func (c *conn) sendQuery(ctx context.Context, p *insert.Plan, fills []insert.Fill, args []driver.NamedValue) (driver.Rows, error) {
	if len(args) == 0 {
		return c.innerConn.QueryContext(ctx, p.Text(fills), nil)
	}
	shape := p.Shape(fills)
	spliced := c.splice(shape, fills, args)
	defer c.unsplice()
	return c.innerConn.QueryContext(ctx, shape.Text, spliced)
}

// draw decides for each statement which rows lack a key and takes a block of
// ids for them. The fills are valid until the next call.
func (c *conn) draw(ctx context.Context, p *insert.Plan, args []driver.NamedValue) ([]insert.Fill, error) {
	c.fills = c.fills[:0]
	for i := range p.Inserts {
		in := &p.Inserts[i]
		f := insert.Fill{N: in.Holes}
		for k, key := range in.ArgKeys {
			// Without arguments a placeholder is a syntax error, for the
			// server to tell: nothing needs to be drawn for it.
			m := keyGiven
			if len(args) > 0 {
				m = meaning(args[key.Arg].Value, in.Table)
			}
			if m == keyUnclear {
				var err error
				if m, err = c.resolve(ctx, in, args[key.Arg].Value); err != nil {
					return nil, err
				}
			}
			if m == keyGiven {
				if f.Explicit == nil {
					f.Explicit = make([]bool, len(in.ArgKeys))
				}
				f.Explicit[k] = true
				continue
			}
			f.N++
		}
		if f.N > 0 {
			first, err := in.Table.Ref.(*table).next(ctx, f.N)
			if err != nil {
				return nil, err
			}
			f.First = first
			c.c.stats.filled(f.N)
		}
		c.fills = append(c.fills, f)
	}
	return c.fills, nil
}

// next draws n ids that fit into the key column. Outside strict mode a server
// would store a larger one clipped, and report the one that was sent.
func (t *table) next(ctx context.Context, n int) (int64, error) {
	first, err := t.gen.Next(ctx, n)
	if err != nil {
		return 0, &FillError{Table: t.name, Rows: n, Err: err}
	}
	if last := first + int64(n) - 1; last > t.highest {
		return 0, &TableError{t.name, t.column,
			"id " + strconv.FormatInt(last, 10) + " is above the highest that the column holds, " + strconv.FormatInt(t.highest, 10),
			"make the column BIGINT"}
	}
	return first, nil
}

// splice makes a shape's arguments in the connection's scratch.
func (c *conn) splice(s *insert.Shape, fills []insert.Fill, args []driver.NamedValue) []driver.NamedValue {
	c.args = insert.AppendArgs(c.args[:0], args, s, fills, argument)
	for i := range c.args {
		c.args[i].Ordinal = i + 1
	}
	return c.args
}

// maxScratch keeps a connection from holding on to a large batch's arguments.
const maxScratch = 1024

// unsplice forgets what the scratch carried.
func (c *conn) unsplice() {
	clear(c.args)
	if cap(c.args) > maxScratch {
		c.args = nil
	}
}

func argument(id int64) driver.NamedValue { return driver.NamedValue{Value: id} }

// result says the ids. The inner driver's result stays what it is where
// nothing was filled.
func (c *conn) result(ctx context.Context, p *insert.Plan, fills []insert.Fill, res driver.Result) (driver.Result, error) {
	affected, server := counts(res)
	if in := &p.Inserts[0]; in.Select != nil && !in.Upsert && !in.Ignore && !in.Replace && p.Results == 1 {
		fills[0].N = min(fills[0].N, int(affected)) // the rest of the block is a gap
	}
	collect(ctx, p, fills)
	if p.Results != 1 {
		return c.results(ctx, p, fills, res)
	}
	f := fills[0]
	if f.N == 0 {
		return res, nil
	}
	id, ask := verdict(&p.Inserts[0], f, affected, server, c.c.foundRows())
	if ask {
		id = c.lastInsertID(ctx, &p.Inserts[0], f)
	}
	return &result{Result: res, id: id}, nil
}

// results is result for a text of several statements.
func (c *conn) results(ctx context.Context, p *insert.Plan, fills []insert.Fill, res driver.Result) (driver.Result, error) {
	all, ok := res.(mysql.Result)
	if !ok {
		return res, nil
	}
	ids, affected := all.AllLastInsertIds(), all.AllRowsAffected()
	for i := range p.Inserts {
		in := &p.Inserts[i]
		s := in.Statement
		if in.FromEnd > 0 { // a CALL before it may have answered any number of times
			s = len(ids) - in.FromEnd
		}
		if s < 0 || s >= len(ids) || len(affected) != len(ids) || fills[i].N == 0 {
			continue // the mark has to do
		}
		id, ask := verdict(in, fills[i], affected[s], ids[s], c.c.foundRows())
		if ask && s == len(ids)-1 {
			id = c.lastInsertID(ctx, in, fills[i])
		}
		ids[s] = id
	}
	return &result{Result: res, id: ids[len(ids)-1], all: ids}, nil
}

func counts(res driver.Result) (affected, id int64) {
	affected, _ = res.RowsAffected() // go-sql-driver gives no errors here
	id, _ = res.LastInsertId()
	return affected, id
}

func (c *Connector) foundRows() bool {
	return c.cfg.MySQL != nil && c.cfg.MySQL.ClientFoundRows
}

// lastInsertID asks the session for the id of an upsert whose answer a trigger
// spoiled. The rows are written: an error here must not look like theirs.
func (c *conn) lastInsertID(ctx context.Context, in *insert.Insert, f insert.Fill) int64 {
	s, err := scalar(ctx, c.innerConn, "SELECT LAST_INSERT_ID()")
	if err != nil {
		return 0
	}
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	if in.Rows > 1 && id != f.First {
		return 0
	}
	return id
}

// native gives a syntax error as the server words it for the user's own text.
// Preparing executes nothing.
func (c *conn) native(ctx context.Context, p *insert.Plan, text string, err error) error {
	if p.Results != 1 || !isServerError(err, errParse) {
		return err
	}
	s, own := c.innerConn.PrepareContext(ctx, text)
	if own == nil {
		s.Close()
		return fmt.Errorf("leafsql: the text that gives the rows their keys is not accepted, while the original is; please report it: %w", err)
	}
	if isServerError(own, errParse) {
		return own
	}
	return err
}
