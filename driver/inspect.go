package driver

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/ownpool"
)

// An Inspection is what a Config means on its server: the same judgement that
// Connectors come to, without a statement, an id or a worker id.
type Inspection struct {
	MariaDB bool
	Version int                   // as version comments write it: 101119, 90704
	Tables  []TableInfo           // that the Config means, by name
	Missing []string              // rules that name a table which this user does not see, and under auto tags that mean none
	known   map[catalog.Name]bool // the tables of Tables
	c       *Connector            // without generators and connections
}

// TableInfo is how a Config fills one table.
type TableInfo struct {
	Database, Table string
	Rule            Rule
	Kind            string // Segment, Sequence, Snowflake, UUID7, or "" for a Generator of the caller's
	Tag             string // biz_tag, for Segment; else ""

	Columns []string // all in their order, each with its type: "id bigint(20)"

	// Err is why INSERTs into the table are refused, mostly a *RefusedError. What
	// follows is not known then.
	Err error

	Column        string // the key
	Type          string // the column's, such as "bigint(20) unsigned"
	Integer       bool   // it is an integer type
	Highest       int64  // the highest id that it can hold
	AutoIncrement bool   // it still is AUTO_INCREMENT
	Indexed       bool   // an index begins with it, so that the highest key is found without reading the table
}

// Inspect asks the server of cfg.MySQL what cfg means there. Under
// leafTables=auto, tags are the biz_tags of leaf_alloc.
func Inspect(ctx context.Context, cfg *Config, tags []string) (*Inspection, error) {
	if cfg.MySQL == nil {
		return nil, &ConfigError{"Config.MySQL", "not set", "start from driver.NewConfig or driver.ParseDSN"}
	}
	if err := check(cfg); err != nil {
		return nil, err
	}
	for _, r := range cfg.Tables {
		if r.Database == "" && cfg.MySQL.DBName == "" {
			return nil, ruleError(r.String(), "the DSN has no database that a bare table name could mean", "write db."+r.Table)
		}
	}
	own, err := mysql.NewConnector(ownpool.Config(cfg.MySQL))
	if err != nil {
		return nil, err
	}
	db := ownpool.Open(own, 2)
	defer db.Close()
	c := &Connector{cfg: cfg, rules: bySpecificity(cfg.Tables), catalog: catalog.New(db)}
	sc, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer sc.Close()
	if err := sc.Raw(func(dc any) error { return c.learnServer(ctx, dc.(innerConn), cfg.MySQL.DBName) }); err != nil {
		return nil, err
	}
	s := newSchema(make(map[string]string))
	if cfg.Auto {
		for _, tag := range tags {
			s.tags[c.fold("", tag).Table] = tag
		}
	}
	i := &Inspection{MariaDB: c.settings.MariaDB, Version: c.settings.Version, known: make(map[catalog.Name]bool), c: c}
	return i, c.inspect(ctx, s, i)
}

// inspect finds the tables that the rules, or the tags, mean.
func (c *Connector) inspect(ctx context.Context, s *schema, i *Inspection) error {
	databases, err := c.catalog.Databases(ctx)
	if err != nil {
		return catalogError("the databases", err)
	}
	var names []catalog.Name
	means := make(map[catalog.Name]Rule)
	for _, db := range databases {
		if !c.mayHold(s, c.fold(db, "").DB) {
			continue
		}
		tables, err := c.catalog.TableNames(ctx, db)
		if err != nil {
			return catalogError("the tables of "+db, err)
		}
		for _, t := range tables {
			name := c.fold(db, t)
			if rule, ok := c.rule(s, name); ok {
				names, means[name] = append(names, name), rule
			}
		}
	}
	seen, err := c.catalog.Tables(ctx, names)
	if err != nil {
		return catalogError("the columns of tables", err)
	}
	for _, name := range names {
		info, err := c.inspectTable(means[name], name, seen[name])
		if err != nil {
			return err
		}
		if info != nil {
			i.Tables = append(i.Tables, *info)
			i.known[name] = true
		}
	}
	slices.SortFunc(i.Tables, func(a, b TableInfo) int {
		return cmp.Or(cmp.Compare(a.Database, b.Database), cmp.Compare(a.Table, b.Table))
	})
	i.Missing = c.missing(s, i.known)
	return nil
}

// serverDatabases are the server's own, which no pattern means.
var serverDatabases = []string{"information_schema", "performance_schema", "mysql", "sys"}

// mayHold says whether a rule or a tag could mean a table of a database.
func (c *Connector) mayHold(s *schema, db string) bool {
	for tag := range s.tags {
		if strings.HasPrefix(tag, db+".") {
			return true
		}
	}
	return c.cfg.Auto && db == c.defaultDB || slices.ContainsFunc(c.rules, func(r Rule) bool {
		in := cmp.Or(r.Database, c.defaultDB)
		return !r.Exclude && (in == db || wildcard(in, db) && !slices.Contains(serverDatabases, db))
	})
}

// inspectTable is describe without a generator; nil where the rule, which may
// mean many tables, does not mean this one.
func (c *Connector) inspectTable(rule Rule, name catalog.Name, t *catalog.Table) (*TableInfo, error) {
	info := &TableInfo{
		Database: name.DB, Table: name.Table, Rule: rule, Kind: cmp.Or(rule.Kind, Segment),
		Columns: lo.Map(t.Columns, func(c catalog.Column, _ int) string { return c.Name + " " + c.Type }),
	}
	switch {
	case rule.Generator != nil:
		info.Kind = ""
	case info.Kind == Segment:
		info.Tag = rule.tag(name.Table)
	}
	f, err := c.cfg.fit(rule, name, t)
	var unfit *RefusedError
	switch {
	case f == nil && err == nil:
		return nil, nil
	case errors.As(err, &unfit):
		info.Err, info.Column = err, unfit.Column
		return info, nil
	case err != nil:
		return nil, err
	}
	info.Column, info.Type, info.AutoIncrement = f.key.Name, f.key.Type, f.key.AutoIncrement
	info.Integer, info.Highest, info.Indexed = f.integer, f.highest, f.indexed
	return info, nil
}

// missing lists rules that name one table, and tags, which mean none that is known.
func (c *Connector) missing(s *schema, known map[catalog.Name]bool) []string {
	var none []string
	for tag, written := range s.tags {
		db, table, ok := strings.Cut(tag, ".")
		if !known[catalog.Name{DB: c.defaultDB, Table: tag}] && !(ok && known[catalog.Name{DB: db, Table: table}]) {
			none = append(none, written)
		}
	}
	for _, r := range c.cfg.Tables {
		name := c.fold(cmp.Or(r.Database, c.defaultDB), r.Table)
		if !r.Exclude && !strings.Contains(r.Database+r.Table, "*") && !known[name] {
			none = append(none, r.String())
		}
	}
	slices.Sort(none)
	return none
}

// A StoredProgram is the body of a trigger, a routine or an event, or the
// select of a view.
type StoredProgram struct {
	Database string // what bare names in it mean
	Body     string
	SQLMode  string // as of when it was made
}

// Writes lists the tables that the Config means and that INSERT, REPLACE or
// LOAD write in a stored program, db.table, without their keys being filled. A
// statement that the program puts together from pieces is not found.
func (i *Inspection) Writes(p StoredProgram) []string { return i.found(i.program(p).Targets()) }

// Reads lists the tables that the Config means and that a view's select names.
func (i *Inspection) Reads(p StoredProgram) []string {
	return i.found(i.c.effects(i.program(p)).Tables)
}

// Assigns reports whether a trigger sets a column of the row that is written.
func (i *Inspection) Assigns(p StoredProgram, column string) bool {
	return i.program(p).SetsKey(column)
}

func (i *Inspection) program(p StoredProgram) insert.Program {
	return i.c.program(p.Database, p.Body, p.SQLMode)
}

func (i *Inspection) found(names []insert.TableName) []string {
	var tables []string
	for _, n := range names {
		name := i.c.fold(n.DB, n.Table)
		if i.known[name] && !slices.Contains(tables, name.String()) {
			tables = append(tables, name.String())
		}
	}
	return tables
}
