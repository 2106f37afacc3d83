package check

import (
	"context"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/column"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
)

// checkRules finds rules that match no table on any shard, and rows of leaf_alloc from which no table gets ids.
func (c *checker) checkRules(context.Context) error {
	missing := make(map[string]int)
	for _, shard := range c.Shards {
		for _, rule := range shard.Inspection.Missing {
			missing[rule]++
		}
	}
	first := c.Shards[0]
	for _, rule := range slices.Sorted(maps.Keys(missing)) {
		if missing[rule] < len(c.Shards) || first.Config.Auto() {
			continue // it matches a table on some shards
		}
		c.add(Finding{Code: "rule-without-table", Severity: Error, Server: first.Label, Table: rule,
			Message: "leafTables names a table that does not exist or that this user has no right to see: the intended table is not filled.",
			Fix:     "correct the rule; names are compared according to the server's lower_case_table_names"})
	}
	used := make(map[string]bool)
	for _, tag := range c.Tags {
		if tag.Row != nil {
			used[tag.Row.Tag] = true
		}
	}
	var others []string
	for _, row := range c.Rows {
		if !used[row.Tag] {
			others = append(others, row.Tag)
		}
	}
	const shown = 5
	f := Finding{Code: "tag-without-table", Severity: Note, Server: c.Set.Store.Label}
	switch n := len(others); {
	case n == 0:
		return nil
	case n == 1:
		f.Tag, f.Message = others[0], c.translate("No configured table takes ids from this row.")
	case n <= shown:
		f.Message = c.sprintf("No configured table takes ids from the rows of these %d tags: %s.", n, strings.Join(others, ", "))
	default:
		f.Message = c.sprintf("No configured table takes ids from the rows of %d tags: %s and %d more.", n, strings.Join(others[:shown], ", "), n-shown)
	}
	f.Message += c.translate(" That is fine if other programs do, such as Java Leaf.")
	c.add(f)
	return nil
}

// checkShards compares the tables of every shard with the tables of the first shard.
func (c *checker) checkShards(ctx context.Context) error {
	byName := func(s *survey.Shard) map[string]*survey.Table {
		m := make(map[string]*survey.Table)
		for _, t := range s.Tables {
			m[t.ShardName()] = t
		}
		return m
	}
	first := byName(c.Shards[0])
	for _, shard := range c.Shards[1:] {
		tables := byName(shard)
		for _, name := range slices.Sorted(maps.Keys(first)) {
			if tables[name] == nil {
				create, err := first[name].ReadCreate(ctx)
				if err != nil {
					return err
				}
				c.add(Finding{Code: "shards-differ", Severity: Error, Server: shard.Label, Table: name,
					Message: c.sprintf("The table is on %s and not on this shard, or leafTables does not match it here.", c.Shards[0].Label),
					SQL:     []string{nextNumber.ReplaceAllString(create, "")}})
				continue
			}
			if err := c.compareTables(ctx, first[name], tables[name]); err != nil {
				return err
			}
		}
		for _, name := range slices.Sorted(maps.Keys(tables)) {
			if first[name] == nil {
				f := newTableFinding("shards-differ", Error, tables[name])
				f.Message = c.sprintf("The table is on this shard and not on %s, or leafTables does not match it there.", c.Shards[0].Label)
				c.add(f)
			}
		}
	}
	return nil
}

// nextNumber matches the next number in CREATE TABLE, as in " AUTO_INCREMENT=17". Another shard must not start
// with it.
var nextNumber = regexp.MustCompile(` AUTO_INCREMENT=\d+`)

// compareTables compares b, a shard's table, with a, the first shard's table.
func (c *checker) compareTables(ctx context.Context, a, b *survey.Table) error {
	f := newTableFinding("shards-differ", Error, b)
	if a.Kind != b.Kind || a.Tag != b.Tag || !strings.EqualFold(a.Column, b.Column) {
		f.Message = c.sprintf("Its ids come from %s %s in column %s, but on %s from %s %s in column %s.", b.Kind, b.Tag, b.Column, a.Shard.Label, a.Kind, a.Tag, a.Column)
		f.Fix = "give every shard's DSN the same leafTables"
		c.add(f)
		return nil
	}
	if !a.Shard.Inspection.MariaDB != !b.Shard.Inspection.MariaDB || a.Shard.Version != b.Shard.Version {
		// Servers of different versions spell the same type differently.
		if sameColumns(a.Columns, b.Columns, func(s string) string { return displayWidth.ReplaceAllString(s, "$1") }) {
			return nil
		}
	}
	if slices.Equal(a.Columns, b.Columns) {
		return nil
	}
	create, err := a.ReadCreate(ctx)
	if err != nil {
		return err
	}
	only := func(x, y []string) []string {
		return slices.DeleteFunc(slices.Clone(x), func(s string) bool { return slices.Contains(y, s) })
	}
	here, there := only(b.Columns, a.Columns), only(a.Columns, b.Columns)
	f.Severity = Warning
	switch {
	case len(here)+len(there) == 0:
		f.Message = c.sprintf("Its columns have another order than on %s: an INSERT without a column list writes other columns there.", a.Shard.Label)
	default:
		f.Message = c.sprintf("Its columns differ from those on %s: here %s, there %s.", a.Shard.Label, c.listColumns(here), c.listColumns(there))
	}
	names := make(map[string]bool)
	for _, col := range b.Columns {
		name, _, _ := strings.Cut(col, " ")
		names[strings.ToLower(name)] = true
	}
	for _, col := range there {
		name, _, _ := strings.Cut(col, " ")
		def, err := column.FromCreateTable(create, name)
		if err != nil {
			return err
		}
		if names[strings.ToLower(name)] {
			f.SQL = append(f.SQL, def.Alter(b.QuotedName()))
		} else {
			f.SQL = append(f.SQL, def.Add(b.QuotedName()))
		}
	}
	c.add(f)
	return nil
}

// displayWidth matches an integer type's display width, as in "bigint(20)".
var displayWidth = regexp.MustCompile(`(int)\(\d+\)`)

func sameColumns(a, b []string, as func(string) string) bool {
	return slices.EqualFunc(a, b, func(x, y string) bool { return as(x) == as(y) })
}

func (c *checker) listColumns(columns []string) string {
	if len(columns) == 0 {
		return c.translate("none of its own")
	}
	return strings.Join(columns, ", ")
}
