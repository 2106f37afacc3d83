package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/uuid7"
)

const (
	createdStep = 1000 // of the leaf_alloc rows that leafCreate adds

	// raiseMargin is how far a row that is too low is raised above the highest
	// key: other processes may hold ranges below it.
	raiseMargin = 1_000_000

	// rowlessWait is how long explicit keys are not followed for a tag without
	// a row, before it is looked for again.
	rowlessWait = time.Minute
)

// A table is a configured table that was found fit to be filled.
type table struct {
	c       *Connector
	name    catalog.Name
	column  string // the key
	highest int64  // the highest id the key column holds
	integer bool
	alone   bool // the key is the whole primary key
	rule    Rule
	gen     idgen.Generator // nil: UUIDs
	counts  *tableCounts

	checked  atomic.Bool   // the leaf_alloc row was held against the keys
	checking chan struct{} // holds a token while that is done
	rowless  atomic.Int64  // until when the tag is taken to have no row, in Unix ms
}

// skipper is a generator whose counter explicit keys move: afterwards it
// issues nothing up to k, and no other generator of the tag starts there.
type skipper interface {
	Skip(ctx context.Context, k int64) error
}

// A fit is how a rule fits a table.
type fit struct {
	key     catalog.Column
	highest int64 // the highest id the key column holds
	integer bool
	alone   bool // the key is the whole primary key
	uuids   insert.UUIDForm
}

// fit holds a table's columns against a rule. It is nil where a rule that may
// mean many tables does not mean this one.
func (cfg *Config) fit(rule Rule, name catalog.Name, columns []catalog.Column) (*fit, error) {
	lenient := cfg.Auto || strings.Contains(rule.Table, "*")
	key, err := keyColumn(rule, name, columns)
	if err != nil {
		if lenient && rule.Column == "" {
			return nil, nil
		}
		return nil, err
	}
	f := &fit{key: key, alone: key.Primary && !slices.ContainsFunc(columns, func(o catalog.Column) bool { return o.Primary && o.Name != key.Name })}
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
		return nil, &TableError{name.String(), key.Name, "a column of type " + key.Type + " cannot hold the ids", "make it BIGINT: " + modify(name, key.Name, "BIGINT")}
	}
	return f, nil
}

// describe says what plans need of a table, nil where a rule that may mean
// many tables does not mean this one.
func (c *Connector) describe(rule Rule, name catalog.Name, columns []catalog.Column, temporary bool) (*insert.Table, error) {
	f, err := c.cfg.fit(rule, name, columns)
	if f == nil || err != nil {
		return nil, err
	}
	key := f.key
	if err := c.checkAutoIncrement(name, key); err != nil {
		return nil, err
	}
	t := &table{
		c: c, name: name, column: key.Name, highest: f.highest, integer: f.integer, alone: f.alone, rule: rule,
		checking: make(chan struct{}, 1),
	}
	kind, tag := Segment, ""
	switch {
	case rule.Generator != nil:
		t.gen, kind = rule.Generator, fmt.Sprintf("%T", rule.Generator)
	case rule.Kind == Snowflake:
		t.gen, kind = c.ids.snowflakes, Snowflake
	case rule.Kind == UUID7:
		kind = UUID7
	default:
		tag = rule.tag(name.Table)
		t.gen = c.ids.segments.generator(tag)
	}
	t.counts = c.counts.of(name, kind, tag)
	// A store of the caller's has no row to look at, and the keys of a
	// temporary table are its own.
	t.checked.Store(kind != Segment || c.ids.alloc() == nil || temporary)
	_, skips := t.gen.(skipper)
	desc := &insert.Table{
		DB: name.DB, Name: name.Table, Key: key.Name,
		IntegerKey:   f.integer,
		UUID:         f.uuids,
		Unsigned:     key.Unsigned(),
		KeepZero:     c.cfg.KeepZero,
		Floors:       skips && !c.cfg.KeepExplicit,
		Marker:       !c.cfg.ResultOnly && f.uuids == insert.NoUUID,
		UpsertMarker: !c.cfg.ResultOnly && f.uuids == insert.NoUUID && key.Updatable,
		Ref:          t,
	}
	for _, col := range columns {
		if !col.Invisible {
			desc.Columns = append(desc.Columns, col.Name)
		}
		if col.Now {
			desc.NowColumns = append(desc.NowColumns, col.Name)
		}
	}
	return desc, nil
}

// uuidForm is how a key column holds UUIDs.
func (cfg *Config) uuidForm(name catalog.Name, key catalog.Column) (insert.UUIDForm, error) {
	switch typ, length := key.Sized(); {
	case typ == "uuid", (typ == "char" || typ == "varchar") && length >= 36:
		return insert.UUIDText, nil
	case (typ == "binary" || typ == "varbinary") && length == 16:
		return insert.UUIDBytes, nil
	case (typ == "binary" || typ == "varbinary") && length >= 36 && cfg.UUID == "text":
		return insert.UUIDText, nil
	case typ == "varbinary" && length > 16 && cfg.UUID == "binary":
		return insert.UUIDBytes, nil
	case (typ == "binary" || typ == "varbinary") && length > 16:
		return insert.NoUUID, &TableError{name.String(), key.Name, "its type " + key.Type + " does not tell how it holds UUIDs", "make it BINARY(16) or CHAR(36), or say leafUUID=text or leafUUID=binary"}
	}
	return insert.NoUUID, &TableError{name.String(), key.Name, "a column of type " + key.Type + " cannot hold UUIDs", "make it BINARY(16), CHAR(36) or, on MariaDB, UUID"}
}

// keyColumn finds the column that a rule means.
func keyColumn(rule Rule, name catalog.Name, columns []catalog.Column) (catalog.Column, error) {
	var keys []catalog.Column
	counted := ""
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
		return catalog.Column{}, &TableError{name.String(), rule.Column, "the table has no such column, or this user may not see it", "correct the rule in leafTables, or GRANT INSERT on the column"}
	case len(keys) == 0:
		return catalog.Column{}, &TableError{name.String(), "", "it has no primary key, or this user may not see its column", "name the column to fill: leafTables=" + name.String() + ":COLUMN, or GRANT INSERT on it"}
	case len(keys) > 1 && counted != "":
		return catalog.Column{}, &TableError{name.String(), "", fmt.Sprintf("its primary key has %d columns", len(keys)), "name the one to fill: leafTables=" + name.String() + ":" + counted}
	case len(keys) > 1:
		return catalog.Column{}, &TableError{name.String(), "", fmt.Sprintf("its primary key has %d columns", len(keys)), "name the one to fill: leafTables=" + name.String() + ":COLUMN"}
	}
	return keys[0], nil
}

func modify(name catalog.Name, column, typ string) string {
	return "ALTER TABLE " + name.Quoted() + " MODIFY " + catalog.Quote(column) + " " + typ + " NOT NULL"
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
		return &TableError{name.String(), key.Name, "leafZero=keep stores 0 as a key, and its AUTO_INCREMENT would replace it", "drop it: " + drop}
	case c.cfg.RefuseAutoIncrement:
		return &TableError{name.String(), key.Name, reason, "drop it: " + drop + "; or set leafAutoIncrement=allow"}
	case c.first("auto_increment " + name.String()):
		c.cfg.logger().Warn("leafsql: "+reason, "table", name.String(), "column", key.Name, "drop it with", drop)
	}
	return nil
}

// draw takes the ids of a block.
func (t *table) draw(ctx context.Context, conn innerConn, b *insert.Block) (err error) {
	if t.gen != nil {
		b.First, err = t.next(ctx, conn, b.N)
		return err
	}
	ids, err := uuid7.New(b.N)
	if err != nil {
		return &FillError{Table: t.name.String(), Rows: b.N, Err: err}
	}
	b.UUID = ids.At(0)
	t.counts.filled(b.N)
	return nil
}

// next draws n ids that fit into the key column. Outside strict mode a server
// would store a larger one clipped, and report the one that was sent.
func (t *table) next(ctx context.Context, conn innerConn, n int) (int64, error) {
	if !t.checked.Load() {
		if err := t.check(ctx, conn); err != nil {
			return 0, err
		}
	}
	first, err := t.gen.Next(ctx, n)
	if err != nil {
		return 0, &FillError{Table: t.name.String(), Rows: n, Err: err}
	}
	if last := first + int64(n) - 1; last > t.highest {
		return 0, &TableError{t.name.String(), t.column,
			"id " + strconv.FormatInt(last, 10) + " is above the highest that the column holds, " + strconv.FormatInt(t.highest, 10),
			"make it BIGINT: " + modify(t.name, t.column, "BIGINT")}
	}
	t.counts.filled(n)
	return first, nil
}

// skip moves the counter above an explicit key, as AUTO_INCREMENT moves. The
// column's highest value is not followed, here and where the highest key is
// looked for: no id is above it.
func (t *table) skip(ctx context.Context, conn innerConn, k int64) error {
	gen, ok := t.gen.(skipper)
	if k <= 0 || k >= t.highest || !ok || t.c.cfg.KeepExplicit || t.rowless.Load() > time.Now().UnixMilli() {
		return nil
	}
	err := error(nil)
	if !t.checked.Load() {
		err = t.check(ctx, conn)
	}
	if err == nil {
		err = gen.Skip(ctx, k)
	}
	if errors.Is(err, idgen.ErrExhausted) {
		return nil // no id is left above it that could be issued
	}
	var unknown *segment.UnknownTagError
	if errors.As(err, &unknown) && !t.c.cfg.Create {
		t.rowless.Store(time.Now().Add(rowlessWait).UnixMilli()) // nothing to move
		return nil
	}
	var fill *FillError
	if err != nil && !errors.As(err, &fill) && !errors.Is(err, ErrRefused) {
		err = &FillError{Table: t.name.String(), Key: k, Err: err}
	}
	return err
}

// check holds the leaf_alloc row against the table, once: a row that starts at
// or below keys in use is the classic accident of a migration. MAX is read
// before the row: keys inserted in between come from ranges that the row has
// left behind, or were followed.
func (t *table) check(ctx context.Context, conn innerConn) error {
	select {
	case t.checking <- struct{}{}:
		defer func() { <-t.checking }()
	case <-ctx.Done():
		return &FillError{Table: t.name.String(), Rows: 1, Err: ctx.Err()}
	}
	if t.checked.Load() {
		return nil
	}
	highest, known, err := t.highestKey(ctx, conn, t.name)
	if err != nil {
		return err
	}
	tag := t.rule.tag(t.name.Table)
	alloc := t.c.ids.alloc()
	row, err := alloc.Row(ctx, tag)
	if isServerError(err, errNoSuchTable) && t.c.cfg.Create {
		if err := alloc.Create(ctx); err != nil {
			return t.c.allocError("creating it", err)
		}
		row, err = alloc.Row(ctx, tag)
	}
	var unknown *segment.UnknownTagError
	created := errors.As(err, &unknown) && t.c.cfg.Create
	if created {
		if highest, err = t.createRow(ctx, conn, tag, highest, known); err == nil {
			row, err = alloc.Row(ctx, tag)
		}
	}
	switch {
	case errors.Is(err, ErrRefused):
		return err
	case isServerError(err, errNoSuchTable):
		return &ConfigError{"leafAllocTable", fmt.Sprintf("there is no table %s to take ids for %s from (%s)", t.c.cfg.AllocTable, t.name, serverMessage(err)),
			"add leafCreate=true to have it created, or name it, or the database that holds it, with leafAllocTable or leafStore"}
	case err != nil:
		return &FillError{Table: t.name.String(), Rows: 1, Err: err}
	}
	if max(row.MaxID, 1) <= highest { // 0 is never issued
		if err := t.raiseRow(ctx, row, highest, created); err != nil {
			return err
		}
	} else if row.MaxID > t.highest {
		return &TableError{t.name.String(), t.column,
			fmt.Sprintf("it ends at %d, and tag %q stands at %d", t.highest, tag, row.MaxID),
			"make it BIGINT: " + modify(t.name, t.column, "BIGINT")}
	}
	t.checked.Store(true)
	return nil
}

// highestKey is the highest key of a table as far as an index tells it. known
// is false where none does: that is said once, in the log.
func (t *table) highestKey(ctx context.Context, conn innerConn, name catalog.Name) (highest int64, known bool, err error) {
	why := "the key is not of an integer type"
	if t.integer {
		highest, known, err = t.readHighest(ctx, name)
		if isServerError(err, errLockWait) { // the application's own connection has locked the table
			var s string
			s, err = scalar(ctx, conn, catalog.MaxQuery(name, t.column, t.highest))
			highest, _ = strconv.ParseInt(s, 10, 64) // NULL, for an empty table, is 0
			known = err == nil
		}
		switch {
		case isServerError(err, errTableDenied, errColumnDenied, errNoSuchTable, errUnknownColumn):
			why, known, err = serverMessage(err), false, nil
		case err != nil:
			return 0, false, catalogError("the highest key of table "+name.String(), err)
		case !known:
			why = "no index begins with the column"
		}
	}
	if !known && t.c.first("highest "+name.String()) {
		t.c.cfg.logger().Warn("leafsql: whether ids are above the keys in use cannot be checked", "table", name.String(), "column", t.column, "why", why)
	}
	return max(highest, 0), known, nil
}

// readHighest is the highest key of a table where an index tells it.
func (t *table) readHighest(ctx context.Context, name catalog.Name) (highest int64, known bool, err error) {
	if known = t.alone && name == t.name; !known {
		if known, err = t.c.catalog.Indexed(ctx, name, t.column); err != nil || !known {
			return 0, false, err
		}
	}
	highest, err = t.c.catalog.Highest(ctx, name, t.column, t.highest)
	return highest, err == nil, err
}

// createRow adds the row of a tag, starting above the keys of every table
// that the rule feeds in this database, and returns the highest of them as it
// is afterwards: keys written meanwhile found no row to raise.
func (t *table) createRow(ctx context.Context, conn innerConn, tag string, highest int64, known bool) (int64, error) {
	tables := []catalog.Name{t.name}
	if strings.Contains(t.rule.Table, "*") && t.rule.Table != "*" {
		names, err := t.c.catalog.Tables(ctx, t.name.DB)
		if err != nil {
			return 0, catalogError("the tables of "+t.name.DB, err)
		}
		for _, other := range names {
			if wildcard(t.rule.Table, other) && other != t.name.Table {
				tables = append(tables, catalog.Name{DB: t.name.DB, Table: other})
			}
		}
	}
	for _, name := range tables {
		if err := t.mayStart(ctx, name, known || name != t.name); err != nil {
			return 0, err
		}
	}
	before := highest
	for _, name := range tables[1:] {
		other, _, err := t.highestKey(ctx, conn, name)
		if err != nil {
			return 0, err
		}
		before = max(before, other)
	}
	if err := t.c.ids.alloc().Ensure(ctx, tag, before+1, createdStep); err != nil {
		return 0, err
	}
	for _, name := range tables {
		after, _, err := t.highestKey(ctx, conn, name)
		if err != nil {
			return 0, err
		}
		highest = max(highest, after)
	}
	return highest, nil
}

// mayStart refuses to begin a tag for a table whose keys are not all known:
// other shards may have higher ones, or no index tells the highest.
func (t *table) mayStart(ctx context.Context, name catalog.Name, known bool) error {
	if known && !t.c.otherStore() {
		return nil
	}
	empty, err := t.c.catalog.Empty(ctx, name)
	switch {
	case isServerError(err, errTableDenied, errColumnDenied):
		return &TableError{t.name.String(), t.column, "its keys may not be read (" + serverMessage(err) + "), so no row of leaf_alloc can be created for it",
			"GRANT SELECT on it, or add the row by hand: " + t.insertRow()}
	case err != nil:
		return catalogError("whether table "+name.String()+" is empty", err)
	case empty:
		return nil
	case t.c.otherStore():
		return &TableError{t.name.String(), t.column, "it has rows, and so may the same table on other shards, which leafCreate cannot see",
			"run leafsql init over all shards, or add the row by hand, above the highest key of all of them: " + t.insertRow()}
	}
	return &TableError{t.name.String(), t.column, "it has rows, and its highest key cannot be found by an index",
		"add the row of leaf_alloc by hand: " + t.insertRow()}
}

func (t *table) insertRow() string {
	return fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step) VALUES (%s, <highest key + 1>, %d)", t.c.cfg.AllocTable, quoteString(t.rule.tag(t.name.Table)), createdStep)
}

// raiseRow puts a row that is too low above the keys in use: with leafCreate by
// itself. A row that nobody fetched from starts right above them; of another,
// processes may hold ranges that begin above its keys.
func (t *table) raiseRow(ctx context.Context, row segment.Row, highest int64, created bool) error {
	floor := highest
	if row.MaxID > 1 && !created {
		floor += min(raiseMargin, math.MaxInt64-1-highest)
	}
	gen, ok := t.gen.(skipper)
	if t.c.cfg.Create && ok && (floor == highest || floor < t.highest/2) {
		if err := gen.Skip(ctx, floor); err != nil {
			return &FillError{Table: t.name.String(), Key: floor, Err: err}
		}
		return nil
	}
	return &TableError{t.name.String(), t.column,
		fmt.Sprintf("the highest key is %d, and tag %q would start at %d, below or at keys in use", highest, row.Tag, max(row.MaxID, 1)),
		fmt.Sprintf("raise it above the keys of all shards, and by a margin if processes run: UPDATE %s SET max_id = %d WHERE biz_tag = %s", t.c.cfg.AllocTable, floor+1, quoteString(row.Tag))}
}

// quoteString quotes for messages a person copies into a client.
func quoteString(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
}

// afterDuplicate moves the counter above all keys where an id of ours was in
// use: keys came to the table that nobody told leafsql of.
func (t *table) afterDuplicate(ctx context.Context, conn innerConn, b insert.Block, message string) {
	gen, ok := t.gen.(skipper)
	m := duplicateEntry.FindStringSubmatch(message)
	if !ok || m == nil || !t.integer {
		return
	}
	if k, err := strconv.ParseInt(m[1], 10, 64); err != nil || k < b.First || k >= b.First+int64(b.N) {
		return
	}
	highest, known, err := t.readHighest(ctx, t.name)
	if err != nil || !known {
		return
	}
	if gen.Skip(ctx, highest) == nil {
		t.c.cfg.logger().Warn("leafsql: a generated id was in use already; the next ids are above the highest key", "table", t.name.String(), "id", m[1], "highest key", highest)
	}
}

// duplicateEntry finds the key in the server's error 1062 for a primary key.
var duplicateEntry = regexp.MustCompile(`Duplicate entry '(\d+)' for key '(?:.*\.)?PRIMARY'`)
