package check

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
)

// A column is reported if more than this fraction of its ids is used, or if they will last for less than this number of
// years.
const (
	maxUsed  = 0.8
	minYears = 2
)

// checkTables checks the key columns.
func (c *checker) checkTables(ctx context.Context) error {
	rows := make(map[string]*survey.Row)
	tags := make(map[string]*survey.Tag)
	for _, tag := range c.Tags {
		rows[tag.Name], tags[tag.Name] = tag.Row, tag
	}
	for _, shard := range c.Shards {
		for _, t := range shard.Tables {
			if unfit, ok := errors.AsType[*driver.RefusedError](t.Err); ok {
				f := newTableFinding("key-unfit", Error, t)
				f.Message, f.Fix = unfit.Reason+".", unfit.Fix
				c.add(f)
				continue
			}
			widens, err := c.checkKeyRange(ctx, t, rows[t.Tag])
			if err != nil {
				return err
			}
			c.checkProperties(t)
			if t.AutoIncrement {
				if err := c.checkAutoIncrement(ctx, t, tags[t.Tag], widens); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// checkUnfilled reports the AUTO_INCREMENT columns that no rule fills, in the DSN's database and in the databases
// of configured tables.
func (c *checker) checkUnfilled(ctx context.Context) error {
	for _, shard := range c.Shards {
		if shard.Config.None {
			continue
		}
		schemas := []string{shard.Database}
		for _, t := range shard.Tables {
			if !slices.Contains(schemas, t.Database) {
				schemas = append(schemas, t.Database)
			}
		}
		for _, schema := range schemas {
			err := shard.Each(ctx, func(scan func(...any) error) error {
				var table, column string
				if err := scan(&table, &column); err != nil {
					return err
				}
				if shard.Inspection.Excludes(schema, table) || slices.ContainsFunc(shard.Tables, func(t *survey.Table) bool {
					return shard.SameName(t.Database, schema) && shard.SameName(t.Table.Table, table) && (t.Err != nil || t.AutoIncrement)
				}) {
					return nil
				}
				rule := table + ":" + column
				if schema != shard.Database {
					rule = schema + "." + rule
				}
				c.add(Finding{Code: "unfilled", Severity: Note, Server: shard.Label, Table: schema + "." + table,
					Message: c.sprintf("No rule fills its column %s, which has AUTO_INCREMENT: every server generates these ids independently.", column),
					Fix:     c.sprintf("%s in leafTables fills it", rule)})
				return nil
			}, "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = ? AND extra LIKE '%auto_increment%'"+
				" AND NOT (column_name = 'my_row_id' AND extra LIKE '%invisible%') ORDER BY 1", schema)
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// checkAutoIncrement checks a table for which the server also generates keys. tag is nil if leafsql's ids for the table
// do not come from leaf_alloc. If an earlier finding changes the key to BIGINT, widens is set, and the SQL of this finding
// keeps BIGINT.
func (c *checker) checkAutoIncrement(ctx context.Context, t *survey.Table, tag *survey.Tag, widens bool) error {
	def, err := readDefinition(ctx, t)
	if err != nil {
		return err
	}
	if widens {
		def = def.Widen()
	}
	f := newTableFinding("auto-increment", Warning, t)
	f.Message = c.translate("A writer without leafsql can use ids that leafsql issues: an upsert of one overwrites a row of the other.")
	f.Fix = "once every writer uses mysql-leaf; leafsql migrate does it step by step"
	if f.Migrate = t.Shard.NoTriggers == ""; !f.Migrate {
		f.Fix = "once every writer uses mysql-leaf"
	}
	if tag != nil && tag.Row != nil && !t.HasGuard {
		f.Message += c.translate(" leaf_alloc already has a row for it: AUTO_INCREMENT was added again, or never removed. ent adds it at its start, and so do other tools that write the schema.")
		f.Fix = "first change the model or the schema's files, or AUTO_INCREMENT is added again; then, once every writer uses mysql-leaf"
	}
	if t.HasGuard {
		f.Severity = Note
		f.Message = c.translate("The column still has AUTO_INCREMENT, and the trigger of leafsql migrate refuses rows that would use it.")
		f.Fix = "once every writer uses mysql-leaf; the next step is leafsql migrate -do drop"
	}
	f.Message += c.translate(" information_schema.tables.auto_increment and SHOW TABLE STATUS do not have the next id; a program must not read it there.")
	if !t.Indexed {
		f.Message += c.translate(" The server counts separately for each value of the columns before it in its index; leafsql issues the ids of all rows from one counter.")
	}
	switch invisible, lacksRow := t.CheckVisible(def), tag != nil && (tag.Row == nil || tag.IsRowTooLow() || len(tag.UnknownTables()) > 0); {
	case lacksRow && !f.Migrate:
		f.Fix = "leaf_alloc first needs a row above all ids that AUTO_INCREMENT generated, or ids of deleted rows are issued again: stop all writers, run leafsql init, and start them with mysql-leaf"
	case lacksRow:
		f.Fix = "leaf_alloc first needs a row above all ids that AUTO_INCREMENT generated, or ids of deleted rows are issued again: leafsql migrate does it step by step, or leafsql init adds or raises the row"
	case t.Shard.TiDB:
		f.Fix = "leave it, once every writer uses mysql-leaf: TiDB takes it off only under tidb_allow_remove_auto_inc, and never puts it back"
	case c.waitsForPrograms(&f):
	case invisible != nil:
		f.Fix = invisible.Error()
	default:
		f.SQL, err = t.Alter(ctx, def.WithoutAutoIncrement(), 0)
	}
	c.add(f)
	return err
}

// checkKeyRange checks whether enough ids are left in the column. It reports whether the SQL of a finding
// changes the column to BIGINT.
func (c *checker) checkKeyRange(ctx context.Context, t *survey.Table, row *survey.Row) (widens bool, err error) {
	var f Finding
	used, known := c.usedFraction(t, row)
	years, measured := c.remainingYears(t, row)
	switch {
	case t.Kind == driver.Snowflake && known && used > 1:
		f = newTableFinding("key-small", Error, t)
		f.Message = c.sprintf("The highest value of its type %s is %d, and snowflakes are above that.", t.Type, t.Highest)
	case known && used > 1:
		f = newTableFinding("key-small", Error, t)
		f.Message = c.sprintf("The highest value of its type %s is %d, and the next id is %d: every INSERT is refused.", t.Type, t.Highest, row.MaxID)
	case known && used >= maxUsed:
		f = newTableFinding("key-filling", Warning, t)
		f.Message = c.sprintf("%.0f %% of the ids that its type %s holds are used.", 100*used, t.Type)
	case measured && years < minYears:
		f = newTableFinding("key-filling", Warning, t)
		f.Message = c.sprintf("At the measured rate the ids that its type %s holds last %s.", t.Type, FormatYears(c.opts.Texts, years))
	default:
		return false, nil
	}
	if t.Integer {
		def, err := readDefinition(ctx, t)
		if err != nil {
			return false, err
		}
		if wide := def.Widen(); wide != def {
			keys, err := t.ForeignKeys(ctx)
			if err != nil {
				return false, err
			}
			if len(keys) > 0 {
				f.Fix = c.sprintf("the server refuses to widen a key with foreign keys (%s); drop them, widen the columns on both sides and add them again", strings.Join(keys, ", "))
			} else {
				f.SQL = []string{t.Modify(wide)}
				f.Fix = "the server copies the table and blocks writes meanwhile"
			}
		}
	}
	c.add(f)
	return len(f.SQL) > 0, nil
}

// usedFraction returns the used fraction of the column's ids, or more than 1 if the next id does not fit.
func (c *checker) usedFraction(t *survey.Table, row *survey.Row) (part float64, known bool) {
	switch {
	case t.Kind == driver.Snowflake:
		layout := cmp.Or(t.Shard.Config.Snowflake, snowflake.Leaf)
		id, err := layout.Compose(snowflake.Parts{Time: time.Now()})
		if err != nil || id > t.Highest {
			return 2, true
		}
		begin := time.UnixMilli(layout.Epoch)
		return time.Since(begin).Hours() / layout.End().Sub(begin).Hours(), true
	case t.Kind != driver.Segment || row == nil:
		return 0, false
	}
	return float64(row.MaxID) / float64(t.Highest), true
}

// remainingYears returns the number of years that the column's ids last.
func (c *checker) remainingYears(t *survey.Table, row *survey.Row) (years float64, known bool) {
	const hours = 24 * 365.25
	switch t.Kind {
	case driver.Snowflake:
		return time.Until(cmp.Or(t.Shard.Config.Snowflake, snowflake.Leaf).End()).Hours() / hours, true
	case driver.Segment:
		rate, ok := c.opts.Rates[t.Tag]
		if !ok || row == nil || rate.PerSecond <= 0 {
			return 0, false
		}
		return float64(max(t.Highest-row.MaxID, 0)) / rate.PerSecond / 3600 / hours, true
	}
	return 0, false
}
