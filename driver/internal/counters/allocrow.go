package counters

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

const createdStep = 1000 // step of the leaf_alloc rows that leafCreate adds

// compareWithKeys makes sure that the next id in the counter's row is above the keys in the table. It is
// executed once, and again if rows may have been lost (a new epoch of the store). After a migration, the row's
// next id is often too low. The highest key is read before the row. Keys that leafsql inserts in between are
// below the next id when the row is read: they come from fetched ranges, or are explicit keys that have
// raised the next id.
func (t *Table) compareWithKeys(ctx context.Context, s insert.Querier) error {
	if err := t.checking.Acquire(ctx, 1); err != nil {
		return &FillError{Table: t.Name.String(), Rows: 1, Err: err}
	}
	defer t.checking.Release(1)
	epoch := t.shared.Store.Epoch.Load()
	if t.checked.Load() == epoch {
		return nil
	}
	if t.counter == nil || t.counter.Rows == nil { // a store that replaces leaf_alloc has no rows
		t.checked.Store(epoch)
		return nil
	}
	stored, given, known, err := t.highestKey(ctx, s, t.Name, t.Indexed, t.Key.AutoIncrement)
	if err != nil {
		return err
	}
	var row control.Row
	if t.shared.Config.Create {
		row, given, err = t.readOrCreateRow(ctx, s, max(stored, given), known)
	} else {
		row, err = t.counter.Row(ctx)
	}
	if err != nil && ctx.Err() == nil && !errors.Is(err, insert.ErrRefused) && !errors.Is(err, idgen.ErrClosed) {
		t.counter.CountFailure()
	}
	switch {
	case errors.Is(err, insert.ErrRefused):
		return err
	case servererr.Is(err, servererr.NoSuchTable) && !t.shared.Config.Create:
		return &ConfigError{"leafAllocTable", fmt.Sprintf("the table %s, which has the counter for %s, does not exist (%s)", t.counter.Table(), t.Name, servererr.Message(err)),
			"add leafCreate=true to create it, or set leafAllocTable to its name or leafStore to its database"}
	case servererr.Is(err, servererr.NoDatabase):
		return rules.Refuse(t.Name, "", "the DSN has no database for "+t.counter.Table()+"",
			"add the database to the DSN, set leafAllocTable=DATABASE.leaf_alloc or leafStore, or remove the table from leafTables")
	case err != nil:
		return &FillError{Table: t.Name.String(), Rows: 1, Err: err}
	}
	next := max(row.MaxID, 1) // 0 is never issued
	if next <= stored {
		if err := t.raiseRow(ctx, row, stored); err != nil {
			return err
		}
	} else if row.MaxID > t.Highest {
		return rules.Refuse(t.Name, t.Key.Name,
			fmt.Sprintf("its highest value is %d, but the next id of row %q of %s is %d", t.Highest, t.counter.Name, t.counter.Table(), row.MaxID),
			"make it BIGINT: "+rules.ModifyText(t.Name, t.Key.Name, "BIGINT"))
	}
	if next <= given { // not a refusal, because AUTO_INCREMENT leaves gaps
		if err := t.moveAbove(ctx, row, given); err != nil {
			return err
		}
	}
	// Ids in memory may already be keys of this table: another table may have been renamed to this name, and
	// other pools of this process may have fetched ids earlier.
	if known {
		below := func(limit int64) (int64, error) {
			stored, _, _, err := t.highestBelow(ctx, s, t.Name, true, false, limit)
			return stored, err
		}
		if err := t.counter.DropInUse(stored, below); err != nil {
			return &catalog.Failure{What: "the keys of table " + t.Name.String(), Err: err}
		}
	}
	t.checked.Store(epoch)
	return nil
}

// readOrCreateRow returns the counter's row under leafCreate, and adds the row if it is missing. Only one connection of
// the process at a time runs it. highest is the table's highest key. If a row was added, after is the highest key of
// all tables of the tag. Otherwise after is highest.
func (t *Table) readOrCreateRow(ctx context.Context, s insert.Querier, highest int64, known bool) (row control.Row, after int64, err error) {
	if err := t.counter.RowLock.Acquire(ctx, 1); err != nil {
		return row, 0, err
	}
	defer t.counter.RowLock.Release(1)
	row, err = t.readRowOrCreateTable(ctx)
	if _, missing := errors.AsType[*segment.UnknownTagError](err); missing {
		if highest, err = t.createRow(ctx, s, highest, known); err == nil {
			row, err = t.counter.Row(ctx)
		}
	}
	return row, highest, err
}

// readRowOrCreateTable returns the counter's row, after creating the counter's table if it is missing. Many tags may be
// used for the first time at once: one of them creates the table, and the others wait for it.
func (t *Table) readRowOrCreateTable(ctx context.Context) (row control.Row, err error) {
	if row, err = t.counter.Row(ctx); !servererr.Is(err, servererr.NoSuchTable) {
		return row, err
	}
	if err := t.counter.TableLock.Acquire(ctx, 1); err != nil {
		return row, err
	}
	defer t.counter.TableLock.Release(1)
	if row, err = t.counter.Row(ctx); !servererr.Is(err, servererr.NoSuchTable) {
		return row, err
	}
	if err := t.counter.Rows.Create(ctx); err != nil {
		return row, t.shared.AllocError(t.counter.Table(), "creating it", err)
	}
	return t.counter.Row(ctx)
}

// highestKey returns the highest keys of a table below t.Near, like highestBelow. If they cannot be read with an
// index, known is false, and this is logged once.
func (t *Table) highestKey(ctx context.Context, s insert.Querier, name catalog.Name, indexed, counted bool) (stored, given int64, known bool, err error) {
	why := "the key is not of an integer type"
	if t.Integer {
		stored, given, known, err = t.highestBelow(ctx, s, name, indexed, counted, t.Near)
		switch {
		case servererr.Is(err, servererr.TableDenied, servererr.ColumnDenied, servererr.NoSuchTable, servererr.UnknownColumn):
			why, known, err = servererr.Message(err), false, nil
		case err != nil:
			return 0, 0, false, &catalog.Failure{What: "the highest key of table " + name.String(), Err: err}
		case !known:
			why = "no index begins with the column"
		}
	}
	if !known {
		t.shared.loggerOnce("highest "+name.String()).Warn("leafsql: cannot check that new ids are above the keys in use", "table", name.String(), "column", t.Key.Name, "reason", why)
	}
	return stored, given, known, nil
}

// highestBelow returns the highest keys below a limit, like Catalog.HighestKey. known is false if no index begins with the
// key. s is the application's session, which is queried if it has locked the table. s may be nil.
func (t *Table) highestBelow(ctx context.Context, s insert.Querier, name catalog.Name, indexed, counted bool, limit int64) (stored, given int64, known bool, err error) {
	if !indexed {
		return 0, 0, false, nil
	}
	query := catalog.HighestKeyQuery(name, t.Key.Name, limit)
	stored, given, err = t.shared.Catalog.HighestKey(ctx, name, query, limit, counted)
	if s != nil && servererr.Is(err, servererr.LockWait) {
		var value string
		if value, err = s.QueryValue(ctx, "("+query+")"); err == nil {
			stored, given, err = t.shared.Catalog.HighestKey(ctx, name, "SELECT "+cmp.Or(value, "NULL"), limit, counted)
		}
	}
	return stored, given, err == nil, err
}

// createRow adds the row of a tag. Its next id is above the keys of all tables
// of the rule in this database, and above all ids that this process has fetched
// from a lost row. createRow then reads the highest key again and returns it, since
// keys that were written before the row existed have not raised its next id.
func (t *Table) createRow(ctx context.Context, s insert.Querier, highest int64, known bool) (int64, error) {
	tables := []catalog.Name{t.Name}
	if rules.IsPattern(t.rule) && t.rule.Table != "*" {
		names, err := t.shared.Catalog.TableNames(ctx, t.Name.DB)
		if err != nil {
			return 0, &catalog.Failure{What: "the tables of " + t.Name.DB, Err: err}
		}
		for _, name := range names {
			if name != t.Name.Table && rules.Match(t.rule.Table, name) {
				tables = append(tables, catalog.Name{DB: t.Name.DB, Table: name})
			}
		}
	}
	others, err := t.shared.Catalog.Tables(ctx, tables[1:])
	if err != nil {
		return 0, &catalog.Failure{What: "the columns of tables", Err: err}
	}
	highestOf := func(tables []catalog.Name) (highest int64, err error) {
		for _, name := range tables {
			indexed := name == t.Name && t.Indexed || others[name] != nil && others[name].HasIndexOn(t.Key.Name)
			stored, given, _, err := t.highestKey(ctx, s, name, indexed, name != t.Name || t.Key.AutoIncrement)
			if err != nil {
				return 0, err
			}
			highest = max(highest, stored, given)
		}
		return highest, nil
	}
	before, err := highestOf(tables[1:])
	if err != nil {
		return 0, err
	}
	highest = max(highest, before)
	for _, name := range tables {
		if err := t.checkMayCreateRow(ctx, name, highest, known || name != t.Name); err != nil {
			return 0, err
		}
	}
	above, err := t.counter.FirstUnfetched(ctx)
	if err != nil {
		return 0, err
	}
	room := t.Highest
	for _, other := range others {
		for _, column := range other.Columns {
			if most, integer := column.Highest(); integer && strings.EqualFold(column.Name, t.Key.Name) {
				room = min(room, most)
			}
		}
	}
	if err := t.counter.Rows.EnsureWithin(ctx, t.counter.Name, max(highest+1, above), createdStep, room); err != nil {
		return 0, err
	}
	return highestOf(tables)
}

// checkMayCreateRow returns a refusal if the counter's row is missing and the highest key is not certain:
// other shards may have higher keys or may have had them, or no index leads to the highest key.
func (t *Table) checkMayCreateRow(ctx context.Context, name catalog.Name, highest int64, known bool) error {
	if known && !t.shared.Config.Foreign {
		return nil
	}
	empty, err := t.shared.Catalog.IsEmpty(ctx, name, t.Key.Name)
	switch {
	case servererr.Is(err, servererr.TableDenied, servererr.ColumnDenied):
		return rules.Refuse(t.Name, t.Key.Name, "this user has no right to read its keys ("+servererr.Message(err)+"), so no row of "+t.counter.Table()+" can be created for it",
			"GRANT SELECT on it, or add the row: "+t.insertRowText())
	case err != nil:
		return &catalog.Failure{What: "whether table " + name.String() + " is empty", Err: err}
	case empty && (highest == 0 || !t.shared.Config.Foreign):
		return nil
	case t.shared.Config.Foreign:
		return rules.Refuse(t.Name, t.Key.Name, "it has or had rows, and the same table on other shards, which leafCreate cannot read, may have rows as well",
			"run leafsql init with all shards, or add the row above the highest key of all shards: "+t.insertRowText())
	}
	return rules.Refuse(t.Name, t.Key.Name, "it has rows, and no index has its highest key",
		"add the row of "+t.counter.Table()+" by hand: "+t.insertRowText())
}

// insertRowText returns the statement that adds the counter's row, for messages.
func (t *Table) insertRowText() string {
	tag := quote.String(t.counter.Name)
	if t.counter.Sequence {
		return fmt.Sprintf("INSERT INTO %s (name, current_value, increment) VALUES (%s, <highest key>, %d)", t.counter.Table(), tag, createdStep)
	}
	return fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step) VALUES (%s, <highest key + 1>, %d)", t.counter.Table(), tag, createdStep)
}

// safeFloor returns the number above which to raise the row's next id if it is too low. If no ids were fetched from the
// row, this is the highest key. Otherwise the row must have been lowered, and processes may hold ranges above the highest
// key, so the result is higher by a margin.
func (t *Table) safeFloor(row control.Row, highest int64) int64 {
	if row.MaxID > 1 {
		highest += control.Margin(t.Highest - highest)
	}
	return highest
}

// moveAbove raises the row's next id above highest, which is the highest key or the highest value that AUTO_INCREMENT has
// generated.
func (t *Table) moveAbove(ctx context.Context, row control.Row, highest int64) error {
	floor := t.safeFloor(row, highest)
	if err := t.counter.Skip(ctx, floor); err != nil {
		return &FillError{Table: t.Name.String(), Key: floor, Err: err}
	}
	if row.MaxID > 1 {
		t.shared.Log().Warn("leafsql: the counter was not above the keys in use, and was moved above them", "table", t.Name.String(), "tag", row.Tag, "max_id", row.MaxID, "highest_key", highest, "floor", floor)
	}
	return nil
}

// raiseRow raises the row's next id above the stored keys under leafCreate. Without leafCreate it returns a refusal that
// contains the UPDATE to raise it.
func (t *Table) raiseRow(ctx context.Context, row control.Row, highest int64) error {
	if t.shared.Config.Create {
		return t.moveAbove(ctx, row, highest)
	}
	floor := t.safeFloor(row, highest)
	update := fmt.Sprintf("UPDATE %s SET max_id = %d WHERE biz_tag = %s", t.counter.Table(), floor+1, quote.String(row.Tag))
	if t.counter.Sequence {
		update = fmt.Sprintf("UPDATE %s SET current_value = %d WHERE name = %s", t.counter.Table(), floor, quote.String(row.Tag))
	}
	return rules.Refuse(t.Name, t.Key.Name,
		fmt.Sprintf("the highest key is %d, but the next id of row %q of %s is %d, which is not above it", highest, row.Tag, t.counter.Table(), max(row.MaxID, 1)),
		"raise the row above the keys of all shards, and by a margin if processes are running: "+update)
}
