package planner

import (
	"cmp"
	"context"
	"errors"
	"hash/maphash"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/read"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A session whose account is not leafsql's own may have fewer privileges than leafsql. Before leafsql does anything for one
// of its statements that others can notice, such as drawing ids, the server has to show that the session may run the
// statement: it prepares this one now, or it prepared one of the same shape on this table within permittedFor, for this
// session or for another one of its account.

const (
	permittedFor = time.Minute
	maxPermitted = 1 << 16 // shapes of all accounts
)

// Permissions are the shapes of statements that the server has permitted the sessions of guarded planners, each with the time
// until which that counts. They are safe for concurrent use.
type Permissions struct {
	mu       sync.Mutex
	until    map[shape]time.Time
	sessions uint64 // that share nothing
}

// A shape is the hash of an account, a table and what read.WriteShape writes.
type shape uint64

var shapeSeed = maphash.MakeSeed()

// holds reports whether statements of the shape are permitted.
func (p *Permissions) holds(s shape) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Now().Before(p.until[s])
}

// grant notes that the server permitted a shape.
func (p *Permissions) grant(s shape) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.until == nil {
		p.until = make(map[shape]time.Time)
	}
	for old := range p.until { // any one makes room: it is asked for again
		if len(p.until) < maxPermitted {
			break
		}
		delete(p.until, old)
	}
	p.until[s] = time.Now().Add(permittedFor)
}

// revoke notes that the server denied a shape.
func (p *Permissions) revoke(s shape) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.until, s)
}

// Guard makes the server judge the statements of a session before leafsql acts on them. Sessions of one account share
// what the server has permitted; with an account of "" the session shares nothing.
func (p *Planner) Guard(account string) {
	p.Permitted, p.account = &p.shared.permitted, account
	if p.Alone = account == ""; p.Alone {
		p.Permitted.mu.Lock()
		defer p.Permitted.mu.Unlock()
		p.Permitted.sessions++
		p.account = "\x00" + strconv.FormatUint(p.Permitted.sessions, 10) // no server has an account of this name
	}
}

// shape returns the shape of a statement that is filled or staged.
func (p *Planner) shape(in *insert.Insert) shape {
	var h maphash.Hash
	h.SetSeed(shapeSeed)
	for _, s := range []string{p.account, in.Table.DB, in.Table.Name} {
		h.WriteString(s)
		h.WriteByte(0)
	}
	read.WriteShape(&h, in, p.Settings)
	return shape(h.Sum64())
}

// ErrTemporary is the error of Permit if a temporary table hides the statement's table: the statement is to be planned again.
var ErrTemporary = errors.New("leafsql: a temporary table hides the table")

// Permit asks the server whether the session of a guarded planner may run a statement that is filled or staged, unless
// that is known. The error is ErrTemporary, the server's, or a refusal if the account lacks a privilege on the key column
// alone. Of a staged statement it is unproven then that its copy may write the key.
func (p *Planner) Permit(ctx context.Context, st *Statement, text string) (unproven bool, err error) {
	in, staged := &st.Plan.Inserts[0], st.Way == Staged
	s := p.shape(in)
	if p.Permitted.holds(s) {
		return false, nil
	}
	// The server judges the table that the session sees. A question would change the counts that some texts read.
	counts := session.MayReadCounts(text)
	if !counts {
		if hidden, _ := p.askTemporary(ctx, text, in.Table.Ref.(*tables.Table).Name); hidden {
			return false, ErrTemporary
		}
	}
	if !staged || !in.Staging.Load { // which MySQL cannot prepare
		err = p.tryPrepare(ctx, st.Likely(text), catalog.Name{DB: in.Table.DB, Table: in.Table.Name})
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

// tryPrepare is TryPrepare. A text that the server cannot prepare is judged by an INSERT of no columns into its table.
func (p *Planner) tryPrepare(ctx context.Context, text string, name catalog.Name) error {
	err := p.TryPrepare(ctx, text)
	if servererr.Is(err, servererr.NotPreparable) && name.Table != "" {
		err = p.TryPrepare(ctx, emptyInsert(name))
	}
	return err
}

func emptyInsert(name catalog.Name) string { return "INSERT INTO " + name.Quoted() + " () VALUES ()" }

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
	own := p.TryPrepare(ctx, text)
	if own == nil && in.Columns != nil {
		own = p.probe(ctx, in, false)
	}
	return cmp.Or(own, error(in.KeyDenied(servererr.Message(err))))
}

// Ran notes how a statement that is filled or staged ended. The copy of a staged one has shown what it may write.
func (p *Planner) Ran(st *Statement, text string, unproven bool, err error) {
	_, answered := err.(*mysql.MySQLError) // not the answer to leafsql's own account
	switch in := &st.Plan.Inserts[0]; {
	case answered && servererr.Denied(err):
		p.Permitted.revoke(p.shape(in))
	case err == nil && unproven && !session.MayReadCounts(text):
		p.Permitted.grant(p.shape(in))
	}
}

// judged returns the error for a statement that is refused: the server's own if it refuses the statement too, for a
// guarded session whatever its reason is, else if it cannot read it either.
func (p *Planner) judged(ctx context.Context, refusal *insert.Refusal, text string) error {
	if p.Permitted == nil && (!refusal.Unreadable || strings.Contains(text, ";")) {
		return refusal
	}
	one := cmp.Or(refusal.Text, text)
	err := p.tryPrepare(ctx, one, catalog.Name{DB: refusal.DB, Table: refusal.Table})
	switch parse := servererr.Is(err, servererr.Parse); {
	case err == nil, p.Permitted == nil && !parse, servererr.Is(err, servererr.NotPreparable):
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
	if err := p.tryPrepare(ctx, text, name); err != nil {
		return err
	}
	return &insert.Refusal{DB: name.DB, Table: name.Table, Passing: true,
		Reason: "leafsql's own account may not see the table", Fix: "GRANT SELECT, INSERT ON " + name.Quoted() + " to the account in leafsql's DSN"}
}
