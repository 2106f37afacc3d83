package staged

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync/atomic"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A Server has the data that all connections to one server share. It reads the effects of stored programs that a
// statement runs indirectly. A program is looked up by name, and only if a query or a trigger calls it, directly or
// indirectly. A Server is safe for concurrent use after its fields are set.
type Server struct {
	Catalog  *catalog.Catalog
	Settings insert.Settings // the server's version

	lastReplaced atomic.Int64 // time at which a run last closed a connection because it lacked a right, in Unix nanoseconds
}

// CallEffects returns the effects of the stored functions that a statement calls, and of the functions that
// its views call. db is the database of unqualified names. The tables of views are left out,
// because reading them has no effects of its own. An error of a look-up is a *catalog.Failure.
func (s *Server) CallEffects(ctx context.Context, db string, calls, views []insert.TableName) (all insert.Effects, err error) {
	ctx, cancel := context.WithTimeout(ctx, catalog.Timeout)
	defer cancel()
	all.Add(insert.Effects{Calls: calls, Tables: views})
	s.qualifyNames(&all, db)
	seen := make(map[catalog.Name]bool)
	for names := newNames(all.Tables, seen); len(names) > 0; names = newNames(all.Tables, seen) {
		if err := s.addViews(ctx, names, &all); err != nil {
			return all, err
		}
	}
	all.Tables = nil
	return all, s.addCalled(ctx, &all)
}

// TriggerEffects returns the effects of a trigger of a table in the database db, and of the programs that it
// runs, directly or indirectly. An error of a look-up is a *catalog.Failure.
func (s *Server) TriggerEffects(ctx context.Context, db string, t catalog.Trigger) (insert.Effects, error) {
	e := s.TextEffects(db, s.Settings.WithSQLMode(t.SQLMode).Scanner(t.Text))
	sets := e.SetColumns
	err := s.addCalled(ctx, &e)
	if e.SetColumns = sets; !t.Before { // an AFTER trigger cannot set columns
		e.SetColumns = nil
	}
	return e, err
}

// TextEffects returns the effects of the text of a stored program, without the effects of the programs that
// it calls. db is the program's database.
func (s *Server) TextEffects(db string, text lex.Scanner) insert.Effects {
	e := findEffects(text)
	s.qualifyNames(&e, db)
	return e
}

// addCalled adds to all the effects of everything that a stored program runs: the routines that it calls, the
// views that it reads, and the triggers of tables that it may write. It repeats this for each of these programs. The effects include
// insert.Hidden if this user may not see the text of a routine.
func (s *Server) addCalled(ctx context.Context, all *insert.Effects) error {
	hadCalls, hadTables := make(map[catalog.Name]bool), make(map[catalog.Name]bool)
	var written []catalog.Name // tables that may be written if all.Kinds has insert.Writes
	for {
		calls, tables := newNames(all.Calls, hadCalls), newNames(all.Tables, hadTables)
		if len(calls)+len(tables) == 0 {
			return nil
		}
		for _, name := range calls {
			routines, err := s.Catalog.Routines(ctx, name, s.Settings.MariaDB)
			if err != nil {
				return &catalog.Failure{What: "the stored routine " + name.String(), Err: err}
			}
			for _, r := range routines {
				text := s.Settings.WithSQLMode(r.SQLMode).Scanner(r.Text)
				skipHeader(&text)
				all.Add(s.TextEffects(name.DB, text))
				if r.Text == "" {
					all.Kinds |= insert.Hidden
				}
			}
		}
		if err := s.addViews(ctx, tables, all); err != nil {
			return err
		}
		if written = append(written, tables...); !all.Kinds.HasAny(insert.Writes) {
			continue
		}
		seen, err := s.Catalog.Tables(ctx, written)
		if err != nil {
			return &catalog.Failure{What: "the triggers that a statement runs", Err: err}
		}
		for _, name := range written {
			if t := seen[name]; t != nil {
				for _, tr := range t.Triggers {
					all.Add(s.TextEffects(name.DB, s.Settings.WithSQLMode(tr.SQLMode).Scanner(tr.Text)))
				}
			}
		}
		written = nil
	}
}

// addViews adds the effects of the views among names.
func (s *Server) addViews(ctx context.Context, names []catalog.Name, all *insert.Effects) error {
	byDB := make(map[string][]string)
	for _, n := range names {
		byDB[n.DB] = append(byDB[n.DB], n.Table)
	}
	for _, db := range slices.Sorted(maps.Keys(byDB)) {
		views, err := s.Catalog.Views(ctx, db, byDB[db])
		if err != nil {
			return &catalog.Failure{What: "the views that a statement names", Err: err}
		}
		for _, text := range views {
			all.Add(s.TextEffects(db, s.Settings.WithSQLMode("").Scanner(text)))
		}
	}
	return nil
}

// newNames returns the names that have a database and are not in seen. It adds all names to seen.
func newNames(names []insert.TableName, seen map[catalog.Name]bool) []catalog.Name {
	return lo.FilterMap(names, func(n insert.TableName, _ int) (catalog.Name, bool) {
		isNew := n.DB != "" && !seen[n]
		seen[n] = true
		return n, isNew
	})
}

// qualifyNames sets the database of unqualified names. On MariaDB the name in front of the dot of a call may
// be a package.
func (s *Server) qualifyNames(e *insert.Effects, db string) {
	for i, call := range e.Calls {
		if e.Calls[i].DB = cmp.Or(call.DB, db); call.DB != "" && s.Settings.MariaDB {
			e.Calls = append(e.Calls, insert.TableName{DB: db, Table: call.DB})
		}
	}
	for i, t := range e.Tables {
		e.Tables[i].DB = cmp.Or(t.DB, db)
	}
}
