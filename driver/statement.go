package driver

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"unicode/utf8"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
)

// A statement is what a text comes to: a plan, or why it is refused.
type statement struct {
	way     way
	plan    *insert.Plan
	effects bool           // on the session or on tables, to be noted when it ran
	missing insert.Missing // no plan: the session's settings decide
	refusal *RefusedError

	// Where other statements run instead: the server takes this one as well, and
	// until when, in Unix ms, no stored program is taken to notice.
	taken        atomic.Bool
	checkedUntil atomic.Int64
}

// A way is how a statement is executed.
type way uint8

const (
	passedThrough way = iota // to the inner driver as it is
	filled                   // with keys in its text or among its arguments
	apart                    // likewise, and what they are takes statements before it
	inParts                  // as two texts
)

func newStatement(p *insert.Plan) *statement {
	st := &statement{plan: p, way: filled, effects: p.Use != "" || p.Unseen || p.Charset || len(p.Changes) > 0}
	switch {
	case p.Cut > 0:
		st.way = inParts
	case len(p.Inserts) == 0:
		st.way = passedThrough
	case st.apart() != nil:
		st.way = apart
	}
	return st
}

// passThrough is every text's statement where nothing is configured.
var passThrough = newStatement(new(insert.Plan))

// staged is the statement's one insert if its rows go through a stage.
func (st *statement) staged() *insert.Insert {
	if len(st.plan.Inserts) == 1 && st.plan.Inserts[0].Staging != nil {
		return &st.plan.Inserts[0]
	}
	return nil
}

// apart is the statement's one insert if it takes more than its text to run.
func (st *statement) apart() *insert.Insert {
	if len(st.plan.Inserts) == 1 && (st.plan.Inserts[0].Staging != nil || st.plan.Inserts[0].Evaluation != nil) {
		return &st.plan.Inserts[0]
	}
	return nil
}

// positional says whether some insert relies on the columns that the catalog told:
// it lists none, or its rows go through a stage.
func (st *statement) positional() bool {
	return slices.ContainsFunc(st.plan.Inserts, func(in insert.Insert) bool { return in.Positional || in.Staging != nil })
}

// maxMemo keeps a connection from holding on to a large text.
const maxMemo = 4096

// statement finds what a text comes to.
func (c *conn) statement(ctx context.Context, text string) (*statement, error) {
	if c.last != nil && text == c.lastText && c.schema == c.connector.schema.Load() {
		return c.last, nil
	}
	if c.connector.idle {
		return passThrough, nil
	}
	if s := c.connector.schema.Load(); s != c.schema {
		c.schema = s
		c.replan()
	}
	st, kept, err := c.plan(ctx, text, c.settings)
	if err == nil && c.unseen && st.positional() {
		planned := st
		st, err = c.verify(ctx, text, st)
		kept = kept && st == planned
	}
	if err == nil && st.refusal != nil {
		err = st.refusal
	}
	if err != nil {
		return nil, c.connector.counts.note(err)
	}
	if kept && len(text) <= maxMemo {
		c.lastText, c.last = text, st
	}
	return st, nil
}

// plan plans a text, or finds the plan made before. Where sql_mode decides what
// it means that is asked for each time, because any statement may change it. kept
// says whether the plan will do the next time without a question.
func (c *conn) plan(ctx context.Context, text string, settings insert.Settings) (st *statement, kept bool, err error) {
	for {
		plans := c.plans
		if settings != c.settings {
			plans = c.cache(settings)
		}
		st, ok := plans.Get(text)
		if !ok || c.dbUnknown {
			before, unknown := c.plans, c.dbUnknown
			if st, err = c.parse(ctx, text, settings); err != nil {
				return nil, false, err
			}
			if c.plans == before && !unknown { // else a look-up changed what plans are kept under
				plans.Put(text, st)
			}
		}
		if st.missing == 0 {
			return st, plans == c.plans && !c.dbUnknown, nil
		}
		if st.missing != insert.MissingViews && mayReadCounts(text) {
			return &statement{plan: new(insert.Plan), refusal: countsRefusal("sql_mode,", "pass strings as arguments")}, false, nil
		}
		if settings, err = c.ask(ctx, settings, st.missing); err != nil {
			return nil, false, err
		}
	}
}

// mayReadCounts says whether a text that may write rows seems to call ROW_COUNT()
// or FOUND_ROWS(), which tell of the statement before: a question of leafsql's
// would change what they say.
func mayReadCounts(text string) bool {
	text = strings.ToLower(text)
	return (strings.Contains(text, "insert") || strings.Contains(text, "replace")) &&
		(strings.Contains(text, "row_count") || strings.Contains(text, "found_rows"))
}

// countsRefusal refuses such a text where something of the session would have to be
// asked for first. depends is what.
func countsRefusal(depends, fix string) *RefusedError {
	if fix != "" {
		fix += ", or "
	}
	return &RefusedError{Reason: "what it means depends on the session's " + depends + " and asking for that would change what ROW_COUNT() and FOUND_ROWS() say in it",
		Fix: fix + "put the count into a user variable first"}
}

// cache is where plans under some settings are kept. A connection with
// temporary tables keeps its own for itself.
func (c *conn) cache(settings insert.Settings) *plancache.Cache[*statement] {
	if len(c.temporary) > 0 {
		return plancache.New[*statement](ownPlans, planBytes/planCaches)
	}
	return c.schema.cache(planKey{db: c.db, settings: settings})
}

// ownPlans is how many plans a connection keeps for itself.
const ownPlans = 64

// replan takes the plans that fit the schema, the database in use and what is
// known of the session.
func (c *conn) replan() {
	c.plans = c.cache(c.settings)
	c.last = nil
}

// parse plans a text. Errors come from looking tables up, and are not kept.
func (c *conn) parse(ctx context.Context, text string, settings insert.Settings) (*statement, error) {
	plan, missing, err := insert.Parse(text, settings, func(db, name string) (*insert.Table, error) { return c.lookup(ctx, text, db, name) })
	var refusal *insert.Refusal
	switch {
	case errors.As(err, &refusal):
		name := refusal.Table
		if refusal.DB != "" {
			name = refusal.DB + "." + name
		}
		return &statement{plan: new(insert.Plan), refusal: &RefusedError{Table: name, Reason: refusal.Reason, Fix: refusal.Fix}}, nil
	case err != nil:
		return nil, err
	case missing != 0:
		return &statement{missing: missing}, nil
	}
	return newStatement(plan), nil
}

// lookup says which configured table a name in a text means on this connection.
func (c *conn) lookup(ctx context.Context, text, db, table string) (*insert.Table, error) {
	if !utf8.ValidString(db) || !utf8.ValidString(table) {
		if !c.connector.mayMeanNonASCII(c.schema) {
			return nil, nil
		}
		return nil, &RefusedError{Table: strings.ToValidUTF8(table, "?"), Reason: "its name is not in UTF-8, so it cannot be told whether it is configured",
			Fix: "connect with charset=utf8mb4"}
	}
	if db == "" {
		switch {
		case c.dbUnknown && !c.connector.mayMean(c.schema, table):
			return nil, nil
		case c.dbUnknown && mayReadCounts(text):
			return nil, countsRefusal("database in use, which a routine may have changed,", "write db.table")
		}
		if err := c.knowDatabase(ctx); err != nil {
			return nil, err
		}
		if db = c.db; db == "" {
			return nil, nil // the server answers 1046
		}
	}
	name := c.connector.fold(db, table)
	if t, ok := c.temporary[name]; ok && t != nil {
		return t, nil
	}
	if _, ok := c.temporary[name]; !ok {
		t, err := c.connector.lookup(ctx, c.schema, name)
		if err != errUnseenTable {
			return t, err
		}
	}
	return c.lookupTemporary(ctx, text, name)
}

// lookupTemporary looks at a table that only this connection may see. One that
// came to be just now, elsewhere, is in the catalog.
func (c *conn) lookupTemporary(ctx context.Context, text string, name catalog.Name) (*insert.Table, error) {
	rule, ok := c.connector.rule(c.schema, name)
	if !ok {
		return nil, nil
	}
	if mayReadCounts(text) {
		return nil, countsRefusal("temporary table", "")
	}
	columns, err := c.temporaryColumns(ctx, name)
	if err != nil {
		return nil, err // the server's own: 1146
	}
	if _, own := c.temporary[name]; !own {
		if t, err := c.connector.lookup(ctx, c.schema, name); err != errUnseenTable {
			return t, err
		}
	}
	t, err := c.connector.describe(rule, name, columns, true)
	if err == nil && t != nil {
		c.setTemporary(name, t)
	}
	return t, err
}

// setTemporary notes a temporary table of this connection, nil for one that is
// to be looked at.
func (c *conn) setTemporary(name catalog.Name, t *insert.Table) {
	if c.temporary == nil {
		c.temporary = make(map[catalog.Name]*insert.Table)
	}
	c.temporary[name] = t
	c.replan()
}

// knowDatabase asks for the database in use where a text may have changed it.
func (c *conn) knowDatabase(ctx context.Context) error {
	if !c.dbUnknown {
		return nil
	}
	db, err := currentDatabase(ctx, c.innerConn)
	if err != nil {
		return err
	}
	c.dbUnknown = false
	c.use(db)
	return nil
}

// use notes the database in use.
func (c *conn) use(db string) {
	c.db = db
	c.replan()
}
