// Package planner decides how a query is run on a connection: unchanged, filled (with keys in the query), staged
// (through a temporary table), or in parts. It also records the effects of each query on the session, on which the plans of
// later queries depend.
//
//	p := planner.New(session, set, plans)
//	st, err := p.Statement(ctx, text) // st.Way: how to run it; st.Plan: the keys that its rows need
//	…                                 // it runs
//	p.RecordEffects(st, false, err)   // if st.Effects is set, or the statement failed
//
// If something other than a statement changed the session, such as a command of MySQL's protocol, the
// caller has to call Use, ForgetSettings, DoubtTemporary or RecordOpaque.
//
// The package does not reserve ids or run statements of the application. It reads the session's settings if
// the meaning of a query depends on them.
package planner

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/read"
	"github.com/leafsql/leafsql/driver/internal/plancache"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Planner belongs to one connection. Like the connection, it is not safe for concurrent use.
type Planner struct {
	session.Session
	tables *tables.Set

	shared          *Plans
	schema          *tables.Schema
	plans           *plancache.Cache[string, *Statement] // plans for schema and the known state of the session
	plannedRevision int                                  // the session's Revision when plans was chosen

	temporary map[catalog.Name]temporaryTable // plans that depend on a temporary table are not shared

	// opaqueRan is set after a routine or a dynamic statement ran, which may have created temporary tables
	// or changed other tables. verified are the tables that were read again after that.
	opaqueRan bool
	verified  []catalog.Name

	// Permitted are the statements that the server has permitted, or nil if the session has leafsql's
	// account. The permissions of account apply. If Unshared is set, no other session has the same account.
	Permitted *plancache.Cache[permission, time.Time]
	Unshared  bool
	account   string

	parsing *parsing // nil until the first query is parsed

	// The last query and its statement are cached, because most connections run one query many times.
	lastText string
	last     *Statement
}

// New returns the planner of a connection. All connections of set have to pass the same plans.
func New(s session.Session, set *tables.Set, shared *Plans) Planner {
	return Planner{Session: s, tables: set, shared: shared}
}

// maxRemembered, in bytes, prevents a connection from keeping a large query in memory.
const maxRemembered = 4096

// Statement returns the plan of a query. The error may be an *insert.Refusal, a *catalog.Failure of a
// look-up, or an error of the connection.
func (p *Planner) Statement(ctx context.Context, text string) (*Statement, error) {
	if p.last != nil && text == p.lastText && p.plannedRevision == p.Revision && p.schema == p.tables.Schema.Load() {
		return p.last, nil
	}
	if p.tables.IsEmpty() {
		return passThrough, nil
	}
	if s := p.tables.Schema.Load(); s != p.schema {
		p.schema = s
		p.selectPlans()
	}
	st, kept, err := p.plan(ctx, text)
	if err == nil && p.DBUnknown && slices.ContainsFunc(st.Plan.Changes, func(ch insert.Change) bool { return ch.DB == "" && !ch.Program }) {
		err = p.LoadDatabase(ctx, text) // it decides which tables the query changes
		st.db = p.DB                    // the database in use was unknown, so this plan is not shared
	}
	if err == nil && p.opaqueRan && len(st.Plan.Inserts) > 0 && (st.isPositional() || p.Permitted != nil || !session.MayReadCounts(text)) {
		planned := st
		st, err = p.verifyTables(ctx, text, st)
		kept = kept && st == planned
	}
	if err == nil && st.refusal != nil {
		err = st.refusal
	}
	if refusal, ok := err.(*insert.Refusal); ok {
		err = p.judgeRefusal(ctx, refusal, text)
	}
	if err != nil {
		return nil, err
	}
	if kept && len(text) <= maxRemembered {
		p.lastText, p.last = text, st
	}
	return st, nil
}

// plan returns the cached plan of a query, or makes one. If the meaning of the query depends on the
// session's settings, these are read, and cached until a query may change them. kept reports whether
// the plan can be used next time without a look-up.
func (p *Planner) plan(ctx context.Context, text string) (st *Statement, kept bool, err error) {
	for {
		p.followSession()
		plans, ok := p.plans, false
		fits := plans.Fits(len(text)) // otherwise hashing the query would be useless
		if fits {
			st, ok = plans.Get(text)
		}
		if !ok || p.DBUnknown || !st.expires.IsZero() && time.Now().After(st.expires) {
			unknown := p.DBUnknown
			if st, err = p.parse(ctx, text); err != nil {
				return nil, false, err
			}
			// If p.plans has changed, a look-up changed the state of the session on which the plan depends. If a
			// plan needs the settings, the query is planned again below, which is no repetition.
			if p.followSession(); p.plans == plans && !unknown && fits && (ok || !st.needsSettings && p.shared.recent.isRepeated(text)) {
				plans.Put(text, st, len(text)+st.Plan.MemorySize())
			}
		}
		if !st.needsSettings {
			return st, st.expires.IsZero() && !p.DBUnknown, nil
		}
		if err = p.LoadSettings(ctx, text); err != nil {
			return nil, false, err
		}
	}
}

// selectPlans selects the plans for the schema, the database in use and the known state of the session. A
// connection does not share its plans while it has a temporary table with the name of a configured table, or
// a temporary table that was created LIKE a configured table.
func (p *Planner) selectPlans() {
	p.last, p.plannedRevision = nil, p.Revision
	p.plans = p.shared.cacheOf(p.tables, lo.Ternary(p.needsPrivatePlans(), nil, p.schema), planKey{db: p.DB, settings: p.Settings, guarded: p.Permitted != nil})
}

// followSession calls selectPlans if the known state of the session has changed.
func (p *Planner) followSession() {
	if p.plannedRevision != p.Revision {
		p.selectPlans()
	}
}

// Replan returns the statement for a second attempt, or nil if no attempt is possible. It is possible if
// another session changed a table after leafsql read it: the server then reports a missing column or a wrong
// number of values before it writes a row.
func (p *Planner) Replan(ctx context.Context, st *Statement, text string, err error) *Statement {
	if err == nil || !servererr.Is(err, servererr.UnknownColumn, servererr.ColumnCount) || !st.isPositional() {
		return nil
	}
	again, err := p.Statement(ctx, text)
	sameColumns := func(a, b insert.Insert) bool { return slices.Equal(a.Table.Columns, b.Table.Columns) }
	if err != nil || len(again.Plan.Inserts) != len(st.Plan.Inserts) || slices.EqualFunc(again.Plan.Inserts, st.Plan.Inserts, sameColumns) {
		return nil
	}
	return again
}

// A parsing is the state while a query is parsed once. A planner reuses its parsing.
type parsing struct {
	staged.Judge
	p      *Planner
	schema read.Schema
	ctx    context.Context
	text   string

	mayFill catalog.Name // as in Statement
}

// table returns the configured table that a name refers to, or nil.
func (r *parsing) table(db, name string) (*insert.Table, error) {
	t, err := r.p.lookup(r.ctx, r.text, db, name)
	if n := r.p.resolveName(insert.TableName{DB: db, Table: name}); t == nil && r.p.schema.IsConfigured(n) {
		r.mayFill = n
	}
	return t, err
}

// programEffects returns the effects of stored programs.
func (r *parsing) programEffects(db string, calls, views []insert.TableName) (insert.Effects, error) {
	if db == "" {
		if err := r.p.LoadDatabase(r.ctx, r.text); err != nil {
			return insert.Effects{}, err
		}
		db = r.p.DB
	}
	return r.p.tables.Server.CallEffects(r.ctx, db, calls, views)
}

// parse makes the plan of a query. Errors come from look-ups of tables, and are not cached. A refusal
// may depend on stored programs, so it is cached only for some time.
func (p *Planner) parse(ctx context.Context, text string) (*Statement, error) {
	r := p.parsing
	if r == nil {
		r = &parsing{p: p}
		r.ProgramEffects, r.schema.Table, r.schema.Stager = r.programEffects, r.table, r
		p.parsing = r
	}
	r.Settings, r.UsedPrograms, r.ctx, r.text, r.schema.Temporary, r.mayFill = p.Settings, false, ctx, text, nil, catalog.Name{}
	if len(p.temporary) > 0 {
		r.schema.Temporary = p.knowsTemporary
	}
	plan, unknown, err := read.Parse(text, p.Settings, r.schema)
	r.ctx, r.text = nil, ""
	refusal, refused := errors.AsType[*insert.Refusal](err)
	switch {
	case refused && !refusal.Transient:
		return &Statement{Plan: new(insert.Plan), expires: time.Now().Add(tables.RefreshInterval), refusal: refusal}, nil
	case err != nil:
		return nil, err
	case unknown:
		return &Statement{Plan: new(insert.Plan), needsSettings: true}, nil
	}
	st := newStatement(plan)
	st.mayFill, st.db = r.mayFill, p.DB
	if p.Permitted != nil && len(plan.Inserts) > 0 {
		st.shape = shapeOf(&plan.Inserts[0], p.Settings)
	}
	if r.UsedPrograms && plan.Cut == 0 {
		st.expires = time.Now().Add(tables.RefreshInterval)
	}
	return st, nil
}

// lookup returns the configured table that a name in a query refers to on this connection, or nil.
func (p *Planner) lookup(ctx context.Context, text, db, table string) (*insert.Table, error) {
	if !utf8.ValidString(db) || !utf8.ValidString(table) {
		return nil, &insert.Refusal{Table: insert.TableName{Table: strings.ToValidUTF8(table, "?")}, Reason: "its name is not in UTF-8, so leafsql cannot find out whether it is configured",
			Fix: "connect with charset=utf8mb4", Transient: true}
	}
	if db == "" {
		if p.DBUnknown && !p.schema.MayBeConfigured(table) {
			return nil, nil
		}
		if err := p.LoadDatabase(ctx, text); err != nil {
			return nil, err
		}
		if db = p.DB; db == "" {
			return nil, nil // the server returns error 1046
		}
	}
	name := p.tables.NormalizeName(db, table)
	if own, like, err := p.isTemporary(ctx, text, name); own || err != nil {
		return like, err
	}
	t, err := p.schema.Lookup(ctx, name)
	if err != tables.ErrNotInCatalog {
		return t, err
	}
	own, err := p.queryTemporary(ctx, text, name)
	switch {
	case servererr.Is(err, servererr.NoSuchTable) && p.Permitted != nil:
		return nil, p.unseenTableError(ctx, text, name)
	case own, err != nil: // the server's error, 1146
		return nil, err
	}
	if t, err = p.schema.Lookup(ctx, name); err == tables.ErrNotInCatalog { // no error if another session has just created the table
		err = p.unseenTableError(ctx, text, name)
	}
	return t, err
}
