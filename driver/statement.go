package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A statement is what a text comes to: a plan, or why it is refused.
type statement struct {
	way     way
	plan    *insert.Plan
	effects bool // on the session or on tables, to be noted when it ran
	unknown bool // no plan: the session's settings decide
	refusal error

	unreadable bool // it is refused because it cannot be read
	mayFill    bool // it writes a table that a rule means and that has nothing to fill now, such as a temporary one

	expires  time.Time   // when it is to be planned anew; zero: it holds as long as the schema
	accepted atomic.Bool // the copy of a staged statement ran, so that the server finds the names in it
}

// A way is how a statement is executed.
type way uint8

const (
	passedThrough way = iota // to the inner driver as it is
	filled                   // with keys in its text or among its arguments
	staged                   // through a temporary table
	inParts                  // as two texts
)

func newStatement(p *insert.Plan) *statement {
	st := &statement{plan: p, way: filled, effects: p.HasEffects()}
	if p.Expires {
		st.expires = time.Now().Add(refreshEvery)
	}
	switch {
	case p.Cut > 0:
		st.way = inParts
	case len(p.Inserts) == 0:
		st.way = passedThrough
	case p.Inserts[0].Staging != nil:
		st.way = staged
	}
	return st
}

// passThrough is every text's statement where nothing is configured.
var passThrough = newStatement(new(insert.Plan))

// positional says whether some insert relies on the columns that the catalog told:
// it lists none, or its rows go through a stage.
func (st *statement) positional() bool {
	return st.way == staged || slices.ContainsFunc(st.plan.Inserts, func(in insert.Insert) bool { return in.Positional })
}

// expired says whether the statement is to be planned anew.
func (st *statement) expired() bool { return !st.expires.IsZero() && time.Now().After(st.expires) }

// maxMemo keeps a connection from holding on to a large text.
const maxMemo = 4096

// statement finds what a text comes to.
func (c *conn) statement(ctx context.Context, text string) (*statement, error) {
	if c.last != nil && text == c.lastText && c.planned == c.Changes && c.schema == c.connector.schema.Load() {
		return c.last, nil
	}
	if c.connector.idle {
		return passThrough, nil
	}
	if s := c.connector.schema.Load(); s != c.schema {
		c.schema = s
		c.replan()
	}
	st, kept, err := c.plan(ctx, text)
	if err == nil && c.DBUnknown && slices.ContainsFunc(st.plan.Changes, func(ch insert.Change) bool { return ch.DB == "" && !ch.Program }) {
		err = c.KnowDatabase(ctx, text) // to know whose tables it changes
	}
	if err == nil && c.opaque && len(st.plan.Inserts) > 0 && (st.positional() || !session.MayReadCounts(text)) {
		planned := st
		st, err = c.verify(ctx, text, st)
		kept = kept && st == planned
	}
	if err == nil && st.refusal != nil {
		err = c.serverRefuses(ctx, st, text)
	}
	if err != nil {
		return nil, c.connector.counts.note(err)
	}
	if kept && len(text) <= maxMemo {
		c.lastText, c.last = text, st
	}
	return st, nil
}

// plan plans a text, or finds the plan made before. Where the session decides what the
// text means it is asked, and the answer kept until a text may change it. kept says
// whether the plan will do the next time without a question.
func (c *conn) plan(ctx context.Context, text string) (st *statement, kept bool, err error) {
	for {
		c.follow()
		plans := c.plans
		st, ok := plans.Get(text)
		if !ok || c.DBUnknown || st.expired() {
			unknown := c.DBUnknown
			if st, err = c.parse(ctx, text); err != nil {
				return nil, false, err
			}
			if c.follow(); c.plans == plans && !unknown { // else a look-up changed what plans are kept under
				plans.Put(text, st)
			}
		}
		if !st.unknown {
			return st, st.expires.IsZero() && !c.DBUnknown, nil
		}
		if err = c.KnowSettings(ctx, text); err != nil {
			return nil, false, err
		}
	}
}

// serverRefuses is the error for a refused statement: the server's own where that cannot
// read it either.
func (c *conn) serverRefuses(ctx context.Context, st *statement, text string) error {
	if st.unreadable && !strings.Contains(text, ";") {
		if err := c.tryPrepare(ctx, text); servererr.Is(err, servererr.Parse) {
			return err
		}
	}
	return st.refusal
}

// replan takes the plans that fit the schema, the database in use and what is known of
// the session. A connection with temporary tables keeps its own for itself.
func (c *conn) replan() {
	c.last, c.planned = nil, c.Changes
	if c.ownPlans() {
		c.plans = plancache.New[*statement](maxOwnPlans, planBytes/planCaches)
		return
	}
	c.plans = c.schema.cache(planKey{db: c.DB, settings: c.Settings})
}

// follow is replan where what is known of the session has changed.
func (c *conn) follow() {
	if c.planned != c.Changes {
		c.replan()
	}
}

// maxOwnPlans is how many plans a connection keeps for itself.
const maxOwnPlans = 64

// parse plans a text. Errors come from looking tables up, and are not kept. A refusal
// may be for what was found of stored programs.
func (c *conn) parse(ctx context.Context, text string) (*statement, error) {
	mayFill := false
	schema := insert.Schema{
		Table: func(db, name string) (*insert.Table, error) {
			t, err := c.lookup(ctx, text, db, name)
			mayFill = mayFill || t == nil && c.configured(c.nameOf(insert.TableName{DB: db, Table: name}))
			return t, err
		},
		Columns: func(t insert.TableName) ([]string, error) { return c.VisibleColumns(ctx, text, t) },
		Programs: func(db string, routines, views []insert.TableName) (insert.Effects, error) {
			if db == "" {
				if err := c.KnowDatabase(ctx, text); err != nil {
					return insert.Effects{}, err
				}
				db = c.DB
			}
			return c.connector.programs(ctx, db, routines, views)
		},
	}
	if len(c.temporary) > 0 {
		schema.Temporary = c.knowsTemporary
	}
	plan, unknown, err := insert.Parse(text, c.Settings, schema)
	var refusal *insert.Refusal
	switch {
	case errors.As(err, &refusal) && !refusal.Passing:
		return &statement{plan: new(insert.Plan), expires: time.Now().Add(refreshEvery), refusal: refused(refusal), unreadable: refusal.Unreadable}, nil
	case err != nil:
		return nil, err
	case unknown:
		return &statement{unknown: true}, nil
	}
	st := newStatement(plan)
	st.mayFill = mayFill
	return st, nil
}

// lookup says which configured table a name in a text means on this connection.
func (c *conn) lookup(ctx context.Context, text, db, table string) (*insert.Table, error) {
	if !utf8.ValidString(db) || !utf8.ValidString(table) {
		return nil, &RefusedError{Table: strings.ToValidUTF8(table, "?"), Reason: "its name is not in UTF-8, so it cannot be told whether it is configured",
			Fix: "connect with charset=utf8mb4"}
	}
	if db == "" {
		if c.DBUnknown && !c.connector.mayMean(c.schema, table) {
			return nil, nil
		}
		if err := c.KnowDatabase(ctx, text); err != nil {
			return nil, err
		}
		if db = c.DB; db == "" {
			return nil, nil // the server answers 1046
		}
	}
	name := c.connector.fold(db, table)
	if own, like, err := c.isTemporary(ctx, text, name); own || err != nil {
		return like, err
	}
	t, err := c.connector.lookup(ctx, c.schema, name)
	if err != errUnseenTable {
		return t, err
	}
	if own, err := c.askTemporary(ctx, text, name); own || err != nil { // the server's own error: 1146
		return nil, err
	}
	return c.connector.lookup(ctx, c.schema, name) // it came to be just now, elsewhere
}
