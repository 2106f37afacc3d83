package interleaved

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
	"github.com/leafsql/leafsql/internal/quote"
)

// blockSize is how many ids a block has: a hundred times the largest step that a row may
// have here, so that few are lost at a block's end.
const blockSize = 100_000_000

// A member is one of count tables, the one with index, counted from 0.
//
// Its row is one of leaf_alloc, and is told from others by two columns. step is 0, so
// that who does not know of blocks, such as Java Leaf, gets no ids from it. description
// says all the rest, and each statement compares it. max_id is the next id that nobody has,
// or where the row is sealed the first one of its block, which nobody gets.
type member struct {
	rows         tagrow.Rows
	alloc        *segment.AllocStore // the table as a store of its own
	index, count int64
	blockSize    int64
}

// description is what a row's column of that name says.
type description struct {
	member, members int64 // 1 of 3
	blockSize, step int64
	incarnation     string
	cluster         string // "" while the row is new, and gives no ids
}

// The text has the words of the first version of this package, which is in the rows.
const descriptionFormat = tagrow.Mark + ", blocks of %d, step %d, life %s, set %s"

// descriptions matches what descriptionFormat writes.
var descriptions = regexp.MustCompile(`^leafsql: store (\d+) of (\d+), blocks of (\d+), step (\d+), life ([0-9a-f]+), set ([0-9a-f]+|new)$`)

func (d description) String() string {
	cluster := d.cluster
	if cluster == "" {
		cluster = "new"
	}
	return fmt.Sprintf(descriptionFormat, d.member, d.members, d.blockSize, d.step, d.incarnation, cluster)
}

func parseDescription(text string) (d description, ok bool) {
	m := descriptions.FindStringSubmatch(text)
	if m == nil {
		return d, false
	}
	for i, n := range []*int64{&d.member, &d.members, &d.blockSize, &d.step} {
		*n, _ = strconv.ParseInt(m[i+1], 10, 64)
	}
	d.incarnation, d.cluster = m[5], m[6]
	if d.cluster == "new" {
		d.cluster = ""
	}
	return d, true
}

func (d description) isNew() bool { return d.cluster == "" }

// newIncarnation tells a row from those that stood in its place before.
func newIncarnation() string {
	var b [8]byte
	rand.Read(b[:])
	return hex.EncodeToString(b[:])
}

// clusterOf names the rows that were created together.
func clusterOf(rows []state) string {
	h := sha256.New()
	for _, row := range rows {
		fmt.Fprintln(h, row.incarnation)
	}
	return hex.EncodeToString(h.Sum(nil)[:8])
}

// state is where a member's row stands.
type state struct {
	description
	next       int64 // the next id that nobody has
	start, end int64 // its block: no id outside
	epoch      int64
}

func (s state) sealed() bool { return s.next == s.start }

// blockStart is the first id of the member's block in an epoch; false where there is none
// below 2^63.
func (m *member) blockStart(epoch int64) (int64, bool) {
	if epoch > (math.MaxInt64/m.blockSize-m.index)/m.count {
		return 0, false
	}
	return (epoch*m.count + m.index) * m.blockSize, true
}

// epochAbove is the first epoch of which all blocks are above id.
func (m *member) epochAbove(id int64) int64 {
	if id < 0 {
		return 0
	}
	return id/m.blockSize/m.count + 1
}

// locate fills in the block that next lies in, or ends.
func (m *member) locate(row *state) bool {
	block := row.next / m.blockSize
	if block%m.count != m.index && row.next%m.blockSize == 0 && block > 0 {
		block-- // used up
	}
	row.epoch, row.start = block/m.count, block*m.blockSize
	row.end = row.start + min(m.blockSize, math.MaxInt64-row.start)
	return block%m.count == m.index
}

// String is the member as errors name it.
func (m *member) String() string {
	return fmt.Sprintf("%s of store %d of %d", m.rows.Table, m.index+1, m.count)
}

func (m *member) mismatch(tag, reason, fix string) error {
	return &mismatchError{segment.RowError{Tag: tag, Table: m.String(), Reason: reason, Fix: fix}}
}

func (m *member) unknown(tag string) error {
	return &segment.UnknownTagError{Tag: tag, Table: m.rows.Table, Several: true}
}

func (m *member) changed(tag string) error {
	return fmt.Errorf("leafsql: tag %q in %v: the row was changed by others; try again", tag, m)
}

// shown is err as users see it.
func (m *member) shown(tag string, err error) error {
	if row, ok := errors.AsType[*tagrow.Error](err); ok {
		return &segment.RowError{Tag: tag, Table: m.rows.Table, Reason: row.Reason, Fix: row.Fix}
	}
	if errors.Is(err, tagrow.ErrNone) {
		return m.unknown(tag)
	}
	return err
}

// startOver mends rows that nobody can tell the ids of.
const startOver = "stop all processes that draw from it, delete the tag's rows in all stores, and have them created again above every id in use"

// read reads the row. A row that is not there is *segment.UnknownTagError or the server's
// 1146, one that does not belong to this member *segment.RowError.
func (m *member) read(ctx context.Context, tag string) (row state, err error) {
	var cells tagrow.Cells
	err = m.rows.Retry(ctx, func(c *sql.Conn) error {
		cells, err = m.rows.Read(ctx, c, tag, "max_id, step, description")
		return m.rows.Unlock(ctx, c, cells.Autocommit(), err)
	})
	if err != nil {
		return row, m.shown(tag, err)
	}
	var ok bool
	row.description, ok = parseDescription(cells["description"].String)
	switch {
	case !ok:
		return row, m.mismatch(tag, "its row is not one of several stores', so that others may draw from it alone", "name this store alone; or "+startOver)
	case row.member != m.index+1 || row.members != m.count || row.description.blockSize != m.blockSize:
		return row, m.mismatch(tag, fmt.Sprintf("its row is of store %d of %d, with blocks of %d ids", row.member, row.members, row.description.blockSize), "name the stores as they were named first: all of them, in the same order")
	case row.step < 1 || row.step > m.blockSize/10 && row.step > 1:
		return row, m.mismatch(tag, fmt.Sprintf("the step in its description is %d, not in 1 … %d", row.step, m.blockSize/10), "correct it there")
	}
	if row.next, err = m.rows.ReadNext(tag, cells["max_id"]); err != nil { // whose way out is for a store that is alone
		return row, &segment.RowError{Tag: tag, Table: m.String(), Reason: "max_id is " + cells["max_id"].Text(),
			Fix: fmt.Sprintf("delete its row there, which the other stores add again under leafCreate=true: DELETE FROM %s WHERE biz_tag = %s", m.rows.Table, quote.String(tag))}
	}
	if !m.locate(&row) {
		return row, m.mismatch(tag, fmt.Sprintf("its row stands at %d, among another store's ids", row.next), startOver)
	}
	if cells["step"].String != "0" {
		return row, m.drawnAlone(tag, row, cells["step"].Text())
	}
	return row, nil
}

// drawnAlone refuses a row whose step is not 0, as of a member that is away: others can draw
// from it without regard to blocks. All that they got is below it. While it stands in a block
// of its own, that are the member's ids, or those of epochs that the other members leave
// before they give ids again, see catchUp, so that step 0 makes it usable. A new row may have
// given out what its predecessor gave out.
func (m *member) drawnAlone(tag string, row state, step string) error {
	reason := "its step is " + step + " and not 0, so that others may have drawn from it alone"
	if row.isNew() {
		return m.mismatch(tag, reason, startOver)
	}
	return &aloneError{segment.RowError{Tag: tag, Table: m.String(), Reason: reason,
		Fix: fmt.Sprintf("stop those that name this store alone, and then: UPDATE %s SET step = 0 WHERE biz_tag = %s", m.rows.Table, quote.String(tag))}}
}

// move moves the row, if it still has row's description. It returns where the row stands
// then; 0 where it was not moved.
func (m *member) move(ctx context.Context, tag string, row state, by tagrow.Move) (next int64, err error) {
	by.Where = " AND step = 0 AND description = " + quote.Literal(row.description.String())
	err = m.rows.Retry(ctx, func(c *sql.Conn) error {
		next, err = m.rows.Move(ctx, c, tag, by)
		return err
	})
	return next, m.shown(tag, err)
}

// joinCluster makes a new row one of the cluster, if it still has row's description.
func (m *member) joinCluster(ctx context.Context, tag string, row state, cluster string) error {
	joined := row.description
	joined.cluster = cluster
	return m.rows.Failed("change a row of", m.rows.Exec(ctx, fmt.Sprintf("UPDATE %s SET description = %s WHERE biz_tag = %s AND step = 0 AND description = %s AND max_id >= %d",
		m.rows.Table, quote.Literal(joined.String()), quote.Literal(tag), quote.Literal(row.description.String()), row.next)))
}

// addRow adds a new, sealed row. A row that is there stays as it is.
func (m *member) addRow(ctx context.Context, tag string, start, step int64) error {
	d := description{m.index + 1, m.count, m.blockSize, step, newIncarnation(), ""}
	text := fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step, description) VALUES (%s, %d, 0, %s) ON DUPLICATE KEY UPDATE biz_tag = biz_tag", m.rows.Table, quote.Literal(tag), start, quote.Literal(d.String()))
	return m.rows.Failed("add a row to", m.rows.Exec(ctx, text))
}
