package driver

import (
	"cmp"
	"context"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// What stored programs do that a statement runs without showing it. Each is read by its
// name, and only where a text or a trigger leads to it.

// programs are the effects of stored functions that a statement calls, and of those that
// views call which it names; db is what bare names mean. A view reads tables as the
// statement itself would.
func (c *Connector) programs(ctx context.Context, db string, routines, views []insert.TableName) (insert.Effects, error) {
	ctx, cancel := context.WithTimeout(ctx, lookupTimeout)
	defer cancel()
	var all insert.Effects
	all.Add(insert.Effects{Calls: routines, Tables: views})
	had := make(map[catalog.Name]bool)
	for names := unseen(all.Tables, db, had); len(names) > 0; names = unseen(all.Tables, db, had) {
		if err := c.addViews(ctx, names, &all); err != nil {
			return all, err
		}
	}
	all.Tables = nil
	err := c.follow(ctx, db, &all)
	return all, err
}

// follow adds to the effects of a stored program those of the routines that it calls,
// of views that it reads, of the triggers of tables that it may write, and of what
// these lead to. A routine whose text this user may not see is Hidden.
func (c *Connector) follow(ctx context.Context, db string, all *insert.Effects) error {
	hadCalls, hadTables := make(map[catalog.Name]bool), make(map[catalog.Name]bool)
	var written []catalog.Name // perhaps, once something is
	for {
		for _, call := range all.Calls {
			if call.DB != "" && c.settings.MariaDB { // of a package, perhaps
				all.Calls = append(all.Calls, insert.TableName{Table: call.DB})
			}
		}
		calls, tables := unseen(all.Calls, db, hadCalls), unseen(all.Tables, db, hadTables)
		if len(calls)+len(tables) == 0 {
			return nil
		}
		for _, name := range calls {
			programs, err := c.catalog.Routines(ctx, name, c.settings.MariaDB)
			if err != nil {
				return catalogError("the stored routine "+name.String(), err)
			}
			for _, p := range programs {
				program := c.program(name.DB, p.Text, p.SQLMode)
				program.Header = true
				all.Add(program.Effects())
				all.Hidden = all.Hidden || p.Text == ""
			}
		}
		if err := c.addViews(ctx, tables, all); err != nil {
			return err
		}
		if written = append(written, tables...); !all.Writes {
			continue
		}
		seen, err := c.catalog.Tables(ctx, written)
		if err != nil {
			return catalogError("the triggers that a statement runs", err)
		}
		for name, t := range seen {
			for _, tr := range t.Triggers {
				all.Add(c.program(name.DB, tr.Text, tr.SQLMode).Effects())
			}
		}
		written = nil
	}
}

// addViews adds the effects of those of some tables that are views.
func (c *Connector) addViews(ctx context.Context, names []catalog.Name, all *insert.Effects) error {
	byDB := make(map[string][]string)
	for _, n := range names {
		byDB[n.DB] = append(byDB[n.DB], n.Table)
	}
	for db, tables := range byDB {
		views, err := c.catalog.Views(ctx, db, tables)
		if err != nil {
			return catalogError("the views that a statement names", err)
		}
		for _, v := range views {
			all.Add(c.program(db, v.Text, "").Effects())
		}
	}
	return nil
}

// unseen are the names that were not looked at; from now on they are.
func unseen(names []insert.TableName, db string, had map[catalog.Name]bool) (list []catalog.Name) {
	for _, n := range names {
		if name := (catalog.Name{DB: cmp.Or(n.DB, db), Table: n.Table}); name.DB != "" && !had[name] {
			had[name] = true
			list = append(list, name)
		}
	}
	return list
}

// program is the text of a stored program as it was made.
func (c *Connector) program(db, text, mode string) insert.Program {
	settings := c.settings
	settings.SetSession(mode, "utf8mb4")
	return insert.Program{Text: text, Settings: settings, DB: db}
}
