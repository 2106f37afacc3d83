package driver

import (
	"context"
	"database/sql/driver"
	"strings"
	"unicode/utf8"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
)

// innerConn is everything of go-sql-driver's connection that database/sql and
// applications use. conn embeds it, so that what it does not override, such as
// BeginTx, Ping and ResetSession, is the inner driver's own.
type innerConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.SessionResetter
	driver.Validator
}

var (
	_ innerConn = (*conn)(nil)
	//lint:ignore SA1019 users of sql.Conn.Raw assert it
	_ driver.Execer = (*conn)(nil)
	//lint:ignore SA1019 likewise
	_ driver.Queryer = (*conn)(nil)
)

// conn is a connection that fills INSERTs. Like every driver.Conn it is used
// by one goroutine at a time.
type conn struct {
	innerConn
	c              *Connector
	closeConnector bool // it has the connector to itself

	db        string // the database in use, which survives the pool's reset
	dbUnknown bool   // ask before a bare table name counts

	view  *view
	plans *plancache.Cache[*entry] // of view, db and unknown settings
	mode  insert.Mode              // the version, once asked; sql_mode is never kept

	// The last text and its entry: most connections run one text many times.
	lastText string
	last     *entry

	fills []insert.Fill       // scratch
	args  []driver.NamedValue // scratch
}

// An entry is what a text needs: a plan, or why it is refused.
type entry struct {
	plan    *insert.Plan
	need    insert.Need // no plan: the session's settings decide
	refusal error
	plain   bool // to the inner driver as it is
	selects bool // its rows have to be counted on the server
	ddl     bool // changes tables: what is known of them is out of date afterwards
}

// plainEntry is every text's where nothing is configured.
var plainEntry = &entry{plan: new(insert.Plan), plain: true}

// Raw returns the inner driver's connection, for what only it can do. What is
// sent through it is not filled.
func (c *conn) Raw() driver.Conn { return c.innerConn }

func (c *conn) Close() error {
	err := c.innerConn.Close()
	if c.closeConnector {
		c.c.Close()
	}
	return err
}

// entry finds or makes what a text needs.
func (c *conn) entry(ctx context.Context, text string) (*entry, error) {
	if c.last != nil && text == c.lastText && c.view == c.c.view.Load() {
		return c.last, nil
	}
	return c.find(ctx, text)
}

func (c *conn) find(ctx context.Context, text string) (*entry, error) {
	if c.c.idle {
		return plainEntry, nil
	}
	if v := c.c.view.Load(); v != c.view {
		c.view = v
		c.replan()
	}
	if c.dbUnknown {
		return c.settled(ctx, text, c.mode)
	}
	e, ok := c.plans.Get(text)
	if !ok {
		var err error
		if e, err = c.parse(ctx, text, c.mode); err != nil {
			return nil, err
		}
		if !c.dbUnknown {
			c.plans.Put(text, e)
		}
	}
	if e.need != 0 {
		return c.settled(ctx, text, c.mode)
	}
	if e.refusal == nil && !c.dbUnknown && len(text) <= maxMemo {
		c.lastText, c.last = text, e
	}
	return e, e.refusal
}

// maxMemo keeps a connection from holding on to a large text.
const maxMemo = 4096

// replan takes the plans that fit the view, the database in use and what is
// known of the session.
func (c *conn) replan() {
	c.plans = c.view.cache(planKey{db: c.db, mode: c.mode})
	c.last = nil
}

// settled makes the entry of a text that depends on the session's settings,
// which it asks for as far as the text needs them. sql_mode is asked each
// time, because any statement may change it.
func (c *conn) settled(ctx context.Context, text string, mode insert.Mode) (*entry, error) {
	for {
		plans := c.view.cache(planKey{db: c.db, mode: mode})
		e, ok := plans.Get(text)
		if !ok || c.dbUnknown {
			unknown := c.dbUnknown
			var err error
			if e, err = c.parse(ctx, text, mode); err != nil {
				return nil, err
			}
			if !unknown {
				plans.Put(text, e)
			}
		}
		if e.need == 0 {
			return e, e.refusal
		}
		var err error
		if mode, err = c.ask(ctx, mode, e.need); err != nil {
			return nil, err
		}
	}
}

// parse plans a text. Errors other than refusals come from looking tables up,
// and are not kept.
func (c *conn) parse(ctx context.Context, text string, mode insert.Mode) (*entry, error) {
	view := c.view
	lookup := func(db, name string) (*insert.Table, error) {
		if !utf8.ValidString(db) || !utf8.ValidString(name) {
			return nil, &RefusedError{Table: strings.ToValidUTF8(name, "?"), Reason: "its name is not in UTF-8, so it cannot be told whether it is configured",
				Way: "connect with charset=utf8mb4"}
		}
		if db == "" {
			if err := c.knowDatabase(ctx); err != nil {
				return nil, err
			}
			if db = c.db; db == "" {
				return nil, nil // the server answers 1046
			}
		}
		return c.c.lookup(ctx, view, c.innerConn, db, name)
	}
	plan, need, err := insert.Parse(text, mode, lookup)
	if refusal, ok := err.(*insert.Refusal); ok {
		name := refusal.Table
		if refusal.DB != "" {
			name = refusal.DB + "." + name
		}
		return &entry{refusal: &RefusedError{Table: name, Reason: refusal.Reason, Way: refusal.Way}}, nil
	}
	if isServerError(err, errNoSuchTable) && isDDL(text) {
		return nil, &RefusedError{Table: missingTable(err), Reason: "it is created and filled in one text, so it could not be looked at (" + serverMessage(err) + ")", Way: sendDDLFirst}
	}
	if err != nil {
		return nil, err
	}
	e := &entry{plan: plan, need: need, ddl: isDDL(text)}
	if need == 0 && plan.Results > 1 {
		if t := changedBefore(text, plan); t != nil {
			return &entry{refusal: &RefusedError{Table: t.name, Reason: "a statement before the INSERT in the same text changes the table", Way: sendDDLFirst}}, nil
		}
	}
	e.selects = need == 0 && selects(plan)
	e.plain = need == 0 && len(plan.Inserts) == 0 && plan.Use == "" && !plan.UseUnknown && !e.ddl
	return e, nil
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

// after notes what a text did to the session and to the tables.
func (c *conn) after(e *entry, err error) {
	switch {
	case e.plan.UseUnknown, e.plan.Use != "" && err != nil:
		c.dbUnknown, c.last = true, nil
	case e.plan.Use != "":
		c.use(e.plan.Use)
	}
	if e.ddl || err != nil && isServerError(err, errUnknownColumn, errColumnCount, errNoSuchTable) {
		c.c.forget()
	}
}

// afterQuery is after for rows that are still to be read, and with them the
// answers of later statements: whether those work is not known yet.
func (c *conn) afterQuery(e *entry, err error) {
	c.after(e, err)
	if e.plan.Use != "" {
		c.dbUnknown, c.last = true, nil
	}
}

// ExecContext runs a text, with keys for the rows it writes.
func (c *conn) ExecContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	e, err := c.entry(ctx, text)
	if err != nil {
		return nil, err
	}
	if e.plain {
		return c.innerConn.ExecContext(ctx, text, args)
	}
	if e.skip(args) {
		return nil, driver.ErrSkip
	}
	return c.exec(ctx, e, text, args)
}

// QueryContext runs a text that answers with rows, such as INSERT … RETURNING.
func (c *conn) QueryContext(ctx context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	e, err := c.entry(ctx, text)
	if err != nil {
		return nil, err
	}
	if e.plain {
		return c.innerConn.QueryContext(ctx, text, args)
	}
	// Rows outlive this call and so would the statement that database/sql
	// would otherwise close: let it prepare one, before any id is drawn.
	if e.skip(args) || len(args) > 0 && len(e.plan.Inserts) > 0 && !c.c.interpolates() {
		return nil, driver.ErrSkip
	}
	return c.query(ctx, e, text, args)
}

// skip reports a count of arguments that the text does not have. database/sql
// has the error for it, and gives it when it is told to prepare.
func (e *entry) skip(args []driver.NamedValue) bool {
	return len(e.plan.Inserts) > 0 && len(args) > 0 && len(args) != e.plan.NumInput
}

// interpolates reports whether the inner driver puts arguments into texts.
func (c *Connector) interpolates() bool {
	return c.cfg.MySQL != nil && c.cfg.MySQL.InterpolateParams
}

// PrepareContext prepares a text; one that may need keys gets a statement of
// ours.
func (c *conn) PrepareContext(ctx context.Context, text string) (driver.Stmt, error) {
	e, err := c.entry(ctx, text)
	if err != nil {
		return nil, err
	}
	if len(e.plan.Inserts) == 0 {
		s, err := c.innerConn.PrepareContext(ctx, text)
		if err == nil && !e.plain {
			c.after(e, driver.ErrSkip) // it takes effect when executed, unseen
		}
		return s, err
	}
	return c.prepare(ctx, e, text)
}

// Prepare, Exec and Query are for those who go around database/sql. They must
// fill as well.

func (c *conn) Prepare(text string) (driver.Stmt, error) {
	return c.PrepareContext(context.Background(), text)
}

func (c *conn) Exec(text string, args []driver.Value) (driver.Result, error) {
	return c.ExecContext(context.Background(), text, named(args))
}

func (c *conn) Query(text string, args []driver.Value) (driver.Rows, error) {
	return c.QueryContext(context.Background(), text, named(args))
}

func named(args []driver.Value) []driver.NamedValue {
	nv := make([]driver.NamedValue, len(args))
	for i, v := range args {
		nv[i] = driver.NamedValue{Ordinal: i + 1, Value: v}
	}
	return nv
}
