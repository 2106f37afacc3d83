package driver

import (
	"context"
	"database/sql/driver"
	"slices"
	"strconv"
	"sync"

	"github.com/go-sql-driver/mysql"
	"github.com/google/uuid"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
)

var _, _ mysql.Result = (*result)(nil), (*results)(nil)

// result is the inner driver's result with the id that leafsql generated. It implements
// mysql.Result, since applications read AllLastInsertIds for queries with several
// statements.
type result struct {
	driver.Result
	id int64
}

func (r *result) LastInsertId() (int64, error) { return r.id, nil }
func (r *result) AllLastInsertIds() []int64    { return []int64{r.id} }

func (r *result) AllRowsAffected() []int64 {
	if m, ok := r.Result.(mysql.Result); ok {
		return m.AllRowsAffected()
	}
	n, _ := r.RowsAffected() // the caller gets the error from RowsAffected
	return []int64{n}
}

// results holds the results of a query with several statements. LastInsertId and RowsAffected
// return the values of the last statement, as with the inner driver.
type results struct{ ids, affected []int64 }

func (r *results) LastInsertId() (int64, error) { return lo.LastOrEmpty(r.ids), nil }
func (r *results) RowsAffected() (int64, error) { return lo.LastOrEmpty(r.affected), nil }
func (r *results) AllLastInsertIds() []int64    { return slices.Clone(r.ids) }
func (r *results) AllRowsAffected() []int64     { return slices.Clone(r.affected) }

// joinResults returns the result of a query that ran in two parts.
func joinResults(first, second driver.Result) driver.Result {
	r := new(results)
	for _, part := range []driver.Result{first, second} {
		if m, ok := part.(mysql.Result); ok {
			r.ids = append(r.ids, m.AllLastInsertIds()...)
			r.affected = append(r.affected, m.AllRowsAffected()...)
		} else {
			affected, id := session.ResultCounts(part)
			r.ids, r.affected = append(r.ids, id), append(r.affected, affected)
		}
	}
	return r
}

// resultsWithIDs does the same as resultWithIDs for a query with several statements.
func (c *conn) resultsWithIDs(ctx context.Context, p *insert.Plan, blocks []insert.Block, res driver.Result) driver.Result {
	all, ok := res.(mysql.Result)
	if !ok {
		return res
	}
	ids, affected := all.AllLastInsertIds(), all.AllRowsAffected()
	for i := range p.Inserts {
		in, b := &p.Inserts[i], &blocks[i]
		if s := in.Statement; s < len(ids) && len(affected) == len(ids) {
			id, ask := in.ResultID(b, affected[s], ids[s], c.foundRows)
			ids[s] = c.syncSessionID(ctx, in, b, affected[s], ids[s], id, ask && s == len(ids)-1)
		}
	}
	return &results{ids, affected}
}

// syncSessionID sets the session's id, SQL's LAST_INSERT_ID(), after a statement that could not set it, and restores it
// after a statement that changed it only for its result. It returns id. If ask is set, because a trigger has set the
// result's id to 0, it returns the session's id. It returns no errors: the rows are stored, and a failed internal
// statement must not look like a failed INSERT.
func (c *conn) syncSessionID(ctx context.Context, in *insert.Insert, b *insert.Block, affected, server, id int64, ask bool) int64 {
	if b.N == 0 && in.Update == insert.AlwaysUpdate && (server != 0 || c.Settings.TiDB) { // TiDB: also if the row did not change
		c.ExecUncancelled(ctx, c.Settings.SetSessionID(insert.SavedID))
	}
	if late := in.SessionIDAfter(b, affected, id); in.Way == insert.IDSetAfter && b.N > 0 && late != 0 {
		c.ExecUncancelled(ctx, c.Settings.SetSessionID(strconv.FormatInt(late, 10)))
	}
	if !ask {
		return id
	}
	s, _ := c.QueryValue(ctx, insert.SessionID) // "" on error
	id, err := strconv.ParseInt(s, 10, 64)
	if err != nil || in.Rows > 1 && id != b.First {
		return 0
	}
	return id
}

// GeneratedIDs holds the ids that were generated for one statement: N ids First,
// First+1, … in row order, one for each row without an explicit key. Under INSERT
// IGNORE and ON DUPLICATE KEY UPDATE some of them may not have been stored.
type GeneratedIDs struct {
	Table string // db.table
	First int64
	N     int

	// UUIDs holds the N keys of a uuid7 rule. First is 0 then.
	UUIDs []uuid.UUID
}

type idRecorderKey struct{}

type idRecorder struct {
	mu  sync.Mutex
	ids *[]GeneratedIDs
}

// WithGeneratedIDs returns a context that records generated ids: each successful
// statement executed with it appends its ids to *ids. Concurrent statements may share the
// context. Read the slice only after these calls have returned.
func WithGeneratedIDs(ctx context.Context, ids *[]GeneratedIDs) context.Context {
	return context.WithValue(ctx, idRecorderKey{}, &idRecorder{ids: ids})
}

// collect appends the ids that were generated for a statement.
func (to *idRecorder) collect(p *insert.Plan, blocks []insert.Block) {
	to.mu.Lock()
	defer to.mu.Unlock()
	for i := range blocks {
		b := &blocks[i]
		if b.N == 0 {
			continue
		}
		g := GeneratedIDs{Table: p.Inserts[i].Table.Name.String(), First: b.First, N: b.N}
		if p.Inserts[i].Table.UUID != insert.NoUUID {
			g.UUIDs = lo.Times(b.N, func(k int) uuid.UUID { return b.UUIDAt(k) })
		}
		*to.ids = append(*to.ids, g)
	}
}
