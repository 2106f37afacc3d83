package driver

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
)

// createdStep is the step of the leaf_alloc rows that leafCreate adds.
const createdStep = 1000

// A table is a configured table that was found fit to be filled.
type table struct {
	name    string // db.table, for messages
	column  string
	highest int64 // the highest id the key column holds
	gen     idgen.Generator

	transactional bool // a statement that fails leaves no rows behind
}

// open reads a configured table from the catalog and holds it against its
// rule. Nothing of a failure is kept: once the table or the leaf_alloc row is
// mended, the next statement works.
func (c *Connector) open(ctx context.Context, conn innerConn, rule Rule, name tableName) (*insert.Table, error) {
	cols, err := c.catalog.columns(ctx, name.db, name.name)
	if err != nil {
		return nil, err
	}
	temporary := len(cols) == 0
	if temporary {
		if cols, err = temporaryColumns(ctx, conn, name.db, name.name); err != nil {
			return nil, err
		}
	}
	full := name.db + "." + name.name
	key, err := keyColumn(rule, full, cols)
	if err != nil {
		if c.cfg.Auto { // a tag of that name, but no table that auto means
			return nil, nil
		}
		return nil, err
	}
	highest, integer, fits := limit(key.typ)
	switch {
	case c.cfg.Auto && !integer:
		return nil, nil
	case !fits:
		return nil, &TableError{full, key.name, "a column of type " + key.typ + " cannot hold the ids",
			"make it BIGINT: ALTER TABLE " + quoteFull(name) + " MODIFY " + quoteName(key.name) + " BIGINT NOT NULL"}
	}
	if err := c.checkAutoIncrement(full, name, key); err != nil {
		return nil, err
	}
	gen, err := c.generator(ctx, conn, rule, name, key, temporary)
	if err != nil {
		return nil, err
	}
	engine, err := c.catalog.engine(ctx, name.db, name.name)
	if err != nil {
		return nil, err
	}
	t := &insert.Table{
		DB: name.db, Name: name.name, Key: key.name,
		IntegerKey: integer,
		KeepZero:   c.cfg.KeepZero,
		Mark:       !c.cfg.ResultOnly,
		UpsertMark: !c.cfg.ResultOnly && key.updatable,
		Ref:        &table{name: full, column: key.name, highest: highest, gen: gen, transactional: engine == "InnoDB"},
	}
	for _, col := range cols {
		if !col.invisible {
			t.Columns = append(t.Columns, col.name)
		}
	}
	return t, nil
}

// keyColumn finds the column that a rule means.
func keyColumn(rule Rule, full string, cols []column) (column, error) {
	var keys []column
	for _, col := range cols {
		if rule.Column != "" && strings.EqualFold(col.name, rule.Column) {
			return col, nil
		}
		if col.primary {
			keys = append(keys, col)
		}
	}
	switch {
	case rule.Column != "":
		return column{}, &TableError{full, rule.Column, "the table has no such column", "correct the rule in leafTables"}
	case len(keys) != 1:
		return column{}, &TableError{full, "", fmt.Sprintf("its primary key has %d columns", len(keys)), "name the one to fill: leafTables=" + full + ":COLUMN"}
	}
	return keys[0], nil
}

// checkAutoIncrement warns of a column that two sides give numbers to: writers
// that are not wrapped take the next number after our highest id, and collide
// with us later.
func (c *Connector) checkAutoIncrement(full string, name tableName, key column) error {
	const reason = "the column still has AUTO_INCREMENT, so a writer without leafsql takes numbers that leafsql will give out"
	drop := "ALTER TABLE " + quoteFull(name) + " MODIFY " + quoteName(key.name) + " " + key.typ + " NOT NULL"
	switch {
	case !key.autoInc:
		return nil
	case c.cfg.KeepZero:
		return &TableError{full, key.name, "leafZero=keep says that 0 is a key, and its AUTO_INCREMENT makes a number of the server's of it", "drop it: " + drop}
	case c.cfg.RefuseAutoIncrement:
		return &TableError{full, key.name, reason, "drop it: " + drop + "; or set leafAutoIncrement=allow"}
	case c.first("auto_increment " + full):
		c.cfg.logger().Warn("leafsql: "+reason, "table", full, "column", key.name, "drop it with", drop)
	}
	return nil
}

// generator finds the generator of a rule's table and checks, where ids come
// from leaf_alloc, that the row is fit for the table.
func (c *Connector) generator(ctx context.Context, conn innerConn, rule Rule, name tableName, key column, temporary bool) (idgen.Generator, error) {
	if rule.Generator != nil {
		return rule.Generator, nil
	}
	if rule.Kind == Snowflake {
		return c.ids.snowflakes, nil
	}
	if c.cfg.SegmentStore == nil && !temporary {
		if err := c.checkRow(ctx, conn, rule, name, key); err != nil {
			return nil, err
		}
	}
	return c.ids.segments.generator(rule.tag()), nil
}

// checkRow holds the leaf_alloc row against the table, once for each table: a
// row that starts at or below ids in use is the classic accident of a
// migration. MAX is read first: ids that others insert meanwhile come from
// ranges that the row has left behind.
func (c *Connector) checkRow(ctx context.Context, conn innerConn, rule Rule, name tableName, key column) error {
	full, tag := name.db+"."+name.name, rule.tag()
	if _, done := c.once.Load("row " + full); done {
		return nil
	}
	top, integer, _ := limit(key.typ)
	highest, err := c.catalog.highest(ctx, conn, name, key.name, integer)
	if isServerError(err, errTableDenied, errColumnDenied) {
		if c.cfg.Create {
			return &TableError{full, key.name, "its highest key may not be read (" + serverMessage(err) + "), so no row of leaf_alloc can be created for it",
				"GRANT SELECT on it, or add the row by hand"}
		}
		c.cfg.logger().Warn("leafsql: whether ids are above the keys in use cannot be checked", "table", full, "err", err)
		c.once.Store("row "+full, struct{}{})
		return nil
	}
	if err != nil {
		return err
	}
	row, err := c.ids.alloc().Row(ctx, tag)
	var unknown *segment.UnknownTagError
	if errors.As(err, &unknown) && c.cfg.Create {
		if err := c.createRow(ctx, conn, rule, name, key, highest); err != nil {
			return err
		}
		row, err = c.ids.alloc().Row(ctx, tag)
	}
	if isServerError(err, errNoSuchTable) {
		return &ConfigError{"leafAllocTable", fmt.Sprintf("there is no table %s to take ids for %s from (%s)", c.cfg.AllocTable, full, serverMessage(err)),
			"add leafCreate=true to have it created, or name it, or the database that holds it, with leafAllocTable or leafStore"}
	}
	if err != nil {
		return &FillError{Table: full, Rows: 1, Err: err}
	}
	if max(row.MaxID, 1) <= highest { // 0 is never issued
		return &TableError{full, key.name,
			fmt.Sprintf("the highest key is %d, and tag %q would start at %d, below or at keys in use", highest, tag, max(row.MaxID, 1)),
			fmt.Sprintf("raise it: UPDATE %s SET max_id = %d WHERE biz_tag = %s", c.cfg.AllocTable, highest+1, quoteString(tag))}
	}
	if row.MaxID > top {
		return &TableError{full, key.name,
			fmt.Sprintf("its type %s ends at %d, and tag %q stands at %d", key.typ, top, tag, row.MaxID),
			"make it BIGINT: ALTER TABLE " + quoteFull(name) + " MODIFY " + quoteName(key.name) + " BIGINT NOT NULL"}
	}
	c.once.Store("row "+full, struct{}{})
	return nil
}

// createRow adds the row of a tag, starting above the keys of every table
// that the rule feeds in this database.
func (c *Connector) createRow(ctx context.Context, conn innerConn, rule Rule, name tableName, key column, highest int64) error {
	if strings.Contains(rule.Table, "*") {
		names, err := c.catalog.matching(ctx, name.db, rule.Table)
		if err != nil {
			return err
		}
		for _, other := range names {
			_, integer, _ := limit(key.typ)
			top, err := c.catalog.highest(ctx, conn, tableName{name.db, other}, key.name, integer)
			if isServerError(err, errUnknownColumn) {
				continue // fits the pattern, but not the rule
			}
			if err != nil {
				return err
			}
			highest = max(highest, top)
		}
	}
	if highest == math.MaxInt64 {
		return fmt.Errorf("leafsql: table %s.%s: %w", name.db, name.name, idgen.ErrExhausted)
	}
	return c.ids.alloc().Ensure(ctx, rule.tag(), highest+1, createdStep)
}

func quoteFull(n tableName) string { return quoteName(n.db) + "." + quoteName(n.name) }

// quoteString quotes for messages a person copies into a client.
func quoteString(s string) string {
	return "'" + strings.NewReplacer("'", "''", `\`, `\\`).Replace(s) + "'"
}
