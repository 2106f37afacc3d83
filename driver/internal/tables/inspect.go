package tables

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/read"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/internal/quote"
)

// Inspect returns the configured tables on the set's server, their key columns and their errors. conn is a
// connection to the DSN's database. Under leafTables=auto, tags are the biz_tags of leaf_alloc. An error about
// a single table is in the table's entry. The returned error is a *catalog.Failure.
func (set *Set) Inspect(ctx context.Context, conn pool.Conn, database string, tags []string) (*inspect.Inspection, error) {
	if err := set.learnServer(ctx, conn, database); err != nil {
		return nil, err
	}
	s := set.newSchema(make(map[string]string))
	if set.Config.Auto {
		for _, tag := range tags {
			s.tags[set.NormalizeName("", tag).Table] = tag
		}
	}
	databases, err := set.Catalog.Databases(ctx, set.Server.Settings.Vitess)
	if err != nil {
		return nil, &catalog.Failure{What: "the databases", Err: err}
	}
	var names []catalog.Name
	means := make(map[catalog.Name]rules.Rule)
	for _, db := range databases {
		if !s.mayNameTableIn(set.NormalizeName(db, "").DB) {
			continue
		}
		tables, err := set.Catalog.TableNames(ctx, db)
		if err != nil {
			return nil, &catalog.Failure{What: "the tables of " + db, Err: err}
		}
		for _, t := range tables {
			name := set.NormalizeName(db, t)
			if rule, ok := s.findRule(name); ok {
				names, means[name] = append(names, name), rule
			}
		}
	}
	seen, err := set.readCatalog(ctx, names)
	if err != nil {
		return nil, &catalog.Failure{What: "the columns of tables", Err: err}
	}
	r := programReader{set, make(map[catalog.Name]bool)}
	i := &inspect.Inspection{MariaDB: set.Server.Settings.MariaDB, Version: set.Server.Settings.Version, Reader: r}
	for _, name := range names {
		if t := set.inspectTable(means[name], name, seen[name]); t != nil {
			i.Tables = append(i.Tables, *t)
			r.known[name] = true
		}
	}
	slices.SortFunc(i.Tables, func(a, b inspect.Table) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Table, b.Table))
	})
	i.Missing = s.missingNames(r.known)
	return i, nil
}

// serverDatabases are the server's own databases, which patterns do not match.
var serverDatabases = []string{"information_schema", "performance_schema", "mysql", "sys"}

// mayNameTableIn reports whether a rule or a tag may name a table of a database.
func (s *Schema) mayNameTableIn(db string) bool {
	for tag := range s.tags {
		if strings.HasPrefix(tag, db+".") {
			return true
		}
	}
	byDefault := s.set.DefaultDB
	return s.set.Config.Auto && db == byDefault || slices.ContainsFunc(s.set.rules, func(r rules.Rule) bool {
		in := cmp.Or(r.Database, byDefault)
		return !r.Exclude && (in == db || rules.Match(in, db) && !slices.Contains(serverDatabases, db))
	})
}

// inspectTable is like describeTable, but needs no generator. It returns nil if the rule may
// name many tables and does not apply to this table.
func (set *Set) inspectTable(rule rules.Rule, name catalog.Name, t *catalog.Table) *inspect.Table {
	info := &inspect.Table{
		Database: name.DB, Table: name.Table, Kind: cmp.Or(rule.Kind, rules.Segment),
		Columns: lo.Map(t.Columns, func(c catalog.Column, _ int) string { return c.Name + " " + c.Type }),
	}
	if info.Kind == rules.Segment {
		info.Tag = rules.TagOf(rule, name.Table)
	}
	f, err := set.Config.Fit(rule, name, t)
	if err != nil {
		info.Err = err
		if unfit, ok := errors.AsType[*insert.Refusal](err); ok {
			info.Column = unfit.Column
		}
		return info
	}
	if f == nil {
		return nil
	}
	info.Column, info.Type, info.AutoIncrement = f.Key.Name, f.Key.Type, f.Key.AutoIncrement
	info.Integer, info.Highest, info.CounterLimit, info.Indexed = f.Integer, f.Highest, f.Near, f.Indexed
	info.Unique, info.UniqueWithOthers = t.IsUnique(f.Key.Name)
	desc := &insert.Table{Name: name, AutoIncrement: f.Key.AutoIncrement, RowTriggers: t.RowTriggers()}
	info.RefusesLoad = staged.CheckNulledKeys(desc, set.Server.Settings, insert.FromFile) != nil
	info.TriggersHidden = t.TriggersHidden
	return info
}

// missingNames returns, sorted, the tags and the rules that name a single table which is not in known.
func (s *Schema) missingNames(known map[catalog.Name]bool) []string {
	var none []string
	for tag, written := range s.tags {
		db, table := quote.Split(tag)
		if !known[catalog.Name{DB: s.set.DefaultDB, Table: tag}] && !known[catalog.Name{DB: db, Table: table}] {
			none = append(none, written)
		}
	}
	for _, r := range s.set.Config.Rules {
		name := s.set.NormalizeName(cmp.Or(r.Database, s.set.DefaultDB), r.Table)
		if !r.Exclude && !strings.Contains(r.Database+r.Table, "*") && !known[name] {
			none = append(none, r.String())
		}
	}
	slices.Sort(none)
	return none
}

// A programReader finds the known tables in stored programs.
type programReader struct {
	set   *Set
	known map[catalog.Name]bool
}

func (r programReader) Writes(p inspect.Program) []string {
	return r.knownNames(read.FindTargets(p.Body, p.Database, r.set.Server.Settings.WithSQLMode(p.SQLMode)))
}

func (r programReader) Reads(p inspect.Program) []string { return r.knownNames(r.effects(p).Tables) }

func (r programReader) Excludes(database, table string) bool {
	rule, _ := r.set.newSchema(nil).findRule(r.set.NormalizeName(database, table))
	return rule.Exclude
}

func (r programReader) Assigns(p inspect.Program, column string) bool {
	return r.effects(p).SetsKey(column)
}

func (r programReader) effects(p inspect.Program) insert.Effects {
	return r.set.Server.TextEffects(p.Database, r.set.Server.Settings.WithSQLMode(p.SQLMode).Scanner(p.Body))
}

func (r programReader) knownNames(names []insert.TableName) []string {
	return lo.Uniq(lo.FilterMap(names, func(n insert.TableName, _ int) (string, bool) {
		name := r.set.NormalizeName(n.DB, n.Table)
		return name.String(), r.known[name]
	}))
}
