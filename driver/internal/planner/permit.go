package planner

import (
	"cmp"
	"context"
	"errors"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/servererr"
)

// ErrTemporary is returned by Permit if a temporary table hides the statement's table. The caller has to plan the
// statement again.
var ErrTemporary = errors.New("leafsql: a temporary table hides the table")

// Permit checks with the server whether the session of a guarded planner may run a filled or staged
// statement. It sends no query if the permission is cached. The error is ErrTemporary, the server's error,
// or a refusal if the account lacks a privilege only on the key column. unproven is set for a staged
// statement (INSERT … SELECT or LOAD DATA) if it is still uncertain whether the account may write the key. rows is the
// number of executions that run at once, at least 1.
func (p *Planner) Permit(ctx context.Context, st *Statement, text string, rows int) (unproven bool, err error) {
	in, staged := &st.Plan.Inserts[0], st.Way == Staged
	if in.Diagnostics && !p.Settings.MariaDB {
		return false, p.judgeRefusal(ctx, &insert.Refusal{Table: in.Table.Name, Reason: "it reads @@warning_count or @@error_count, which MySQL resets when leafsql checks this account's rights", Fix: "store the count in a user variable first"}, text)
	}
	until, _ := p.Permitted.Get(permission{p.account, st.shape})
	if in.Table.Keyless || time.Until(until) > 0 {
		return false, nil
	}
	// If a temporary table hides this table, the server would check the privileges of the temporary table, so Permit
	// first queries for such a table. The query changes the counts that some statements read: for such a statement,
	// the query is omitted if the statement only needs one id.
	counts := session.MayReadCounts(text)
	if !counts || in.RowsWithoutKey*rows != 1 || len(in.ArgKeys) > 0 || in.Floor > 0 {
		hidden, err := p.queryTemporary(ctx, text, in.Table.Name)
		if refusal, ok := err.(*insert.Refusal); ok {
			err = p.judgeRefusal(ctx, refusal, text)
		}
		if hidden || err != nil {
			return false, cmp.Or(err, ErrTemporary)
		}
	}
	switch {
	case p.DB != st.db: // unqualified names mean other tables than when it was prepared
		if err = p.TryPrepare(ctx, in.ProbeText(true)); err != nil && !servererr.Denied(err) { // the form of ProbeText may be the cause
			err = p.TryPrepare(ctx, emptyInsert(in.Table.Name))
		}
	case !staged || in.Staging.Source != insert.FromFile: // MySQL cannot prepare LOAD DATA
		err = p.tryPrepare(ctx, st.LikelyText(text), in.Table.Name)
	}
	if err == nil && in.Columns != nil {
		err = p.probe(ctx, in, !staged)
	}
	switch {
	case staged:
	case err == nil && !counts:
		p.setPermitted(st, time.Now().Add(permissionTime))
	case servererr.Denied(err):
		err = p.ExplainDenial(ctx, st, text, err)
	}
	return staged, err
}

// probe returns the server's error if the account may not write the columns of a statement.
func (p *Planner) probe(ctx context.Context, in *insert.Insert, filled bool) error {
	err := p.TryPrepare(ctx, in.ProbeText(filled))
	if _, answered := err.(*mysql.MySQLError); answered && !servererr.Denied(err) {
		return nil // the form of ProbeText is the cause
	}
	return err
}

// ExplainDenial returns the error for a statement that the server denied when it was prepared with its keys. If the
// server also denies the client's query, it is the server's error, otherwise an *insert.Refusal.
func (p *Planner) ExplainDenial(ctx context.Context, st *Statement, text string, err error) error {
	in := &st.Plan.Inserts[0]
	moved := p.DB != st.db
	var own error
	if !moved {
		own = p.TryPrepare(ctx, text)
	}
	if own == nil && (moved || in.Columns != nil) {
		own = p.probe(ctx, in, false)
	}
	return cmp.Or(own, in.RefuseKey(servererr.Message(err)))
}

// JudgeResult records the result of a filled or staged statement and returns its error. If leafsql refused a
// staged statement that the server has not checked yet, JudgeResult prepares it, and returns the server's error
// if the server also refuses it. If unproven is set, success has shown that the account may write the key.
func (p *Planner) JudgeResult(ctx context.Context, st *Statement, text string, unproven bool, err error) error {
	_, answered := err.(*mysql.MySQLError) // false for an error from a connection of leafsql's account
	refusal, refused := err.(*insert.Refusal)
	switch {
	case answered && servererr.Denied(err):
		p.setPermitted(st, time.Time{})
	case refused && st.Way == Staged && !unproven:
		return p.judgeRefusal(ctx, refusal, text)
	case err == nil && unproven:
		p.setPermitted(st, time.Now().Add(permissionTime))
	}
	return err
}

// setPermitted records until when the server permits statements of this shape to the account.
func (p *Planner) setPermitted(st *Statement, until time.Time) {
	p.Permitted.Put(permission{p.account, st.shape}, until, len(p.account))
}
