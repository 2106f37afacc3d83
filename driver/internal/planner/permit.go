package planner

import (
	"cmp"
	"context"
	"errors"

	"github.com/go-sql-driver/mysql"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/servererr"
)

// ErrTemporary is the error of Permit if a temporary table hides the statement's table: the statement is to be planned again.
var ErrTemporary = errors.New("leafsql: a temporary table hides the table")

// Permit asks the server whether the session of a guarded planner may run a statement that is filled or staged, unless
// that is known. The error is ErrTemporary, the server's, or a refusal if the account lacks a privilege on the key column
// alone. Of a staged statement it is unproven then that its copy may write the key. The statement is executed for this many rows
// at once, or 1.
func (p *Planner) Permit(ctx context.Context, st *Statement, text string, rows int) (unproven bool, err error) {
	in, staged := &st.Plan.Inserts[0], st.Way == Staged
	if in.Diagnostics && !p.Settings.MariaDB {
		return false, p.judged(ctx, &insert.Refusal{Of: in.Table.Name, Reason: "it reads @@warning_count or @@error_count, which MySQL resets when leafsql asks whether this account may run it", Fix: "put the count into a user variable first"}, text)
	}
	s := p.shape(in)
	if in.Table.Keyless || p.Permitted.holds(s) {
		return false, nil
	}
	// The server judges the table that the session sees. A question would change the counts that some texts read, so that these are judged
	// without it if they have no other effect than one id.
	counts := session.MayReadCounts(text)
	if !counts || in.Lacking*rows != 1 || len(in.ArgKeys) > 0 || in.Floor > 0 {
		hidden, err := p.askTemporary(ctx, text, in.Table.Name)
		if refusal, ok := err.(*insert.Refusal); ok {
			err = p.judged(ctx, refusal, text)
		}
		if hidden || err != nil {
			return false, cmp.Or(err, ErrTemporary)
		}
	}
	switch {
	case p.DB != st.db: // its bare names mean other tables than when it was prepared
		if err = p.TryPrepare(ctx, in.Probe(true)); err != nil && !servererr.Denied(err) { // of the probe's own form, perhaps
			err = p.TryPrepare(ctx, emptyInsert(in.Table.Name))
		}
	case !staged || in.Staging.Source != insert.File: // which MySQL cannot prepare
		err = p.tryPrepare(ctx, st.Likely(text), in.Table.Name)
	}
	if err == nil && in.Columns != nil {
		err = p.probe(ctx, in, !staged)
	}
	switch {
	case staged:
	case err == nil && !counts:
		p.Permitted.grant(s)
	case servererr.Denied(err):
		err = p.Denial(ctx, st, text, err)
	}
	return staged, err
}

// probe returns the error for an account that may not write the columns of a statement.
func (p *Planner) probe(ctx context.Context, in *insert.Insert, filled bool) error {
	err := p.TryPrepare(ctx, in.Probe(filled))
	if _, answered := err.(*mysql.MySQLError); answered && !servererr.Denied(err) {
		return nil // of the probe's own form
	}
	return err
}

// Denial returns the error for a statement that the server denied when it was prepared with its keys: the server's own, if the
// account may not run the client's text either.
func (p *Planner) Denial(ctx context.Context, st *Statement, text string, err error) error {
	in := &st.Plan.Inserts[0]
	moved := p.DB != st.db
	var own error
	if !moved {
		own = p.TryPrepare(ctx, text)
	}
	if own == nil && (moved || in.Columns != nil) {
		own = p.probe(ctx, in, false)
	}
	return cmp.Or(own, in.KeyDenied(servererr.Message(err)))
}

// Ran notes how a statement that is filled or staged ended, and returns its error: the server's, if leafsql refuses a text that was not
// judged before and that the server denies. The copy of a staged one has shown what it may write.
func (p *Planner) Ran(ctx context.Context, st *Statement, text string, unproven bool, err error) error {
	_, answered := err.(*mysql.MySQLError) // not the answer to leafsql's own account
	refusal, refused := err.(*insert.Refusal)
	switch in := &st.Plan.Inserts[0]; {
	case answered && servererr.Denied(err):
		p.Permitted.revoke(p.shape(in))
	case refused && st.Way == Staged && !unproven:
		return p.judged(ctx, refusal, text)
	case err == nil && unproven:
		p.Permitted.grant(p.shape(in))
	}
	return err
}
