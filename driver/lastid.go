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

var (
	_ mysql.Result = (*result)(nil)
	_ mysql.Result = (*results)(nil)
)

// result is the inner driver's with the id that leafsql gave. It stays a
// mysql.Result, whose AllLastInsertIds programs read for multi-statement
// texts.
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
	n, _ := r.RowsAffected() // an error shows in RowsAffected, which passes through
	return []int64{n}
}

// results are those of a text of several statements; the last counts, as with the
// inner driver.
type results struct{ ids, affected []int64 }

func (r *results) LastInsertId() (int64, error) { return lo.LastOrEmpty(r.ids), nil }
func (r *results) RowsAffected() (int64, error) { return lo.LastOrEmpty(r.affected), nil }
func (r *results) AllLastInsertIds() []int64    { return slices.Clone(r.ids) }
func (r *results) AllRowsAffected() []int64     { return slices.Clone(r.affected) }

// joined is the result of a text that ran in two parts.
func joined(first, second driver.Result) driver.Result {
	r := new(results)
	for _, part := range []driver.Result{first, second} {
		if m, ok := part.(mysql.Result); ok {
			r.ids = append(r.ids, m.AllLastInsertIds()...)
			r.affected = append(r.affected, m.AllRowsAffected()...)
		} else {
			affected, id := counts(part)
			r.ids, r.affected = append(r.ids, id), append(r.affected, affected)
		}
	}
	return r
}

// result says the ids of an executed text. The inner driver's result stays
// what it is where it says them itself.
func (c *conn) result(ctx context.Context, e *execution, blocks []insert.Block) (driver.Result, error) {
	p, res := e.st.plan, e.result
	switch {
	case len(blocks) == 0:
		return res, nil
	case p.Results != 1:
		collect(ctx, p, blocks)
		return c.results(ctx, p, blocks, res), nil
	}
	in, b := &p.Inserts[0], &blocks[0]
	affected, server := counts(res)
	if b.N == 0 {
		if in.OwnMarker && server != 0 {
			c.Always(ctx, "SET last_insert_id = @leafsql_l")
		}
		id := explicitKeyID(in, b, affected, server, c.connector.foundRows)
		if id == server {
			return res, nil
		}
		return &result{Result: res, id: id}, nil
	}
	if in.Conditional && affected == 0 && !in.Upsert && !in.Ignore {
		return res, nil // its WHERE said no
	}
	collect(ctx, p, blocks)
	id, ask := generatedKeyID(in, b, affected, server, c.connector.foundRows)
	if ask || in.SetIDAfter {
		id = c.settleID(ctx, in, b, affected, id, ask)
	}
	return &result{Result: res, id: id}, nil
}

// results is result for a text of several statements.
func (c *conn) results(ctx context.Context, p *insert.Plan, blocks []insert.Block, res driver.Result) driver.Result {
	all, ok := res.(mysql.Result)
	if !ok {
		return res
	}
	ids, affected := all.AllLastInsertIds(), all.AllRowsAffected()
	for i := range p.Inserts {
		in := &p.Inserts[i]
		s := in.Statement
		switch {
		case s >= len(ids) || len(affected) != len(ids):
		case blocks[i].N == 0:
			ids[s] = explicitKeyID(in, &blocks[i], affected[s], ids[s], c.connector.foundRows)
		default:
			id, ask := generatedKeyID(in, &blocks[i], affected[s], ids[s], c.connector.foundRows)
			ids[s] = c.settleID(ctx, in, &blocks[i], affected[s], id, ask && s == len(ids)-1)
		}
	}
	return &results{ids, affected}
}

func counts(res driver.Result) (affected, id int64) {
	affected, _ = res.RowsAffected() // go-sql-driver gives no errors here
	id, _ = res.LastInsertId()
	return affected, id
}

// settleID sets SQL's LAST_INSERT_ID() where the statement could not carry it, or asks
// the session for the id where a trigger set the answer's to 0, if it is the last
// statement that ran. The rows are written: an error of that question must not look
// like theirs.
func (c *conn) settleID(ctx context.Context, in *insert.Insert, b *insert.Block, affected, id int64, ask bool) int64 {
	if late := idAfter(in, b, affected, id); in.SetIDAfter && late != 0 {
		c.setLastID(ctx, late)
	}
	if !ask {
		return id
	}
	s, err := session.Value(ctx, c.Conn, "LAST_INSERT_ID()")
	if err != nil {
		return 0
	}
	id, err = strconv.ParseInt(s, 10, 64)
	if err != nil || in.Rows > 1 && id != b.First {
		return 0
	}
	return id
}

// idAfter is what SQL's LAST_INSERT_ID() has to be set to after a statement that could
// not carry it: the statement's LastInsertId, or the first id of an INSERT IGNORE that
// stored some of its rows. 0 leaves it as it is.
func idAfter(in *insert.Insert, b *insert.Block, affected, id int64) int64 {
	if id == 0 && in.Ignore && !in.Upsert && affected > 0 {
		return b.First
	}
	return id
}

// setLastID makes SQL's LAST_INSERT_ID() an id that no place in the statement
// could carry. The rows are written: that it fails is no error of theirs.
func (c *conn) setLastID(ctx context.Context, id int64) {
	c.Always(ctx, "SET last_insert_id = "+strconv.FormatInt(id, 10))
}

// explicitKeyID is the LastInsertId of an INSERT whose rows all brought their keys. Of one row it
// is that key where that is certain, as a server says it of AUTO_INCREMENT:
//
//	INSERT, REPLACE                              the row's key, if it was stored
//	upsert that inserted the row                 likewise
//	upsert whose list does not change the key    likewise if it updated the row, where
//	                                             no other column is unique
//	the same where others are                    the key of the row that it updated, by
//	                                             a marker
//	upsert with a marker of its own              what the server says, if that is an id
//
// Of several rows it is the server's answer, because libraries count on from it, and so
// it is where a trigger may set the key, and where an upsert left the row as it was.
func explicitKeyID(in *insert.Insert, b *insert.Block, affected, server int64, foundRows bool) int64 {
	switch {
	case in.OwnMarker && server != 0 && affected != 2:
		return 0 // the row was there, and stayed as it was
	case server != 0, affected == 0, b.OwnKey == 0, in.Table.SetsKey, in.Upsert && in.Table.UpdatesSetKey:
	case !in.Upsert, in.KeepsKey && !b.Moved, in.OwnMarker, affected == 1 && (!foundRows || in.UserMarker):
		return b.OwnKey
	}
	return server
}

// generatedKeyID is the LastInsertId of an INSERT that drew the ids of a block,
// by the count and the id in the server's answer. ask says that only SELECT
// LAST_INSERT_ID() on the same connection knows it.
//
//	INSERT, REPLACE                                 the first id of the block
//	INSERT IGNORE                                   the first id if every row was stored, else 0
//	upsert of one row, with the markers             what the server says: the row's id, updated or not
//	upsert of several rows, with the markers        the first id if the server says so, else 0
//	upsert of one row without our marker            the first id if one row was inserted for sure, else 0
//	upsert of several rows without our marker       0
//	keys that are UUIDs, or that a trigger may set  what the server says
//	select without a table that gave no row         what the server says; 0 under IGNORE
func generatedKeyID(in *insert.Insert, b *insert.Block, affected, server int64, foundRows bool) (id int64, ask bool) {
	every := affected == int64(in.Rows)
	switch {
	case b.N == 0, in.Table.UUID != insert.NoUUID, in.Table.SetsKey, in.Upsert && in.Table.UpdatesSetKey, in.Conditional && affected == 0 && !in.Ignore:
		return server, false
	case in.Upsert && in.UpsertMarker && in.Marker:
		// Each row that was updated or left alone put its own key into
		// LAST_INSERT_ID(), after the first filled row had put the first id
		// there: it is still there only if no row from that one on was a
		// duplicate.
		switch {
		case server == 0 && affected > 0:
			return 0, true
		case in.Rows == 1:
			return server, false
		case server == b.First && (!in.Ignore || every):
			return b.First, false
		}
		return 0, false
	case in.Upsert && in.UpsertMarker && in.Rows == 1 && server != 0: // no marker in the row
		return server, false
	case in.Upsert && in.Rows == 1:
		// Without our marker an affected count of 1 says "inserted", except
		// under clientFoundRows, where an unchanged row counts 1 as well. A
		// marker of the user's own says which row was updated.
		switch {
		case in.UserMarker && server != 0:
			return server, false
		case affected == 1 && (!foundRows || in.UserMarker):
			return b.First, false
		}
		return 0, false
	case in.Upsert, in.Ignore && !every:
		return 0, false
	}
	return b.First, false
}

// GeneratedIDs are the ids that one statement gave to its rows: First,
// First+1, … in row order, counting only rows that had none. Under INSERT
// IGNORE and ON DUPLICATE KEY UPDATE some of them may not have been stored.
type GeneratedIDs struct {
	Table string // db.table
	First int64
	N     int

	// UUIDs are the keys of a uuid7 rule, N of them; First is 0 then.
	UUIDs []uuid.UUID
}

type generatedKey struct{}

type generatedTo struct {
	mu  sync.Mutex
	ids *[]GeneratedIDs
}

// WithGeneratedIDs returns a context under which each statement that was run
// adds to ids what it generated. The slice may be read once those calls have
// returned.
func WithGeneratedIDs(ctx context.Context, ids *[]GeneratedIDs) context.Context {
	return context.WithValue(ctx, generatedKey{}, &generatedTo{ids: ids})
}

// collect adds what an executed text generated, if the context asks for it.
func collect(ctx context.Context, p *insert.Plan, blocks []insert.Block) {
	to, ok := ctx.Value(generatedKey{}).(*generatedTo)
	if !ok {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for i := range blocks {
		b := &blocks[i]
		if b.N == 0 {
			continue
		}
		g := GeneratedIDs{Table: p.Inserts[i].Table.Ref.(*table).name.String(), First: b.First, N: b.N}
		if p.Inserts[i].Table.UUID != insert.NoUUID {
			for k := range b.N {
				g.UUIDs = append(g.UUIDs, b.UUIDAt(k))
			}
		}
		*to.ids = append(*to.ids, g)
	}
}
