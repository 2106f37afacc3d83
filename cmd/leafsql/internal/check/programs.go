package check

import (
	"cmp"
	"context"
	"database/sql"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/internal/quote"
)

// programKind is a kind of stored program. Its query lists the visible programs of all databases, since any of
// them can write any table. The columns are database, name, body, sql_mode and, for a trigger, its table and time
// of execution.
type programKind struct {
	code, what, kind, query string
}

var programKinds = []programKind{
	{"trigger-inserts", "trigger", "TRIGGER ",
		"SELECT trigger_schema, trigger_name, action_statement, sql_mode, event_object_table, CONCAT(action_timing, ' ', event_manipulation) FROM information_schema.triggers WHERE trigger_schema NOT IN ('mysql', 'sys') ORDER BY 1, 2"},
	{"routine-inserts", "routine", "",
		"SELECT routine_schema, routine_name, routine_definition, sql_mode, '', routine_type FROM information_schema.routines WHERE routine_schema NOT IN ('mysql', 'sys') ORDER BY 1, 2"},
	{"event-inserts", "event", "EVENT ",
		"SELECT event_schema, event_name, event_definition, sql_mode, '', '' FROM information_schema.events WHERE event_schema NOT IN ('mysql', 'sys') ORDER BY 1, 2"},
}

const viewsQuery = "SELECT table_name, view_definition, is_updatable FROM information_schema.views WHERE table_schema = ? ORDER BY 1"

// waitsForPrograms reports whether checkPrograms has found programs that write the finding's table. If so, it
// adds the hint that the findings about these programs have to be solved first.
func (c *checker) waitsForPrograms(f *Finding) bool {
	found := slices.ContainsFunc(c.findings, func(o Finding) bool {
		return o.Server == f.Server && o.Table == f.Table && slices.ContainsFunc(programKinds, func(k programKind) bool { return k.code == o.Code })
	})
	if found {
		f.Fix = "first fix the findings trigger-inserts, routine-inserts and event-inserts on this table: these programs fail once the column has no AUTO_INCREMENT"
	}
	return found
}

// checkPrograms finds programs and views that write configured tables without the driver.
func (c *checker) checkPrograms(ctx context.Context) error {
	for _, shard := range c.Shards {
		tables := make(map[string]*survey.Table)
		var schemas []string
		for _, t := range shard.Tables {
			tables[t.Name()] = t
			if !slices.Contains(schemas, t.Database) {
				schemas = append(schemas, t.Database)
			}
		}
		if len(schemas) == 0 || shard.TiDB { // TiDB has no stored programs, and inserts no rows through views
			continue
		}
		hidden, err := c.findHidden(ctx, shard)
		if err != nil {
			return err
		}
		for _, kind := range programKinds {
			if err := c.checkProgramKind(ctx, shard, kind, tables, &hidden); err != nil {
				return err
			}
		}
		for _, schema := range schemas {
			if err := c.checkViews(ctx, shard, schema, tables, &hidden); err != nil {
				return err
			}
		}
		c.addHidden(shard, schemas, hidden)
	}
	return nil
}

// checkProgramKind analyses the bodies of one kind of stored programs.
func (c *checker) checkProgramKind(ctx context.Context, shard *survey.Shard, kind programKind, tables map[string]*survey.Table, hidden *hiddenObjects) error {
	all, err := shard.EachVisible(ctx, func(scan func(...any) error) error {
		var schema, name, mode, table, more string
		var body sql.NullString
		if err := scan(&schema, &name, &body, &mode, &table, &more); err != nil {
			return err
		}
		if !body.Valid {
			hidden.bodies = true
			return nil
		}
		program := inspect.Program{Database: schema, Body: body.String, SQLMode: mode}
		named := kind.kind + quote.Qualified(schema, name)
		if kind.what == "routine" {
			named = more + " " + quote.Qualified(schema, name)
		}
		drop := []string{"SHOW CREATE " + named, "DROP " + named}
		for _, written := range shard.Inspection.Writes(program) {
			f := newTableFinding(kind.code, Warning, tables[written])
			f.Message = c.sprintf("The %s %s.%s writes rows into it. They get no id from leafsql, and their keys do not move its counter.", c.translate(kind.what), schema, name)
			f.Fix = "save its text, let the application write these rows through mysql-leaf, and drop it"
			f.SQL = drop
			c.add(f)
		}
		if t := tables[schema+"."+table]; t != nil && t.Err == nil && strings.HasPrefix(strings.ToUpper(more), "BEFORE INSERT") && shard.Inspection.Assigns(program, t.Column) {
			f := newTableFinding("trigger-sets-key", Warning, t)
			f.Message = c.sprintf("The trigger %s.%s sets %s: the application gets another id than the row has.", schema, name, t.Column)
			f.Fix = "save its text, drop it, and create it again without this assignment"
			f.SQL = drop
			c.add(f)
		}
		return nil
	}, kind.query)
	hidden.locked = hidden.locked || err == nil && !all
	return err
}

// checkViews finds views through which rows of configured tables can be inserted.
func (c *checker) checkViews(ctx context.Context, shard *survey.Shard, schema string, tables map[string]*survey.Table, hidden *hiddenObjects) error {
	return shard.Each(ctx, func(scan func(...any) error) error {
		var name, updatable string
		var body sql.NullString
		if err := scan(&name, &body, &updatable); err != nil {
			return err
		}
		if body.String == "" {
			hidden.views = true
			return nil
		}
		rule := func(r driver.Rule) bool {
			return !r.Exclude && r.Table == name && cmp.Or(r.Database, shard.Database) == schema
		}
		if updatable != "YES" || slices.ContainsFunc(shard.Config.Tables, rule) { // rows inserted through a view that leafTables names get keys
			return nil
		}
		for _, read := range shard.Inspection.Reads(inspect.Program{Database: schema, Body: body.String}) {
			f := newTableFinding("view-inserts", Note, tables[read])
			f.Message = c.sprintf("Rows can be inserted through the view %s.%s, which leafsql does not fill.", schema, name)
			if tables[read].AutoIncrement && !tables[read].HasGuard {
				f.Severity = Warning
				f.Message += c.translate(" They get ids from AUTO_INCREMENT.")
			}
			f.Fix = "name the table in INSERTs, or make the view read-only (ALGORITHM = TEMPTABLE)"
			f.SQL = []string{"CREATE OR REPLACE ALGORITHM = TEMPTABLE VIEW " + quote.Qualified(schema, name) + " AS " + body.String}
			c.add(f)
		}
		return nil
	}, viewsQuery, schema)
}
