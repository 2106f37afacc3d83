package planner

import (
	"cmp"
	"context"
	"slices"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/servererr"
)

// This file records the effects of queries on the session and on tables, apart from the rows that they write. Effects
// are recorded after a query has run, and outdated facts are read again.

// RecordEffects records the effects of a statement on the session and on tables. err is the result of the
// statement. prepared is set for an execution of a prepared statement: MariaDB runs a prepared USE in the database that
// was in use at Prepare, and may switch back afterwards.
func (p *Planner) RecordEffects(st *Statement, prepared bool, err error) {
	plan := st.Plan
	if plan.SetsRole && p.Permitted != nil { // the session's roles may now differ from the roles of its account's other sessions
		p.Guard("")
	}
	if plan.Opaque {
		p.RecordOpaque()
	}
	if len(plan.Changes) > 0 && !ranNothing(plan, err) { // unqualified names are in the database from before a USE in the query
		p.discardChanged(st, err != nil)
	}
	if plan.Use != "" {
		if err == nil && !plan.Opaque {
			p.Use(plan.Use)
		}
		if err != nil || plan.Opaque || prepared { // the USE may not have run, or its result has not been read yet
			p.DBUnknown, p.last = true, nil
		}
	}
	if plan.SetsSession {
		p.ForgetSettings()
	}
	if plan.RunsPrograms {
		p.DoubtTemporary()
	}
	if err != nil && servererr.Is(err, servererr.UnknownColumn, servererr.ColumnCount, servererr.NoSuchTable) {
		p.tables.Forget(func(name catalog.Name) bool {
			return slices.ContainsFunc(plan.Inserts, func(in insert.Insert) bool { return in.Table.Name == name })
		})
	}
}

// ranNothing reports whether the server denied the query, or could not parse it, so that the query changed
// nothing. A query with several statements, or a query that runs statements of stored programs, may have run in part.
func ranNothing(plan *insert.Plan, err error) bool {
	if plan.Results != 1 || plan.Opaque {
		return false
	}
	return servererr.Denied(err) || servererr.Is(err, servererr.SpecificAccessDenied, servererr.RoutineDenied, servererr.TriggerNeedsSuper,
		servererr.PasswordExpired, servererr.Parse, servererr.NoDatabase, servererr.UnknownDatabase, servererr.NoSuchTrigger, servererr.NoSavepoint,
		servererr.NotUniqueName, servererr.TableLocked, servererr.XAState, servererr.ReadOnly) ||
		len(plan.Changes) == 1 && servererr.Is(err, servererr.UnknownTable)
}

// RecordOpaque records that statements ran which leafsql has not seen: in a routine, or prepared in SQL. Such statements
// can change the database in use only on MariaDB 10.6.2 and later, where EXECUTE may run a USE.
func (p *Planner) RecordOpaque() {
	p.opaqueRan = true
	if p.Permitted != nil { // the session's roles may have changed
		p.Guard("")
	}
	p.DBUnknown = p.DBUnknown || p.Settings.MariaDB && p.Settings.Version >= 100602
	p.verified, p.last = p.verified[:0], nil
	p.ForgetSettings()
	p.DoubtTemporary()
}

// discardChanged discards the facts about tables that a query changes. A change of a temporary table
// affects this connection only.
func (p *Planner) discardChanged(st *Statement, failed bool) {
	ofOwn, like := false, catalog.Name{} // ofOwn: the query has named a temporary table; like: the table that the temporary table was created LIKE
	for _, change := range st.Plan.Changes {
		if change.Program { // any statement may run the program
			p.tables.Forget(func(catalog.Name) bool { return true })
			continue
		}
		anyDB := change.DB == "" && p.DBUnknown
		change.DB = cmp.Or(change.DB, st.db)
		if change.Like.Table != "" {
			change.Like.DB = cmp.Or(change.Like.DB, st.db)
		}
		name := p.resolveName(change.TableName)
		gone := name // this table may have been dropped, and it may have contained the rows of counters
		if anyDB {
			gone.DB = ""
		}
		ids.NoteDropped(p.tables.Config.Server, gone.DB, gone.Table, change.Database && !failed)
		if t, own := p.temporary[name]; own {
			ofOwn, like = true, cmp.Or(like, t.like)
		}
		switch {
		case change.Database:
			p.tables.Forget(func(n catalog.Name) bool { return n.DB == name.DB })
		case change.Truncate:
		case p.recordTemporaryChange(change, name, failed, ofOwn, like):
		default:
			p.tables.Forget(func(n catalog.Name) bool { return n == name || anyDB && n.Table == name.Table })
		}
	}
	if p.DBUnknown {
		p.DoubtTemporary()
	}
}

// verifyTables reads the tables of a statement again after a routine that may have changed their columns,
// or created temporary tables with their names.
func (p *Planner) verifyTables(ctx context.Context, text string, st *Statement) (*Statement, error) {
	for i := range st.Plan.Inserts {
		t := st.Plan.Inserts[i].Table
		name := t.Name
		if slices.Contains(p.verified, name) {
			continue
		}
		again, err := p.queryTemporary(ctx, text, name)
		if err != nil {
			return nil, err
		}
		if !again && st.isPositional() {
			columns, err := p.VisibleColumns(ctx, text, name)
			if err != nil && !servererr.Is(err, servererr.TableDenied, servererr.ColumnDenied) {
				return nil, err
			}
			if again = err == nil && !slices.Equal(columns, t.Columns); again {
				p.tables.Forget(func(n catalog.Name) bool { return n == name })
				p.schema = p.tables.Schema.Load()
				p.selectPlans()
			}
		}
		p.verified = append(p.verified, name)
		if again {
			if st, _, err = p.plan(ctx, text); err != nil {
				return nil, err
			}
			return p.verifyTables(ctx, text, st)
		}
	}
	return st, nil
}
