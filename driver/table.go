package driver

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/uuid7"
	"github.com/leafsql/leafsql/internal/quote"
)

const (
	createdStep = 1000 // of the leaf_alloc rows that leafCreate adds

	// raiseMargin is how far a row that is too low is raised above the highest
	// key: other processes may hold ranges below it.
	raiseMargin = 1_000_000

	// rowMissingRetry is how long explicit keys are not followed for a tag without
	// a row, before it is looked for again.
	rowMissingRetry = time.Minute
)

// A table is a configured table that was found fit to be filled.
type table struct {
	*fit
	c       *Connector
	name    catalog.Name
	rule    Rule
	gen     idgen.Generator // nil: UUIDs
	skips   skipper         // gen, where it is one
	counter *ids.Counter    // of gen, where that is leafsql's own
	counts  *tableCounts
	keyless bool // it is a temporary table whose key nobody gives

	checked         atomic.Int64        // the store's epoch in which the row was held against the keys
	checking        *semaphore.Weighted // of 1, held while that is done
	rowMissingUntil atomic.Int64        // until when the tag is taken to have no row, in Unix ms
}

// skipper is a generator whose counter explicit keys move: afterwards it
// issues nothing up to k, and no other generator of the tag starts there.
type skipper interface {
	Skip(ctx context.Context, k int64) error
}

// A fit is how a rule fits a table.
type fit struct {
	key     catalog.Column
	highest int64 // the highest id that the key column can hold
	integer bool
	indexed bool // an index begins with the key
	uuids   insert.UUIDForm
}

// fit holds a table's columns against a rule. It is nil where a rule that may
// mean many tables does not mean this one.
func (cfg *Config) fit(rule Rule, name catalog.Name, t *catalog.Table) (*fit, error) {
	lenient := cfg.Auto || strings.Contains(rule.Table, "*")
	key, err := keyColumn(rule, name, t.Columns)
	if err != nil {
		if lenient && rule.Column == "" {
			return nil, nil
		}
		return nil, err
	}
	f := &fit{key: key, indexed: t.Indexed(key.Name)}
	f.highest, f.integer = key.Highest()
	if rule.Kind == UUID7 && rule.Generator == nil {
		if f.uuids, err = cfg.uuidForm(name, key); err != nil && !lenient {
			return nil, err
		}
		f.highest, f.integer = math.MaxInt64, false
	}
	switch {
	case lenient && !f.integer && f.uuids == insert.NoUUID:
		return nil, nil
	case f.highest == 0:
		return nil, &RefusedError{name.String(), key.Name, "a column of type " + key.Type + " cannot hold the ids", "make it BIGINT: " + modify(name, key.Name, "BIGINT")}
	}
	return f, nil
}

// describe says what plans need of a table, nil where a rule that may mean
// many tables does not mean this one.
func (c *Connector) describe(rule Rule, name catalog.Name, seen *seenTable) (*insert.Table, error) {
	f, err := c.cfg.fit(rule, name, seen.Table)
	if f == nil || err != nil {
		return nil, err
	}
	key := f.key
	if err := c.checkAutoIncrement(name, key); err != nil {
		return nil, err
	}
	t := &table{fit: f, c: c, name: name, rule: rule, checking: semaphore.NewWeighted(1)}
	kind, tag := Segment, ""
	switch {
	case rule.Generator != nil:
		t.gen, kind = rule.Generator, fmt.Sprintf("%T", rule.Generator)
	case rule.Kind == Snowflake:
		t.gen, kind = c.snowflakes, Snowflake
	case rule.Kind == UUID7:
		kind = UUID7
	default:
		kind, tag = cmp.Or(rule.Kind, Segment), rule.tag(name.Table)
		t.counter = c.store.Counter(ids.Tag{Name: tag, Sequence: kind == Sequence})
		t.counter.Fit(f.highest)
		t.gen = t.counter.Generator
		server := server(c.cfg.MySQL)
		t.counter.Feeds(server, name.DB)
		for _, r := range c.rules { // that may mean tables of the tag elsewhere
			if !r.Exclude && r.tag(tag) == tag {
				t.counter.Feeds(server, cmp.Or(r.Database, c.defaultDB))
			}
		}
	}
	t.counts = c.counts.of(name.String())
	t.counts.change(func(s *TableStats) { s.Generator, s.Tag = kind, tag })
	t.skips, _ = t.gen.(skipper)
	desc := &insert.Table{
		DB: name.DB, Name: name.Table, Key: key.Name,
		IntegerKey:   f.integer,
		UUID:         f.uuids,
		Unsigned:     key.Unsigned(),
		KeepZero:     c.cfg.KeepZero,
		Floors:       t.skips != nil && !c.cfg.KeepExplicit,
		Marker:       !c.cfg.ResultOnly && f.uuids == insert.NoUUID,
		UpsertMarker: !c.cfg.ResultOnly && f.uuids == insert.NoUUID && key.Updatable,
		OtherUnique:  !key.AutoIncrement && seen.OtherUnique(key.Name),
		Ref:          t,
	}
	if strings.Contains(rule.Table, "*") && !key.AutoIncrement {
		desc.Zero = sync.OnceFunc(t.warnZero)
	}
	for _, col := range seen.Columns {
		if !col.Invisible {
			desc.Columns = append(desc.Columns, col.Name)
		}
		desc.ReadsID = desc.ReadsID || col.ID
	}
	for _, tr := range seen.Triggers {
		if tr.Before && c.program(name.DB, tr.Text, tr.SQLMode).SetsKey(key.Name) {
			desc.SetsKey, desc.UpdatesSetKey = desc.SetsKey || tr.Event == "INSERT", desc.UpdatesSetKey || tr.Event == "UPDATE"
		}
	}
	for event, e := range seen.triggers {
		desc.ReadsID = desc.ReadsID || e.ReadsID
		desc.UpdatesReadID = desc.UpdatesReadID || event == "UPDATE" && e.ReadsID
		desc.Triggers.Add(e)
	}
	desc.Marker = desc.Marker && !desc.SetsKey
	return desc, nil
}

// uuidForm is how a key column holds UUIDs.
func (cfg *Config) uuidForm(name catalog.Name, key catalog.Column) (insert.UUIDForm, error) {
	switch typ, length, _ := key.Sized(); {
	case typ == "uuid", (typ == "char" || typ == "varchar") && length >= 36:
		return insert.UUIDText, nil
	case (typ == "binary" || typ == "varbinary") && length == 16:
		return insert.UUIDBytes, nil
	case (typ == "binary" || typ == "varbinary") && length >= 36 && cfg.UUID == "text":
		return insert.UUIDText, nil
	case typ == "varbinary" && length > 16 && cfg.UUID == "binary":
		return insert.UUIDBytes, nil
	case (typ == "binary" || typ == "varbinary") && length > 16:
		return insert.NoUUID, &RefusedError{name.String(), key.Name, "its type " + key.Type + " does not tell how it holds UUIDs", "make it BINARY(16) or CHAR(36), or say leafUUID=text or leafUUID=binary"}
	}
	return insert.NoUUID, &RefusedError{name.String(), key.Name, "a column of type " + key.Type + " cannot hold UUIDs", "make it BINARY(16), CHAR(36) or, on MariaDB, UUID"}
}

// keyColumn finds the column that a rule means.
func keyColumn(rule Rule, name catalog.Name, columns []catalog.Column) (catalog.Column, error) {
	var keys []catalog.Column
	counted := "COLUMN"
	for _, col := range columns {
		if rule.Column != "" && strings.EqualFold(col.Name, rule.Column) {
			return col, nil
		}
		if col.Primary {
			keys = append(keys, col)
		}
		if col.AutoIncrement {
			counted = col.Name
		}
	}
	switch {
	case rule.Column != "":
		return catalog.Column{}, &RefusedError{name.String(), rule.Column, "the table has no such column, or this user may not see it", "correct the rule in leafTables, or GRANT INSERT on the column"}
	case len(keys) == 0:
		return catalog.Column{}, &RefusedError{name.String(), "", "it has no primary key, or this user may not see its column", "name the column to fill, leafTables=" + name.String() + ":COLUMN, GRANT INSERT on it, or leave the table out of leafTables"}
	case len(keys) > 1:
		return catalog.Column{}, &RefusedError{name.String(), "", fmt.Sprintf("its primary key has %d columns", len(keys)), "name the one to fill: leafTables=" + name.String() + ":" + counted}
	}
	return keys[0], nil
}

func modify(name catalog.Name, column, typ string) string {
	return "ALTER TABLE " + name.Quoted() + " MODIFY " + quote.Name(column) + " " + typ + " NOT NULL"
}

// checkAutoIncrement warns of a column that two sides give numbers to: writers
// that are not wrapped take the next number after our highest id, and collide
// with us later.
func (c *Connector) checkAutoIncrement(name catalog.Name, key catalog.Column) error {
	const reason = "the column still has AUTO_INCREMENT, so a writer without leafsql takes numbers that leafsql will give out"
	drop := modify(name, key.Name, key.Type)
	switch {
	case !key.AutoIncrement:
		return nil
	case c.cfg.KeepZero:
		return &RefusedError{name.String(), key.Name, "leafZero=keep stores 0 as a key, and its AUTO_INCREMENT would replace it", "take AUTO_INCREMENT off it: " + drop}
	case c.cfg.RefuseAutoIncrement:
		return &RefusedError{name.String(), key.Name, reason, "take AUTO_INCREMENT off it: " + drop + "; or set leafAutoIncrement=allow"}
	}
	c.once("auto_increment "+name.String()).Warn("leafsql: "+reason, "table", name.String(), "column", key.Name, "take it off with", drop)
	return nil
}

// warnZero says, once a table, that a 0 was replaced in a table that no rule names: 0 may
// be a key like others there.
func (t *table) warnZero() {
	t.c.once("zero "+t.name.String()).Warn("leafsql: a written 0 asks for a key, as in an AUTO_INCREMENT column, in a table that leafTables names only by a pattern", "table", t.name.String(), "column", t.key.Name,
		"way out", "where 0 is a key of its own: !"+t.name.String()+" in leafTables leaves the table out, leafZero=keep stores 0 in all; else name the table in leafTables")
}

// draw takes the ids of a block. They fit into the key column: outside strict mode a
// server would store a larger one clipped, and report the one that was sent.
func (t *table) draw(ctx context.Context, conn innerConn, b *insert.Block) (err error) {
	if t.keyless {
		return &RefusedError{t.name.String(), t.key.Name, "it was made LIKE a table that has its keys from leafsql, so its key has neither AUTO_INCREMENT nor a default, and the server would store 0",
			"give it one: " + modify(t.name, t.key.Name, t.key.Type) + " AUTO_INCREMENT"}
	}
	if t.gen == nil {
		var keys uuid7.Block
		if keys, err = uuid7.New(b.N); err == nil {
			b.UUID = keys.At(0)
		}
	} else {
		if !t.isChecked() {
			if err := t.check(ctx, conn); err != nil {
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
		if errors.Is(err, ErrRefused) {
			return err
		}
		return &FillError{Table: t.name.String(), Rows: b.N, Err: err}
	}
	if last := max(b.First, b.First+int64(b.N)-1); t.gen != nil && last > t.highest { // the sum may be above all numbers
		return &RefusedError{t.name.String(), t.key.Name,
			"id " + strconv.FormatInt(last, 10) + " is above the highest that the column holds, " + strconv.FormatInt(t.highest, 10),
			"make it BIGINT: " + modify(t.name, t.key.Name, "BIGINT")}
	}
	t.counts.statements.Add(1)
	t.counts.ids.Add(int64(b.N))
	return nil
}

// skip moves the counter above an explicit key, as AUTO_INCREMENT moves. The
// column's highest value is not followed, here and where the highest key is
// looked for: no id is above it.
func (t *table) skip(ctx context.Context, conn innerConn, k int64) error {
	if t.skips == nil || k <= 0 || k >= t.highest || t.c.cfg.KeepExplicit || t.rowMissingUntil.Load() > time.Now().UnixMilli() {
		return nil
	}
	err := error(nil)
	if !t.isChecked() {
		err = t.check(ctx, conn)
	}
	if err == nil {
		err = t.skips.Skip(ctx, k)
	}
	_, rowless := errors.AsType[*segment.UnknownTagError](err)
	_, told := errors.AsType[*FillError](err)
	switch {
	case errors.Is(err, idgen.ErrExhausted):
		return nil // no id is left above it that could be issued
	case rowless && !t.c.cfg.Create:
		t.rowMissingUntil.Store(time.Now().Add(rowMissingRetry).UnixMilli()) // nothing to move
		return nil
	case err == nil || told || errors.Is(err, ErrRefused):
		return err
	}
	return &FillError{Table: t.name.String(), Key: k, Err: err}
}

// afterDuplicate moves the counter above all keys where an id of ours was in use: keys
// came to the table that nobody told leafsql of.
func (t *table) afterDuplicate(ctx context.Context, b insert.Block) {
	if t.skips == nil || !t.integer {
		return
	}
	if used, known, err := t.highestBelow(ctx, nil, t.name, t.indexed, b.First+int64(b.N)); err != nil || !known || used < b.First {
		return
	}
	highest, _, err := t.highestBelow(ctx, nil, t.name, t.indexed, t.highest)
	if err == nil && t.skips.Skip(ctx, highest) == nil {
		t.c.cfg.logger().Warn("leafsql: a generated id was in use already; the next ids are above the highest key", "table", t.name.String(), "first id", b.First, "highest key", highest)
	}
}
