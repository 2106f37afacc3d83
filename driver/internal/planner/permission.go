package planner

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/read"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A session whose account is not leafsql's own may have fewer privileges than leafsql. Before leafsql does anything for one
// of its statements that others can notice, such as drawing ids, the server has to show that the session may run the
// statement: it ran one of the same shape on this table within permittedFor, or it prepares this one now.

const (
	permittedFor = time.Minute
	maxPermitted = 256   // shapes of one account
	maxShape     = 4096  // bytes of a shape that is remembered
	maxAccounts  = 10000 // whose permissions are remembered
)

// Permissions are the shapes of statements that the server has let the sessions of one account run, each with the time until
// which that counts. They are safe for concurrent use.
type Permissions struct {
	mu    sync.Mutex
	until map[shape]time.Time
}

type shape struct {
	table catalog.Name
	text  string // as read.Shape returns it
}

// holds reports whether statements of the shape are permitted.
func (p *Permissions) holds(s shape) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until[s])
}

func (p *Permissions) grant(s shape) {
	if len(s.text) > maxShape {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil || len(p.until) >= maxPermitted {
		p.until = make(map[shape]time.Time)
	}
	p.until[s] = time.Now().Add(permittedFor)
}

func (p *Permissions) revoke(s shape) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, s)
}

// permissions returns those that the sessions of an account share.
func (s *Plans) permissions(account string) *Permissions {
	s.mu.Lock()
	defer s.mu.Unlock()
	p, ok := s.accounts[account]
	if !ok {
		if s.accounts == nil || len(s.accounts) >= maxAccounts {
			s.accounts = make(map[string]*Permissions)
		}
		p = new(Permissions)
		s.accounts[account] = p
	}
	return p
}

// Guard makes the server judge the statements of a session before leafsql acts on them. Sessions of one account share
// what the server has permitted; with an account of "" the session shares nothing.
func (p *Planner) Guard(account string) {
	p.Permitted = new(Permissions)
	if account != "" {
		p.Permitted = p.shared.permissions(account)
	}
}

// shape returns the shape of a statement that is filled or staged.
func (p *Planner) shape(st *Statement) shape {
	in := &st.Plan.Inserts[0]
	return shape{in.Table.Ref.(*tables.Table).Name, read.Shape(in, p.Settings)}
}

// Permit asks the server whether the session of a guarded planner may run a statement that is filled or staged, unless
// that is known. The error is the server's, or a refusal if the account lacks a privilege on the key column alone. Of a
// staged statement it is unproven then that its copy may write the key.
func (p *Planner) Permit(ctx context.Context, st *Statement, text string) (unproven bool, err error) {
	s := p.shape(st)
	if p.Permitted.holds(s) {
		return false, nil
	}
	in, staged := &st.Plan.Inserts[0], st.Way == Staged
	if !staged || !in.Staging.Load { // which MySQL cannot prepare
		err = p.TryPrepare(ctx, st.Likely(text))
	}
	if err == nil && in.Columns != nil {
		err = p.probe(ctx, in, !staged)
	}
	switch {
	case staged:
	case err == nil:
		p.Permitted.grant(s)
	case servererr.Denied(err):
		err = p.Denial(ctx, st, text, err)
	}
	return staged, err
}

// probe returns the error for an account that may not write the columns of a statement.
func (p *Planner) probe(ctx context.Context, in *insert.Insert, filled bool) error {
	err := p.TryPrepare(ctx, in.Probe(filled))
	if _, answered := errors.AsType[*mysql.MySQLError](err); answered && !servererr.Denied(err) {
		return nil // of the probe's own form
	}
	return err
}

// Denial returns the error for a statement that the server denied when it was prepared with its keys: the server's own, if the
// account may not run the client's text either.
func (p *Planner) Denial(ctx context.Context, st *Statement, text string, err error) error {
	in := &st.Plan.Inserts[0]
	own := p.TryPrepare(ctx, text)
	if own == nil && in.Columns != nil {
		own = p.probe(ctx, in, false)
	}
	if own != nil {
		return own
	}
	return in.KeyDenied(servererr.Message(err))
}

// Ran notes how a statement that is filled or staged ended.
func (p *Planner) Ran(st *Statement, err error) {
	switch {
	case err == nil:
		p.Permitted.grant(p.shape(st))
	case servererr.Denied(err):
		p.Permitted.revoke(p.shape(st))
	}
}

// judged returns the error for a statement that is refused: the server's own if it refuses the statement too, for a
// guarded session whatever its reason is, else if it cannot read it either.
func (p *Planner) judged(ctx context.Context, refusal *insert.Refusal, text string) error {
	if p.Permitted == nil && (!refusal.Unreadable || strings.Contains(text, ";")) {
		return refusal
	}
	one := cmp.Or(refusal.Text, text)
	err := p.TryPrepare(ctx, one)
	if servererr.Is(err, servererr.NotPreparable) && refusal.Table != "" {
		err = p.TryPrepare(ctx, emptyInsert(catalog.Name{DB: refusal.DB, Table: refusal.Table}))
	}
	switch parse := servererr.Is(err, servererr.Parse); {
	case err == nil, p.Permitted == nil && !parse:
		return refusal
	case parse && strings.Contains(one, ";"):
		return &insert.Refusal{Reason: "one of its statements cannot be filled, and the server cannot judge it within this text", Fix: "send the statements one by one"}
	}
	return err
}

// unseen returns the error for a statement into a table that the catalog does not show, and that is no temporary one of this
// session: the server's own, 1142 or 1146, or else the refusal for a table that leafsql's own account may not see.
func (p *Planner) unseen(ctx context.Context, text string, name catalog.Name) error {
	if strings.Contains(text, ";") {
		text = emptyInsert(name)
	}
	if err := p.TryPrepare(ctx, text); err != nil {
		return err
	}
	return &insert.Refusal{DB: name.DB, Table: name.Table, Passing: true,
		Reason: "leafsql's own account may not see the table", Fix: "GRANT SELECT, INSERT ON " + name.Quoted() + " to the account in leafsql's DSN"}
}

func emptyInsert(name catalog.Name) string { return "INSERT INTO " + name.Quoted() + " () VALUES ()" }
