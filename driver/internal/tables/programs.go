package tables

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/read"
)

// What stored programs do that a statement runs without showing it. Each is read by its
// name, and only where a text or a trigger leads to it.

// Programs are the effects of stored functions that a statement calls, and of those that
// views call which it names; db is what bare names mean. A view reads tables as the
// statement itself would.
func (set *Set) Programs(ctx context.Context, db string, routines, views []insert.TableName) (insert.Effects, error) {
	ctx, cancel := context.WithTimeout(ctx, catalog.Timeout)
	defer cancel()
	var all insert.Effects
	all.Add(insert.Effects{Calls: routines, Tables: views})
	set.resolve(&all, db)
	had := make(map[catalog.Name]bool)
	for names := unseen(all.Tables, had); len(names) > 0; names = unseen(all.Tables, had) {
		if err := set.addViews(ctx, names, &all); err != nil {
			return all, err
		}
	}
	all.Tables = nil
	err := set.follow(ctx, &all)
	return all, err
}

// follow adds to the effects of a stored program those of the routines that it calls,
// of views that it reads, of the triggers of tables that it may write, and of what
// these lead to. A routine whose text this user may not see is Hidden.
func (set *Set) follow(ctx context.Context, all *insert.Effects) error {
	hadCalls, hadTables := make(map[catalog.Name]bool), make(map[catalog.Name]bool)
	var written []catalog.Name // perhaps, once something is
	for {
		calls, tables := unseen(all.Calls, hadCalls), unseen(all.Tables, hadTables)
		if len(calls)+len(tables) == 0 {
			return nil
		}
		for _, name := range calls {
			programs, err := set.Catalog.Routines(ctx, name, set.Settings.MariaDB)
			if err != nil {
				return &catalog.Failure{What: "the stored routine " + name.String(), Err: err}
			}
			for _, p := range programs {
				program := set.program(name.DB, p.Text, p.SQLMode)
				program.Header = true
				all.Add(set.effects(program))
				all.Hidden = all.Hidden || p.Text == ""
			}
		}
		if err := set.addViews(ctx, tables, all); err != nil {
			return err
		}
		if written = append(written, tables...); !all.Writes {
			continue
		}
		seen, err := set.Catalog.Tables(ctx, written)
		if err != nil {
			return &catalog.Failure{What: "the triggers that a statement runs", Err: err}
		}
		for _, name := range written {
			if t := seen[name]; t != nil {
				for _, tr := range t.Triggers {
					all.Add(set.effects(set.program(name.DB, tr.Text, tr.SQLMode)))
				}
			}
		}
		written = nil
	}
}

// addViews adds the effects of those of some tables that are views.
func (set *Set) addViews(ctx context.Context, names []catalog.Name, all *insert.Effects) error {
	byDB := make(map[string][]string)
	for _, n := range names {
		byDB[n.DB] = append(byDB[n.DB], n.Table)
	}
	for _, db := range slices.Sorted(maps.Keys(byDB)) {
		views, err := set.Catalog.Views(ctx, db, byDB[db])
		if err != nil {
			return &catalog.Failure{What: "the views that a statement names", Err: err}
		}
		for _, v := range views {
			all.Add(set.effects(set.program(db, v.Text, "")))
		}
	}
	return nil
}

// unseen are the names that were not looked at; from now on they are.
func unseen(names []insert.TableName, had map[catalog.Name]bool) []catalog.Name {
	return lo.FilterMap(names, func(n insert.TableName, _ int) (catalog.Name, bool) {
		name := catalog.Name(n)
		isNew := name.DB != "" && !had[name]
		had[name] = true
		return name, isNew
	})
}

// effects are those of a stored program, whose bare names are of its database.
func (set *Set) effects(p read.Program) insert.Effects {
	e := p.Effects()
	set.resolve(&e, p.DB)
	return e
}

// resolve gives bare names a database. On MariaDB what stands before the dot of a call
// may be a package.
func (set *Set) resolve(e *insert.Effects, db string) {
	for i, call := range e.Calls {
		if e.Calls[i].DB = cmp.Or(call.DB, db); call.DB != "" && set.Settings.MariaDB {
			e.Calls = append(e.Calls, insert.TableName{DB: db, Table: call.DB})
		}
	}
	for i, t := range e.Tables {
		e.Tables[i].DB = cmp.Or(t.DB, db)
	}
}

// program is the text of a stored program as it was made.
func (set *Set) program(db, text, mode string) read.Program {
	settings := set.Settings
	settings.SetSession(mode, "utf8mb4")
	return read.Program{Text: text, Settings: settings, DB: db}
}
