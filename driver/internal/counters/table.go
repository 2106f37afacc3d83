package counters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/uuid7"
)

// rowMissingRetry is how long explicit keys are not followed for a tag without
// a row, before it is looked for again.
const rowMissingRetry = time.Minute

// A Table is a configured table that was found fit to be filled.
type Table struct {
	*rules.Fit
	Name catalog.Name

	all     *Counters
	rule    rules.Rule
	gen     idgen.Generator // nil: UUIDs
	skips   skipper         // gen, where it is one
	counter *ids.Counter    // of gen, where that is leafsql's own
	counts  *tableCounts
	keyless bool // it is a session's temporary table, whose key has neither AUTO_INCREMENT nor ids

	// Warnings wait until the table is used: a statement that was only planned may be denied by the server.
	warnDue atomic.Bool
	zero    atomic.Bool // one is due because a 0 is replaced

	checked         atomic.Int64        // the store's epoch in which the row was held against the keys
	checking        *semaphore.Weighted // of 1, held while that is done
	rowMissingUntil atomic.Int64        // until when the tag is taken to have no row, in Unix ms
}

// skipper is a generator whose counter explicit keys move: afterwards it
// issues nothing up to k, and no other generator of the tag starts there.
type skipper interface {
	Skip(ctx context.Context, k int64) error
}

// Table returns a table that a rule fits.
func (c *Counters) Table(rule rules.Rule, name catalog.Name, f *rules.Fit) (*Table, error) {
	t := &Table{Fit: f, Name: name, all: c, rule: rule, checking: semaphore.NewWeighted(1)}
	if err := t.checkAutoIncrement(); err != nil {
		return nil, err
	}
	kind, tag := string(cmp.Or(rule.Kind, rules.Segment)), ""
	switch {
	case rule.Generator != nil:
		t.gen, kind = rule.Generator, fmt.Sprintf("%T", rule.Generator)
	case rule.Kind == rules.Snowflake:
		t.gen = c.Snowflakes
	case rule.Kind == rules.UUID7:
	default:
		tag = rules.TagOf(rule, name.Table)
		t.counter = c.Store.Counter(ids.Tag{Name: tag, Sequence: rule.Kind == rules.Sequence})
		if t.counter.Rows != nil { // ranges of a replacement fit no column
			t.counter.Fit(f.Highest)
		}
		t.gen = t.counter.Generator
	}
	t.counts = c.Counts.of(name.String())
	t.counts.change(func(s *Stats) {
		s.Generator, s.Tag, s.HighestKey = kind, tag, 0
		if f.Integer {
			s.HighestKey = f.Highest
		}
	})
	t.skips, _ = t.gen.(skipper)
	return t, nil
}

// Counter returns the counter of the table's tag, nil if its ids come from elsewhere.
func (t *Table) Counter() *ids.Counter { return t.counter }

// Follows reports whether explicit keys move the counter.
func (t *Table) Follows() bool { return t.skips != nil && !t.all.Config.KeepExplicit }

// ReplacedZero makes a warning due: a 0 is replaced in a table that no rule names.
func (t *Table) ReplacedZero() {
	if t.zero.CompareAndSwap(false, true) {
		t.warnDue.Store(true)
	}
}

// Keyless returns the table's stand-in for a session's temporary table that was made like it: every row without a key is
// refused.
func (t *Table) Keyless(name catalog.Name) *Table {
	return &Table{Fit: t.Fit, Name: name, all: t.all, keyless: true}
}

const countsToo = "the column still has AUTO_INCREMENT, so a writer without leafsql takes numbers that leafsql will give out"

// checkAutoIncrement refuses a column that two sides give numbers to, or makes a warning due: writers without leafsql take the
// number after leafsql's highest id, and collide with it later.
func (t *Table) checkAutoIncrement() error {
	switch {
	case !t.Key.AutoIncrement:
		return nil
	case t.all.Config.RefuseAutoIncrement:
		return rules.Refuse(t.Name, t.Key.Name, countsToo, "take AUTO_INCREMENT off it: "+rules.Modify(t.Name, t.Key.Name, t.Key.Type)+"; or set leafAutoIncrement=allow")
	}
	t.warnDue.Store(true)
	return nil
}

// warn writes the warnings that are due, each once for a table.
func (t *Table) warn() {
	t.warnDue.Store(false)
	if t.Key.AutoIncrement {
		t.all.once("auto_increment "+t.Name.String()).Warn("leafsql: "+countsToo, "table", t.Name.String(), "column", t.Key.Name, "take it off with", rules.Modify(t.Name, t.Key.Name, t.Key.Type))
	}
	if t.zero.Load() { // in a table that no rule names, where 0 may be a key like others
		t.all.once("zero "+t.Name.String()).Warn("leafsql: a written 0 asks for a key, as in an AUTO_INCREMENT column, in a table that leafTables names only by a pattern", "table", t.Name.String(), "column", t.Key.Name,
			"way out", "where 0 is a key of its own: !"+t.Name.String()+" in leafTables leaves the table out, leafZero=keep stores 0 in all; else name the table in leafTables")
	}
}

// Draw takes the ids of a block. They fit into the key column: outside strict mode a
// server would store a larger one clipped, and report the one that was sent.
func (t *Table) Draw(ctx context.Context, s insert.Session, b *insert.Block) (err error) {
	if t.keyless {
		return rules.Refuse(t.Name, t.Key.Name, "it was made LIKE a table that has its keys from leafsql, so its key has neither AUTO_INCREMENT nor a default, and the server would store 0",
			"give it one: "+rules.Modify(t.Name, t.Key.Name, t.Key.Type)+" AUTO_INCREMENT")
	}
	if t.warnDue.Load() {
		t.warn()
	}
	if t.gen == nil {
		var keys uuid7.Block
		if keys, err = uuid7.New(b.N); err == nil {
			b.UUID = keys.At(0)
		}
	} else {
		if t.checked.Load() != t.all.Store.Epoch.Load() {
			if err := t.check(ctx, s); err != nil {
				return err
			}
		}
		if b.First, err = t.gen.Next(ctx, b.N); err != nil {
			if full, ok := errors.AsType[*segment.FullError](err); ok {
				b.First, err = full.Next, nil // which is refused below
			}
		}
	}
	if err != nil {
		if errors.Is(err, insert.ErrRefused) {
			return err
		}
		return &FillError{Table: t.Name.String(), Rows: b.N, Err: err}
	}
	if last := max(b.First, b.First+int64(b.N)-1); t.gen != nil && last > t.Highest { // the sum may be above all numbers
		return rules.Refuse(t.Name, t.Key.Name,
			"id "+strconv.FormatInt(last, 10)+" is above the highest that the column holds, "+strconv.FormatInt(t.Highest, 10),
			"make it BIGINT: "+rules.Modify(t.Name, t.Key.Name, "BIGINT"))
	}
	t.counts.statements.Add(1)
	t.counts.ids.Add(int64(b.N))
	return nil
}

// Skip moves the counter above an explicit key, as AUTO_INCREMENT moves. The
// column's highest value is not followed, here and where the highest key is
// looked for: no id is above it.
func (t *Table) Skip(ctx context.Context, s insert.Session, k int64, late *insert.Block) error {
	if t.skips == nil || k <= 0 || k >= t.Highest || t.all.Config.KeepExplicit || t.rowMissingUntil.Load() > time.Now().UnixMilli() {
		return nil
	}
	if t.warnDue.Load() {
		t.warn()
	}
	err := error(nil)
	if t.checked.Load() != t.all.Store.Epoch.Load() {
		err = t.check(ctx, s)
	}
	if err == nil && late != nil && (late.Late == k || t.counter != nil && t.counter.Far(k, t.Highest)) {
		late.Late = k
		return nil
	}
	if err == nil {
		err = t.skips.Skip(ctx, k)
	}
	_, rowless := errors.AsType[*segment.UnknownTagError](err)
	_, told := errors.AsType[*FillError](err)
	switch {
	case errors.Is(err, idgen.ErrExhausted):
		return nil // no id is left above it that could be issued
	case rowless && !t.all.Config.Create:
		t.rowMissingUntil.Store(time.Now().Add(rowMissingRetry).UnixMilli()) // nothing to move
		return nil
	case err == nil || told || errors.Is(err, insert.ErrRefused):
		return err
	}
	return &FillError{Table: t.Name.String(), Key: k, Err: err}
}

// SkipAfter moves the counter above a key, unless 0, whose statement was sent first and ended with err, also if
// the outcome is unknown. After an error of the server it looks which keys are stored, as some may be in a
// table without transactions. If the counter cannot be moved now, the next statement that needs an id
// compares it with the keys again.
func (t *Table) SkipAfter(ctx context.Context, k int64, err error) {
	if k == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, failed := errors.AsType[*mysql.MySQLError](err); failed {
		if stored, _, known, err := t.highestBelow(ctx, nil, t.Name, t.Indexed, false, t.Near); err == nil && known {
			k = min(k, stored) // some of the statement's rows, in a table without transactions
		}
	}
	if t.Skip(ctx, nil, k, nil) != nil {
		t.checked.Store(0)
	}
}

// AfterDuplicate moves the counter above all keys where an id of ours was in use: keys
// came to the table that nobody told leafsql of.
func (t *Table) AfterDuplicate(ctx context.Context, b *insert.Block) {
	if t.skips == nil || !t.Integer {
		return
	}
	if used, _, known, err := t.highestBelow(ctx, nil, t.Name, t.Indexed, false, b.First+int64(b.N)); err != nil || !known || used < b.First || used >= t.Near {
		return
	}
	stored, given, _, err := t.highestBelow(ctx, nil, t.Name, t.Indexed, t.Key.AutoIncrement, t.Near)
	if highest := max(stored, given); err == nil && t.skips.Skip(ctx, highest) == nil {
		t.all.Log().Warn("leafsql: a generated id was in use already; the next ids are above the highest key", "table", t.Name.String(), "first id", b.First, "highest key", highest)
	}
}
