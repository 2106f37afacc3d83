package driver

import (
	"context"
	"database/sql/driver"
	"slices"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A bulk is one execution of a prepared statement for many rows. It implements fill.Bulk.
type bulk struct {
	stmt driver.Stmt
	args []int

	prepared *stmt
	in       insert.Insert // the statement's INSERT, with Rows multiplied by the number of rows of the bulk
	needsID  []bool        // for each remaining argument that may be a key, row by row: whether an id replaces it
	blocks   []insert.Block
	used     int          // number of ids already used from the first of blocks
	allIDs   insert.Block // range from the first id to the last
}

func (b *bulk) Stmt() driver.Stmt { return b.stmt }
func (b *bulk) Args() []int       { return b.args }

// maxBulkDraw is the maximum number of ids that a bulk requests from the generator at a time. These ids are
// consecutive, and the bits of the sequence limit the number of consecutive snowflakes. All ids of a bulk together
// need not be consecutive.
const maxBulkDraw = 1024

// StartBulk implements fill.Prepared. It reserves the ids for an execution with the given number of rows.
func (s *stmt) StartBulk(ctx context.Context, rows, room int, arg func(row, i int) driver.Value) (fill.Bulk, error) {
	b, err := s.startBulk(ctx, rows, room, arg)
	return b, s.c.connector.countRefusal(err)
}

func (s *stmt) startBulk(ctx context.Context, rows, room int, arg func(row, i int) driver.Value) (fill.Bulk, error) {
	if err := s.Refresh(ctx, s.NumInput()); err != nil {
		return nil, err
	}
	st := s.Statement
	switch {
	case st.Way == planner.PassedThrough:
		return nil, nil
	case st.Way != planner.Filled:
		return nil, st.Plan.Inserts[0].Table.Refuse("it is executed in bulk, and its rows do not come from VALUES", "execute it row by row")
	}
	plan := st.Plan.ForBulk()
	b := &bulk{prepared: s, in: plan.Inserts[0]}
	if b.in.Returning && b.in.Way == insert.IDSetAfter {
		return nil, b.in.Table.Refuse(insert.SessionID+" is read in it, and it is executed in bulk and returns rows", "execute it row by row")
	}
	wanted, floor := b.in.RowsWithoutKey*rows, b.in.Floor
	for row := range rows {
		for _, key := range b.in.ArgKeys {
			v := arg(row, key)
			m, f, _, err := s.c.keyMeaning(ctx, &b.in, s.Text, v)
			if err != nil {
				return nil, err
			}
			if m == insert.KeyWanted {
				wanted++
			}
			b.needsID = append(b.needsID, m == insert.KeyWanted)
			floor = max(floor, f)
		}
	}
	b.in.Rows *= rows
	if minTextSize(wanted)-8*(len(b.needsID)+b.in.RowsWithoutKey*rows-wanted) >= room { // an explicit key may become up to 8 bytes shorter as text
		return nil, servererr.ErrPacketTooLarge
	}

	shape := []insert.Block{{N: wanted, Explicit: slices.Repeat([]bool{true}, len(b.in.ArgKeys))}}
	t := plan.Template(shape)
	if err := s.chooseVariant(ctx, t, true); err != nil {
		return nil, err
	}
	if s.c.Permitted != nil {
		switch _, err := s.c.Permit(ctx, st, s.Text, rows); {
		case err == planner.ErrTemporary:
			return s.startBulk(ctx, rows, room, arg)
		case err != nil:
			s.c.RecordEffects(st, true, err)
			return nil, s.c.explainError(ctx, st, s.Text, nil, err)
		}
	}
	b.stmt = s.lastVariant
	b.args = insert.AppendArgs(nil, lo.Range(s.NumInput()), t, shape, func(int, *insert.Block, int) int { return -1 }, nil)
	return b, b.draw(ctx, wanted, floor)
}

// minTextSize returns the minimum number of bytes that n different ids take in a command: their digits and a length byte each.
func minTextSize(n int) (bytes int) {
	bytes = n
	for from := 1; from <= n; from *= 10 { // ids from this number on have one more digit
		bytes += n - from + 1
	}
	return bytes
}

// draw reserves the ids, which are higher than the explicit keys of the rows. If possible, it sets the session's
// id now, because a SET after the statement would change the counts that the session reports for the
// statement.
func (b *bulk) draw(ctx context.Context, wanted int, floor int64) error {
	c, t := b.prepared.c, b.in.Table
	c.connector.tables.Used.Store(true)
	if floor > 0 {
		if err := t.Skip(ctx, c, floor, lo.Ternary(wanted == 0, &b.allIDs, nil)); err != nil {
			return err
		}
	}
	for left := wanted; left > 0; left -= maxBulkDraw {
		block := insert.Block{N: min(left, maxBulkDraw)}
		if err := t.Draw(ctx, c, &block); err != nil {
			return err
		}
		b.blocks = append(b.blocks, block)
	}
	if wanted == 0 {
		return nil
	}
	first, last := b.blocks[0], b.blocks[len(b.blocks)-1]
	b.allIDs = insert.Block{First: first.First, N: int(last.First-first.First) + last.N}
	if b.in.Way != insert.IDSetBefore {
		return nil
	}
	return c.ExecText(ctx, "SET "+insert.SetID(first.First))
}

func (b *bulk) NextID(arg int) (id driver.Value, ok bool) {
	if !b.IsKey(arg) {
		return nil, false
	}
	if arg >= 0 {
		if ok, b.needsID = b.needsID[0], b.needsID[1:]; !ok {
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

func (b *bulk) IsKey(arg int) bool {
	return arg < 0 || slices.Contains(b.in.ArgKeys, arg)
}

func (b *bulk) Finish(ctx context.Context, res driver.Result, err error) (fill.Answer, error) {
	s, c := b.prepared, b.prepared.c
	b.in.Table.SkipAfter(ctx, b.allIDs.PendingSkip, err)
	if c.Permitted != nil {
		err = c.JudgeResult(ctx, s.Statement, s.Text, false, err)
	}
	if err != nil || s.Statement.Effects {
		c.RecordEffects(s.Statement, true, err)
	}
	if err != nil {
		return fill.Answer{}, c.connector.countRefusal(c.explainError(ctx, s.Statement, s.Text, []insert.Block{b.allIDs}, err))
	}
	affected, server := session.ResultCounts(res)
	id, ask := b.in.ResultID(&b.allIDs, affected, server, c.foundRows)
	return fill.Answer{Result: res, ID: c.syncSessionID(ctx, &b.in, &b.allIDs, affected, server, id, ask)}, nil
}
