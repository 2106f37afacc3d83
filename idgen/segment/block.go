package segment

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/leafsql/leafsql/internal/quote"
)

// blockSize is how many ids a block has: a hundred times the largest step that a row of
// interleaved stores may have, so that few are lost at a block's end.
const blockSize = 100_000_000

// A share is what one of several stores has of a tag's ids: of m stores the k-th, counted
// from 0, owns the blocks k, k+m, k+2m, …; each of them belongs to a round, 0, 1, 2, ….
//
// Its row is one of leaf_alloc, and is told from others by two columns. step is 0, so
// that who does not know of blocks, such as Java Leaf, gets no ids from it. description is
// a mark that says all the rest, and that each statement compares.
//
// max_id is the next id that nobody has, but for the first one of a block: a row that
// stands there stands at the block's door, and gives none until the block was opened.
// So no store ever gives the first id of a block.
type share struct {
	counter
	k, m int64
	size int64 // of a block
}

// alloc is the table as a store of its own.
func (s *share) alloc() *AllocStore {
	return &AllocStore{counter{db: s.db, table: s.table, columns: leafs}}
}

// mark is a row's description.
type mark struct {
	store, stores int64 // 1 of 3
	size, step    int64
	life          string // another one for each time that the row was created
	set           string // of the rows that belong together; "" while the row is new, and gives no ids
}

const markFormat = "leafsql: store %d of %d, blocks of %d, step %d, life %s, set %s"

// marks matches what markFormat writes.
var marks = regexp.MustCompile(`^leafsql: store (\d+) of (\d+), blocks of (\d+), step (\d+), life ([0-9a-f]+), set ([0-9a-f]+|new)$`)

func (k mark) String() string {
	set := k.set
	if set == "" {
		set = "new"
	}
	return fmt.Sprintf(markFormat, k.store, k.stores, k.size, k.step, k.life, set)
}

func parseMark(description string) (k mark, ok bool) {
	m := marks.FindStringSubmatch(description)
	if m == nil {
		return k, false
	}
	for i, n := range []*int64{&k.store, &k.stores, &k.size, &k.step} {
		*n, _ = strconv.ParseInt(m[i+1], 10, 64)
	}
	k.life, k.set = m[5], m[6]
	if k.set == "new" {
		k.set = ""
	}
	return k, true
}

// newLife tells a row from those that stood in its place before.
func newLife() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// setOf names the rows that were created together.
func setOf(places []place) string {
	h := sha256.New()
	for _, p := range places {
		fmt.Fprintln(h, p.life)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// place is where a store's row stands.
type place struct {
	mark
	next       int64 // the next id that nobody has
	start, end int64 // its block: no id outside
	round      int64
}

func (p place) isNew() bool  { return p.set == "" }
func (p place) atDoor() bool { return p.next == p.start }

// door is where the store's block of a round begins; false where there is none below
// 2^63.
func (s *share) door(round int64) (int64, bool) {
	if round > (math.MaxInt64/s.size-s.k)/s.m {
		return 0, false
	}
	return (round*s.m + s.k) * s.size, true
}

// roundAbove is the first round of which all blocks are above id.
func (s *share) roundAbove(id int64) int64 {
	if id < 0 {
		return 0
	}
	return id/s.size/s.m + 1
}

// at fills in the block that next lies in, or ends.
func (s *share) at(p *place) bool {
	block := p.next / s.size
	if block%s.m != s.k && p.next%s.size == 0 && block > 0 {
		block-- // used up
	}
	p.round, p.start = block/s.m, block*s.size
	p.end = p.start + min(s.size, math.MaxInt64-p.start)
	return block%s.m == s.k
}

// look reads the row. A row that is not there is *UnknownTagError or the server's 1146,
// one that does not belong to this store *RowError.
func (s *share) look(ctx context.Context, tag string) (p place, err error) {
	err = s.retry(ctx, func(c *sql.Conn) error {
		var autocommit bool
		p, autocommit, err = s.readPlace(ctx, c, tag)
		return s.unlock(ctx, c, autocommit, err)
	})
	return p, err
}

func (s *share) readPlace(ctx context.Context, c *sql.Conn, tag string) (p place, autocommit bool, err error) {
	all, err := s.cells(ctx, c, tag, "max_id, step, description")
	if err != nil {
		return p, false, err
	}
	autocommit = all.autocommit()
	foreign := func(reason, fix string) error { return refusedStore(tag, s.table, int(s.k)+1, int(s.m), reason, fix) }
	const afresh = "stop all processes that draw from it, delete the tag's rows in all stores, and have them created again above every id in use"
	var ok bool
	p.mark, ok = parseMark(all["description"].String)
	switch {
	case !ok:
		return p, autocommit, foreign("its row is not one of several stores', so that others may draw from it alone", "name this store alone; or "+afresh)
	case p.store != s.k+1 || p.stores != s.m || p.size != s.size:
		return p, autocommit, foreign(fmt.Sprintf("its row is of store %d of %d, with blocks of %d ids", p.store, p.stores, p.size), "name the stores as they were named first: all of them, in the same order")
	case all["step"].String != "0":
		return p, autocommit, foreign("its step is "+null(all["step"])+" and not 0, so that others may have drawn from it alone", afresh)
	case p.step < 1 || p.step > s.size/10 && p.step > 1:
		return p, autocommit, foreign(fmt.Sprintf("the step in its description is %d, not in 1 … %d", p.step, s.size/10), "correct it there")
	}
	if p.next, err = s.readNext(tag, all["max_id"]); err == nil && !s.at(&p) {
		err = foreign(fmt.Sprintf("its row stands at %d, among another store's ids", p.next), afresh)
	}
	return p, autocommit, err
}

// A move takes a row to floor or higher, and n further, if it stands in from … to.
type move struct {
	from, to, floor, n int64
}

// move moves the row, if it still is p's. It returns where the row stands then; 0 where
// it was not moved.
func (s *share) move(ctx context.Context, tag string, p place, m move) (next int64, err error) {
	text := s.text(tag, fmt.Sprintf("GREATEST(max_id, %d) + %d", m.floor, m.n),
		fmt.Sprintf(" AND step = 0 AND description = %s AND max_id BETWEEN %d AND %d", quote.Literal(p.mark.String()), m.from, m.to))
	err = s.retry(ctx, func(c *sql.Conn) error {
		rows, id, err := s.take(ctx, c, tag, text)
		switch next = 0; {
		case err != nil || rows == 0:
			return err
		case rows > 1:
			return s.twoRows(tag)
		case id-m.n < max(m.from, m.floor) || id-m.n > max(m.to, m.floor):
			return &RowError{tag, s.table, fmt.Sprintf("max_id was to grow by %d from %d … %d, and the server says it is %d", m.n, max(m.from, m.floor), max(m.to, m.floor), id),
				"look for triggers on the table and for a proxy that changes insert ids"}
		}
		next = id
		return nil
	})
	return next, err
}

// raise takes the row up to a door, if it stands below.
func (s *share) raise(ctx context.Context, tag string, p place, door int64) (next int64, err error) {
	return s.move(ctx, tag, p, move{to: door - 1, floor: door})
}

// open opens the door that the row stands at.
func (s *share) open(ctx context.Context, tag string, p place, door int64) (next int64, err error) {
	return s.move(ctx, tag, p, move{from: door, to: door, n: 1})
}

// adopt makes a new row one of the set, if it still is p's.
func (s *share) adopt(ctx context.Context, tag string, p place, set string) error {
	k := p.mark
	k.set = set
	return s.failed("change a row of", s.insert(ctx, fmt.Sprintf("UPDATE %s SET description = %s WHERE biz_tag = %s AND step = 0 AND description = %s AND max_id >= %d",
		s.table, quote.Literal(k.String()), quote.Literal(tag), quote.Literal(p.mark.String()), p.next)))
}

// add adds a new row at a door. A row that is there stays as it is.
func (s *share) add(ctx context.Context, tag string, door, step int64) error {
	k := mark{s.k + 1, s.m, s.size, step, newLife(), ""}
	text := fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step, description) VALUES (%s, %d, 0, %s) ON DUPLICATE KEY UPDATE biz_tag = biz_tag", s.table, quote.Literal(tag), door, quote.Literal(k.String()))
	return s.failed("add a row to", s.insert(ctx, text))
}
