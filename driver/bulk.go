package driver

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/go-sql-driver/mysql"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A bulk is one execution of a statement for many rows at once.
type bulk struct {
	stmt driver.Stmt
	args []int

	of     *stmt
	in     insert.Insert // as if its rows were the execution's
	lacks  []bool        // of each argument of each row that may be a key, from the next on: an id takes its place
	blocks []insert.Block
	used   int          // ids of the first of them
	all    insert.Block // from the first id to the last
}

func (b *bulk) Stmt() driver.Stmt { return b.stmt }
func (b *bulk) Args() []int       { return b.args }

// drawnAtOnce is how many consecutive ids a bulk takes at a time: a snowflake has no more than
// 2^sequence of them, and the ids of a bulk need not be consecutive.
const drawnAtOnce = 1024

// Bulk draws the ids for an execution for that many rows.
func (s *stmt) Bulk(ctx context.Context, rows, room int, arg func(row, i int) driver.Value) (fill.Bulk, error) {
	if b, err := s.bulk(ctx, rows, room, arg); b != nil || err != nil {
		return b, s.c.connector.refused(err)
	}
	return nil, nil
}

func (s *stmt) bulk(ctx context.Context, rows, room int, arg func(row, i int) driver.Value) (*bulk, error) {
	if err := s.Refresh(ctx, s.NumInput()); err != nil {
		return nil, err
	}
	st := s.Statement
	switch {
	case st.Way == planner.PassedThrough:
		return nil, nil
	case st.Way != planner.Filled:
		return nil, st.Plan.Inserts[0].Table.Refuse("its rows do not come from VALUES, and it is executed in bulk", "execute it row by row")
	}
	plan := st.Plan.ForBulk()
	b := &bulk{of: s, in: plan.Inserts[0]}
	if b.in.Returning && b.in.Way == insert.SetAfter {
		return nil, b.in.Table.Refuse(insert.SessionID+" is read in it, and it is executed in bulk and answers with rows", "execute it row by row")
	}
	wanted, floor := b.in.Lacking*rows, b.in.Floor
	for row := range rows {
		for _, key := range b.in.ArgKeys {
			v := arg(row, key)
			m, f, _, err := s.c.keyMeaning(ctx, &b.in, s.Text, v)
			if err != nil {
				return nil, err
			}
			if m == insert.Wanted {
				wanted++
			}
			b.lacks = append(b.lacks, m == insert.Wanted)
			floor = max(floor, f)
		}
	}
	b.in.Rows *= rows
	if leastText(wanted)-8*(len(b.lacks)+b.in.Lacking*rows-wanted) >= room { // a key that a row brings may get 8 bytes shorter as text
		return nil, &mysql.MySQLError{Number: servererr.PacketTooLarge, SQLState: [5]byte([]byte("08S01")), Message: "Got a packet bigger than 'max_allowed_packet' bytes"}
	}

	shape := []insert.Block{{N: wanted, Explicit: slices.Repeat([]bool{true}, len(b.in.ArgKeys))}}
	t := plan.Template(shape)
	if err := s.choose(ctx, t, true); err != nil {
		return nil, err
	}
	if s.c.Permitted != nil {
		switch _, err := s.c.Permit(ctx, st, s.Text, rows); {
		case err == planner.ErrTemporary:
			return s.bulk(ctx, rows, room, arg)
		case err != nil:
			s.c.After(st, err)
			return nil, s.c.explain(ctx, st, s.Text, nil, err)
		}
	}
	b.stmt = s.last
	b.args = insert.AppendArgs(nil, lo.Range(s.NumInput()), t, shape, func(int, *insert.Block, int) int { return -1 }, nil)
	return b, b.draw(ctx, wanted, floor)
}

// leastText returns how many bytes n different ids take at least in a command: their digits, and a length for each.
func leastText(n int) (bytes int) {
	bytes = n
	for from := 1; from <= n; from *= 10 { // as many as have one more digit than those below
		bytes += n - from + 1
	}
	return bytes
}

// draw takes the ids, above the keys that rows bring. The session's id is set before
// if it can be: a statement after would change what the session reports of this one.
func (b *bulk) draw(ctx context.Context, wanted int, floor int64) error {
	c, t := b.of.c, b.in.Table
	c.connector.tables.Used.Store(true)
	if floor > 0 {
		if err := t.Skip(ctx, c, floor, lo.Ternary(wanted == 0, &b.all, nil)); err != nil {
			return err
		}
	}
	for left := wanted; left > 0; left -= drawnAtOnce {
		block := insert.Block{N: min(left, drawnAtOnce)}
		if err := t.Draw(ctx, c, &block); err != nil {
			return err
		}
		b.blocks = append(b.blocks, block)
	}
	if wanted == 0 {
		return nil
	}
	first, last := b.blocks[0], b.blocks[len(b.blocks)-1]
	b.all = insert.Block{First: first.First, N: int(last.First-first.First) + last.N}
	if b.in.Way != insert.SetBefore {
		return nil
	}
	return c.ExecText(ctx, "SET "+insert.SetID(first.First))
}

func (b *bulk) ID(arg int) (id driver.Value, ok bool) {
	if !b.Key(arg) {
		return nil, false
	}
	if arg >= 0 {
		if ok, b.lacks = b.lacks[0], b.lacks[1:]; !ok {
			return nil, false
		}
	}
	block := &b.blocks[0]
	id = idValue(b.in.Table.UUID, block, b.used)
	if b.used++; b.used == block.N {
		b.blocks, b.used = b.blocks[1:], 0
	}
	return id, true
}

func (b *bulk) Key(arg int) bool {
	return arg < 0 || slices.Contains(b.in.ArgKeys, arg)
}

func (b *bulk) Ran(ctx context.Context, res driver.Result, err error) (fill.Answer, error) {
	s, c := b.of, b.of.c
	b.in.Table.SkipAfter(ctx, b.all.Late, err)
	if c.Permitted != nil {
		err = c.Ran(ctx, s.Statement, s.Text, false, err)
	}
	if err != nil || s.Statement.Effects {
		c.After(s.Statement, err)
		c.DoubtDatabase(s.Statement)
	}
	if err != nil {
		return fill.Answer{}, c.connector.refused(c.explain(ctx, s.Statement, s.Text, []insert.Block{b.all}, err))
	}
	affected, server := session.Counts(res)
	id, ask := b.in.KeyID(&b.all, affected, server, c.foundRows)
	return fill.Answer{Result: res, ID: c.settleID(ctx, &b.in, &b.all, affected, server, id, ask)}, nil
}
