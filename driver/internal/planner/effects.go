package planner

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/servererr"
)

// What texts do to the session and to tables, apart from writing rows: it is noted
// once they ran, and what is known no more is looked at again.

// After notes what a text did to the session and to the tables.
func (p *Planner) After(st *Statement, err error) {
	plan := st.Plan
	if plan.Role && p.Permitted != nil { // its roles may not be those of other sessions of its account
		p.Guard("")
	}
	if plan.Opaque {
		p.AfterOpaque()
	}
	if len(plan.Changes) > 0 && !nothingRan(plan, err) { // whose bare names are of the database before a USE in the text
		p.noteChanges(st, err != nil)
	}
	switch {
	case err != nil || plan.Opaque:
		p.DoubtDatabase(st)
	case plan.Use != "":
		p.Use(plan.Use)
	}
	if plan.Session {
		p.ForgetSettings()
	}
	if plan.Runs {
		p.DoubtTemporary()
	}
	if err != nil && servererr.Is(err, servererr.UnknownColumn, servererr.ColumnCount, servererr.NoSuchTable) {
		p.tables.Forget(func(name catalog.Name) bool {
			return slices.ContainsFunc(plan.Inserts, func(in insert.Insert) bool { return in.Table.Name == name })
		})
	}
}

// nothingRan reports whether the server denied the text, or could not read it, before it did anything. It may have run a part
// of a text of several statements, and of one whose statements are not all written in it.
func nothingRan(plan *insert.Plan, err error) bool {
	if plan.Results != 1 || plan.Opaque {
		return false
	}
	return servererr.Denied(err) || servererr.Is(err, servererr.SpecificAccessDenied, servererr.RoutineDenied, servererr.TriggerNeedsSuper,
		servererr.PasswordExpired, servererr.Parse, servererr.NoDatabase, servererr.UnknownDatabase, servererr.NoSuchTrigger, servererr.NoSavepoint,
		servererr.NotUniqueName, servererr.TableLocked, servererr.XAState, servererr.ReadOnly) ||
		len(plan.Changes) == 1 && servererr.Is(err, servererr.UnknownTable)
}

// DoubtDatabase notes that a text's USE may not have worked: the rest of the text
// failed, or the answers of its statements are still to be read.
func (p *Planner) DoubtDatabase(st *Statement) {
	if st.Plan.Use != "" {
		p.DBUnknown, p.last = true, nil
	}
}

// errUnread stands for what the answers may tell that are still to be read.
var errUnread = errors.New("leafsql: answers are still to be read")

// Unread is the error to be noted of a statement that answers with rows.
func (st *Statement) Unread(err error) error {
	if err == nil && st.Plan.Results > 1 {
		return errUnread
	}
	return err
}

// AfterOpaque notes that statements ran whose texts were not seen: in a routine, or
// prepared by SQL. They can change the database in use on MariaDB alone, since
// 10.6.2, where EXECUTE may run a USE.
func (p *Planner) AfterOpaque() {
	p.opaque = true
	if p.Permitted != nil { // its roles may have changed
		p.Guard("")
	}
	p.DBUnknown = p.DBUnknown || p.Settings.MariaDB && p.Settings.Version >= 100602
	p.verified, p.last = p.verified[:0], nil
	p.ForgetSettings()
	p.DoubtTemporary()
}

// noteChanges forgets what is known of tables that a text changes. A temporary
// table is this connection's alone.
func (p *Planner) noteChanges(st *Statement, failed bool) {
	ofOwn, like := false, catalog.Name{} // the text has named a temporary table, made LIKE that one
	for _, change := range st.Plan.Changes {
		if change.Program { // which any statement may run
			p.tables.Forget(func(catalog.Name) bool { return true })
			continue
		}
		anyDB := change.DB == "" && p.DBUnknown
		change.DB = cmp.Or(change.DB, st.db)
		if change.Like.Table != "" {
			change.Like.DB = cmp.Or(change.Like.DB, st.db)
		}
		name := p.nameOf(change.TableName)
		gone := name // perhaps, and with it rows that ids come from
		if anyDB {
			gone.DB = ""
		}
		ids.Gone(p.tables.Config.Server, gone.DB, gone.Table, change.Database && !failed)
		if t, own := p.temporary[name]; own {
			ofOwn, like = true, cmp.Or(like, t.like)
		}
		switch {
		case change.Database:
			p.tables.Forget(func(n catalog.Name) bool { return n.DB == name.DB })
		case change.Truncate:
		case p.changeTemporary(change, name, failed, ofOwn, like):
		default:
			p.tables.Forget(func(n catalog.Name) bool { return n == name || anyDB && n.Table == name.Table })
		}
	}
	if p.DBUnknown {
		p.DoubtTemporary()
	}
}

// verify looks again at the tables of a statement, after a routine ran that may have
// changed their columns, or made temporary tables of their names.
func (p *Planner) verify(ctx context.Context, text string, st *Statement) (*Statement, error) {
	for i := range st.Plan.Inserts {
		t := st.Plan.Inserts[i].Table
		name := t.Name
		if slices.Contains(p.verified, name) {
			continue
		}
		again, err := p.askTemporary(ctx, text, name)
		if err != nil {
			return nil, err
		}
		if !again && st.positional() {
			columns, err := p.VisibleColumns(ctx, text, name)
			if err != nil && !servererr.Is(err, servererr.TableDenied, servererr.ColumnDenied) {
				return nil, err
			}
			if again = err == nil && !slices.Equal(columns, t.Columns); again {
				p.tables.Forget(func(n catalog.Name) bool { return n == name })
				p.schema = p.tables.Schema.Load()
				p.replan()
			}
		}
		p.verified = append(p.verified, name)
		if again {
			if st, _, err = p.plan(ctx, text); err != nil {
				return nil, err
			}
			return p.verify(ctx, text, st)
		}
	}
	return st, nil
}
