package driver

import (
	"context"
	"database/sql/driver"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// selectTries is how often an INSERT … SELECT is run with a larger block when
// more rows came than were counted: other sessions add rows in between.
const selectTries = 4

// selects reports whether the rows of some statement are known to the server
// only.
func selects(p *insert.Plan) bool {
	for i := range p.Inserts {
		if p.Inserts[i].Select != nil {
			return true
		}
	}
	return false
}

// execSelect runs a text with an INSERT … SELECT: count, draw, run, and again
// with a larger block where the guard in the text tripped. The statement
// failed as a whole then, so nothing of it is stored.
func (c *conn) execSelect(ctx context.Context, p *insert.Plan, args []driver.NamedValue, run func([]insert.Fill) error) ([]insert.Fill, error) {
	if err := selectable(p); err != nil {
		return nil, err
	}
	need := 0
	for try := range selectTries {
		counted, err := c.countRows(ctx, p, args)
		if err != nil {
			return nil, err
		}
		// A count in a REPEATABLE READ transaction sees the same old snapshot
		// each time: growth has to come from us.
		need = max(counted, need)
		if try > 0 {
			need = max(2*need, 16)
		}
		fills, err := c.drawSelect(ctx, p, need)
		if err != nil {
			return nil, err
		}
		if err = run(fills); !tripped(err) {
			return fills, err
		}
		if p.Results > 1 || p.Inserts[0].Select.Bound > 0 {
			return nil, err
		}
	}
	return nil, &FillError{Table: tableOf(p).name, Rows: need, Err: fmt.Errorf(
		"more rows come at each try than were counted just before, %d times; lock the source's rows first (SELECT … FOR UPDATE in the same transaction), or select and insert them in parts with LIMIT", selectTries)}
}

func tableOf(p *insert.Plan) *table { return p.Inserts[0].Table.Ref.(*table) }

// selectable refuses what cannot be tried again.
func selectable(p *insert.Plan) error {
	for i := range p.Inserts {
		in := &p.Inserts[i]
		if in.Select == nil {
			continue
		}
		t := in.Table.Ref.(*table)
		if !t.transactional {
			return &RefusedError{t.name, "INSERT … SELECT into a table whose engine has no transactions would leave rows behind when it has to be tried again",
				"ALTER TABLE " + t.name + " ENGINE=InnoDB, or select the rows and insert them"}
		}
		if len(p.Inserts) > 1 || p.Results > 1 && in.Select.Bound == 0 {
			return &RefusedError{t.name, "an INSERT … SELECT whose rows have to be counted stands in one text with other statements",
				"send it by itself"}
		}
	}
	return nil
}

// countRows asks how many rows the select gives now, on the application's own
// connection, which sees what the INSERT will see.
func (c *conn) countRows(ctx context.Context, p *insert.Plan, args []driver.NamedValue) (int, error) {
	sel := p.Inserts[0].Select
	if sel.Bound > 0 {
		return sel.Bound, nil
	}
	var own []driver.NamedValue
	if len(args) > 0 {
		own = append(own, args[sel.Args[0]:sel.Args[1]]...)
	}
	for i := range own {
		own[i].Ordinal = i + 1
	}
	rows, err := c.innerConn.QueryContext(ctx, sel.Count, own)
	if err == driver.ErrSkip {
		s, perr := c.innerConn.PrepareContext(ctx, sel.Count)
		if perr != nil {
			return 0, perr
		}
		defer s.Close()
		q, ok := s.(driver.StmtQueryContext)
		if !ok {
			return 0, errStmt
		}
		rows, err = q.QueryContext(ctx, own)
	}
	if err != nil {
		return 0, err
	}
	defer rows.Close()
	dest := make([]driver.Value, len(rows.Columns()))
	if err := rows.Next(dest); err != nil {
		if err == io.EOF {
			return 0, nil
		}
		return 0, err
	}
	return strconv.Atoi(text(dest[0]))
}

// drawSelect draws one block of n ids; none where no row is expected.
func (c *conn) drawSelect(ctx context.Context, p *insert.Plan, n int) ([]insert.Fill, error) {
	f := insert.Fill{N: n}
	if n > 0 {
		first, err := tableOf(p).next(ctx, n)
		if err != nil {
			return nil, err
		}
		f.First = first
		c.c.stats.filled(n)
	}
	c.fills = append(c.fills[:0], f)
	return c.fills, nil
}

// tripped reports whether the guard in the text found one row too many. A
// user's own expression out of range reads differently.
func tripped(err error) bool {
	return isServerError(err, errOutOfRange) && strings.Contains(serverMessage(err), "18446744073709551615")
}

// selectVerdict is verdict for an INSERT … SELECT, whose block may be larger
// than what was used.
func selectVerdict(in *insert.Insert, f insert.Fill, affected int64, foundRows bool) int64 {
	switch {
	case f.N == 0 || affected == 0:
		return 0
	case in.Upsert && (f.N > 1 || affected != 1 || foundRows):
		return 0 // inserted and updated rows cannot be told apart
	case in.Ignore && affected != int64(f.N):
		return 0
	}
	return f.First
}
