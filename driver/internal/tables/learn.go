package tables

import (
	"cmp"
	"context"
	"strings"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/versions"
)

// Learn reads the server's properties and, under leafTables=auto, the tags. Every statement needs
// them, so Learn is called before the first connection is used. After it has succeeded once, it does
// nothing. Concurrent calls wait for the first one, at most until their ctx ends. database is the
// DSN's database. The error is ctx's, a *catalog.Failure or a *counters.ConfigError.
func (set *Set) Learn(ctx context.Context, conn pool.Conn, database string) error {
	if set.HasLearned() {
		return nil
	}
	if err := set.learning.Acquire(ctx, 1); err != nil {
		return err
	}
	defer set.learning.Release(1)
	if set.learned.Load() {
		return nil
	}
	if err := set.learnServer(ctx, conn, database); err != nil {
		return err
	}
	if set.Config.Auto {
		if err := set.learnTags(ctx); err != nil {
			return err
		}
	}
	set.warnMissing(ctx)
	go set.refreshPeriodically()
	set.learned.Store(true)
	return nil
}

// HasLearned reports whether Learn has succeeded or is not needed.
func (set *Set) HasLearned() bool { return set.IsEmpty() || set.learned.Load() }

// learnServer reads the server's version and whether table names ignore case.
func (set *Set) learnServer(ctx context.Context, conn pool.Conn, database string) error {
	// Vitess replaces @@version by its own version, but not VERSION() next to a variable.
	answer, err := session.QueryValue(ctx, conn, "CONCAT(@@lower_case_table_names, ' ', @@version)")
	if err != nil {
		return &catalog.Failure{What: "the server's version", Err: err}
	}
	folds, version, _ := strings.Cut(answer, " ")
	set.Server.Settings.MariaDB, set.Server.Settings.Version = session.ParseVersion(version)
	set.Server.Settings.TiDB, set.Server.Settings.Vitess = versions.TiDB(version), versions.Vitess(version)
	if _, has := versions.HasNullColumnsBug(set.Server.Settings.MariaDB, set.Server.Settings.Version); has {
		set.Catalog.DisableIdleConns()
	}
	if set.Catalog.FoldsCase = folds != "0"; set.Catalog.FoldsCase {
		for i := range set.rules {
			r := &set.rules[i]
			if r.Tag == "" && r.Table != "*" && r.Database+database != "" {
				r.Tag = r.Table // before Table is changed to lower case
			}
			r.Database, r.Table = strings.ToLower(r.Database), strings.ToLower(r.Table)
		}
	}
	set.DefaultDB = set.NormalizeName(database, "").DB
	return nil
}

// learnTags reads the tags, which name the tables of leafTables=auto.
func (set *Set) learnTags(ctx context.Context) error {
	tags, err := set.readTags(ctx)
	if set.Config.Create && servererr.Is(err, servererr.NoSuchTable) {
		if err := set.Store.Alloc.Create(ctx); err != nil {
			return set.AllocError(set.Store.Table, "creating it", err)
		}
		tags, err = set.readTags(ctx)
	}
	if err != nil {
		return set.AllocError(set.Store.Table, "reading its tags", err)
	}
	if len(tags) == 0 && set.Config.Create {
		set.Log().Warn("leafsql: no table is filled: leafTables=auto fills the tables that have a row in leaf_alloc, and leaf_alloc has no rows",
			"hint", "name the tables: leafTables=orders,items, or leafTables=* for all tables")
	}
	set.Schema.Store(set.newSchema(tags))
	return nil
}

// warnMissing logs the rules that name a single table which does not exist: if the name is
// misspelt, statements for the intended table run unchanged.
func (set *Set) warnMissing(ctx context.Context) {
	names := lo.FilterMap(set.rules, func(r rules.Rule, _ int) (catalog.Name, bool) {
		name := catalog.Name{DB: cmp.Or(r.Database, set.DefaultDB), Table: r.Table}
		return name, !r.Exclude && name.DB != "" && !strings.Contains(name.String(), "*")
	})
	found, err := set.Catalog.Tables(ctx, names)
	for _, name := range names {
		if err == nil && found[name] == nil {
			set.Log().Warn("leafsql: a rule of leafTables names a table that does not exist; INSERTs into it are filled once it exists",
				"table", name.String(), "hint", "check the name and its case")
		}
	}
}
