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

// rowMissingRetry is how long explicit keys are ignored for a tag without
// a row. After this time the row is looked up again.
const rowMissingRetry = time.Minute

// A Table is a configured table that a rule fits. It is safe for concurrent use.
type Table struct {
	*rules.Fit
	Name catalog.Name

	shared  *Counters
	rule    rules.Rule
	gen     idgen.Generator // nil: UUIDs
	skipper skipper         // gen if it is a skipper, otherwise nil
	counter *ids.Counter    // counter of gen, nil unless its kind is segment or sequence
	counts  *tableCounts
	keyless bool // a session's temporary table, with a key that has neither AUTO_INCREMENT nor ids

	// Warnings wait until the table is used: the server may deny a statement that was only planned.
	warnDue      atomic.Bool
	zeroReplaced atomic.Bool // a warning is due because a 0 in the key column is replaced by an id

	checked         atomic.Int64        // epoch of the store in which the row was compared with the keys
	checking        *semaphore.Weighted // weight 1, held during the comparison
	rowMissingUntil atomic.Int64        // time until which the row is assumed missing, in Unix ms
}

// skipper is a generator with a counter that has to be above explicit keys. After Skip it
// issues no id up to k, and no generator of the tag fetches such an id.
type skipper interface {
	Skip(ctx context.Context, k int64) error
}

// NewTable returns the table with the given name. f describes how the rule fits it. The error is an
// *insert.Refusal if the key still has AUTO_INCREMENT under leafAutoIncrement=refuse.
func (c *Counters) NewTable(rule rules.Rule, name catalog.Name, f *rules.Fit) (*Table, error) {
	t := &Table{Fit: f, Name: name, shared: c, rule: rule, checking: semaphore.NewWeighted(1)}
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
		if t.counter.Rows != nil { // a store that replaces leaf_alloc does not limit its ranges to a column
			t.counter.Fit(f.Highest)
		}
		t.gen = t.counter.Generator
	}
	t.counts = c.Counts.forTable(name.String())
	t.counts.update(func(s *Stats) {
		s.Generator, s.Tag, s.HighestKey = kind, tag, 0
		if f.Integer {
			s.HighestKey = f.Highest
		}
	})
	t.skipper, _ = t.gen.(skipper)
	return t, nil
}

// Counter returns the counter of the table's tag, nil if its ids do not come from a counter.
func (t *Table) Counter() *ids.Counter { return t.counter }

// FollowsKeys reports whether the counter has to be moved above explicit keys.
func (t *Table) FollowsKeys() bool { return t.skipper != nil && !t.shared.Config.KeepExplicit }

// NoteReplacedZero makes a warning due, because a 0 is replaced by an id in a table that rules name only by a pattern.
func (t *Table) NoteReplacedZero() {
	if t.zeroReplaced.CompareAndSwap(false, true) {
		t.warnDue.Store(true)
	}
}

// KeylessCopy returns a Table for a session's temporary table that was created LIKE this table. Its Draw refuses every row
// without a key.
func (t *Table) KeylessCopy(name catalog.Name) *Table {
	return &Table{Fit: t.Fit, Name: name, shared: t.shared, keyless: true}
}

const autoIncrementCollides = "the column still has AUTO_INCREMENT, so a writer without leafsql can use ids that leafsql will issue"

// checkAutoIncrement returns a refusal for a column with AUTO_INCREMENT, or makes a warning due, depending on the configuration.
// Without leafsql, the server generates the numbers after leafsql's highest id, which are equal to leafsql's later ids.
func (t *Table) checkAutoIncrement() error {
	switch {
	case !t.Key.AutoIncrement:
		return nil
	case t.shared.Config.RefuseAutoIncrement:
		return rules.Refuse(t.Name, t.Key.Name, autoIncrementCollides, "remove AUTO_INCREMENT: "+rules.ModifyText(t.Name, t.Key.Name, t.Key.Type)+"; or set leafAutoIncrement=allow")
	}
	t.warnDue.Store(true)
	return nil
}

// warn logs the warnings that are due, each once for a table.
func (t *Table) warn() {
	t.warnDue.Store(false)
	if t.Key.AutoIncrement {
		t.shared.loggerOnce("auto_increment "+t.Name.String()).Warn("leafsql: "+autoIncrementCollides, "table", t.Name.String(), "column", t.Key.Name, "hint", rules.ModifyText(t.Name, t.Key.Name, t.Key.Type))
	}
	if t.zeroReplaced.Load() { // 0 may be an ordinary key in a table that no rule names
		t.shared.loggerOnce("zero "+t.Name.String()).Warn("leafsql: a written 0 is replaced by a generated key, as in an AUTO_INCREMENT column, in a table that only a pattern of leafTables matches", "table", t.Name.String(), "column", t.Key.Name,
			"hint", "if 0 is a valid key: exclude the table with !"+t.Name.String()+" in leafTables, or set leafZero=keep to store 0 in all tables; otherwise name the table in leafTables")
	}
}

// Draw sets the first id, or the first UUID, of b, a block of b.N consecutive ids. All ids fit into the key column:
// outside strict mode a server would store the column's highest value in place of a higher id, and report the id that was
// sent. Draw fails with a refusal (insert.ErrRefused), a *ConfigError, a *catalog.Failure or a *FillError.
func (t *Table) Draw(ctx context.Context, s insert.Querier, b *insert.Block) (err error) {
	if t.keyless {
		return rules.Refuse(t.Name, t.Key.Name, "it was created LIKE a table with generated keys, so its key has neither AUTO_INCREMENT nor a default, and the server would store 0",
			"give it one: "+rules.ModifyText(t.Name, t.Key.Name, t.Key.Type)+" AUTO_INCREMENT")
	}
	if t.warnDue.Load() {
		t.warn()
	}
	if t.gen == nil {
		b.UUID, err = uuid7.New()
	} else {
		if t.checked.Load() != t.shared.Store.Epoch.Load() {
			if err := t.compareWithKeys(ctx, s); err != nil {
				return err
			}
		}
		if b.First, err = t.gen.Next(ctx, b.N); err != nil {
			if full, ok := errors.AsType[*segment.FullError](err); ok {
				b.First, err = full.Next, nil // this id is refused below
			}
		}
	}
	if err != nil {
		if errors.Is(err, insert.ErrRefused) {
			return err
		}
		return &FillError{Table: t.Name.String(), Rows: b.N, Err: err}
	}
	if last := max(b.First, b.First+int64(b.N)-1); t.gen != nil && last > t.Highest { // the sum may overflow
		return rules.Refuse(t.Name, t.Key.Name,
			"id "+strconv.FormatInt(last, 10)+" is above the highest value of the column, "+strconv.FormatInt(t.Highest, 10),
			"make it BIGINT: "+rules.ModifyText(t.Name, t.Key.Name, "BIGINT"))
	}
	t.counts.statements.Add(1)
	t.counts.ids.Add(int64(b.N))
	return nil
}

// Skip moves the counter above an explicit key, as AUTO_INCREMENT does. The
// column's highest value is ignored, because no id is above it; the search for the highest key also
// ignores it. insert.Keys describes late. The error is an *insert.Refusal or a *FillError.
func (t *Table) Skip(ctx context.Context, s insert.Querier, k int64, late *insert.Block) error {
	if t.skipper == nil || k <= 0 || k >= t.Highest || t.shared.Config.KeepExplicit || t.rowMissingUntil.Load() > time.Now().UnixMilli() {
		return nil
	}
	if t.warnDue.Load() {
		t.warn()
	}
	err := error(nil)
	if t.checked.Load() != t.shared.Store.Epoch.Load() {
		err = t.compareWithKeys(ctx, s)
	}
	if err == nil && late != nil && (late.PendingSkip == k || t.counter != nil && t.counter.IsFar(k, t.Highest)) {
		late.PendingSkip = k
		return nil
	}
	if err == nil {
		err = t.skipper.Skip(ctx, k)
	}
	_, rowless := errors.AsType[*segment.UnknownTagError](err)
	_, told := errors.AsType[*FillError](err)
	switch {
	case errors.Is(err, idgen.ErrExhausted):
		return nil // there is no id above the key to issue
	case rowless && !t.shared.Config.Create:
		t.rowMissingUntil.Store(time.Now().Add(rowMissingRetry).UnixMilli()) // there is no counter
		return nil
	case err == nil || told || errors.Is(err, insert.ErrRefused):
		return err
	}
	return &FillError{Table: t.Name.String(), Key: k, Err: err}
}

// SkipAfter moves the counter above a key after its statement, which ended with err. It does so even if the
// outcome is unknown, but does nothing if the key is 0. After an error of the server, SkipAfter reads the highest
// stored key, since a table without transactions may hold some of the rows. If the counter cannot be moved now,
// the next statement that needs an id compares it with the keys again.
func (t *Table) SkipAfter(ctx context.Context, k int64, err error) {
	if k == 0 {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	if _, failed := errors.AsType[*mysql.MySQLError](err); failed {
		if stored, _, known, err := t.highestBelow(ctx, nil, t.Name, t.Indexed, false, t.Near); err == nil && known {
			k = min(k, stored) // a table without transactions may contain some of the statement's rows
		}
	}
	if t.Skip(ctx, nil, k, nil) != nil {
		t.checked.Store(0)
	}
}

// SkipDuplicate moves the counter above all keys if an id of the block was already in use, because
// rows were inserted without leafsql.
func (t *Table) SkipDuplicate(ctx context.Context, b *insert.Block) {
	if t.skipper == nil || !t.Integer {
		return
	}
	if used, _, known, err := t.highestBelow(ctx, nil, t.Name, t.Indexed, false, b.First+int64(b.N)); err != nil || !known || used < b.First || used >= t.Near {
		return
	}
	stored, given, _, err := t.highestBelow(ctx, nil, t.Name, t.Indexed, t.Key.AutoIncrement, t.Near)
	if highest := max(stored, given); err == nil && t.skipper.Skip(ctx, highest) == nil {
		t.shared.Log().Warn("leafsql: a generated id was already in use; the next ids are above the highest key", "table", t.Name.String(), "first_id", b.First, "highest_key", highest)
	}
}
