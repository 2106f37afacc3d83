package driver

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/leafsql/leafsql/driver/internal/planner"
)

// A Session fills the statements that the client of somebody else's connection sends: it is
// what leafsql does without database/sql, for a program that speaks MySQL's protocol itself,
// as package proxy does.
//
//	s, err := connector.Attach(ctx, conn, driver.Login{Database: "shop"})
//	plan, err := s.Plan(ctx, text)  // an error is the answer: nothing is to be sent
//	if !plan.Fills() {
//		…                           // the caller sends the text as it is
//		s.Sent(plan, false, err)
//	} else {
//		answer, err := s.Run(ctx, plan)
//	}
//
// Like the connection it is used by one goroutine at a time. What happens to the session
// beside statements has to be told: UseDatabase, Reset, SetSeveral, SetNoBackslashEscapes.
type Session struct{ conn *conn }

// Login is what a client's login decided.
type Login struct {
	Database  string // in use; "": none
	FoundRows bool   // affected counts are of rows found: CLIENT_FOUND_ROWS
	Several   bool   // a text may hold several statements: CLIENT_MULTI_STATEMENTS

	// Account names the client's account, and its host if the server is told that. Sessions of one account share for a
	// minute the kinds of statements that the server let them run. "" shares nothing.
	Account string
}

// Attach returns the session of a connection that is logged in. The connection has to
// implement what go-sql-driver's do. Its results and rows come back untouched in an Answer,
// and its statements get the arguments that the client's had: if a value implements
// KeyValue() any, that is what its key is judged by. Its Close is called if a statement fails in such
// a way that the session is not what the client left. What leafsql reads of the server itself is
// read with the Connector's own account.
func (c *Connector) Attach(ctx context.Context, inner driver.Conn, login Login) (*Session, error) {
	ic, ok := inner.(innerConn)
	if !ok {
		return nil, configError("Attach", fmt.Sprintf("the connection (%T) lacks %s", inner, lackedMethods(inner)), "")
	}
	if !c.tables.Learned() {
		own, err := c.Connect(ctx)
		if err != nil {
			return nil, err
		}
		own.Close()
	}
	s := new(Session)
	s.begin(c, ic, login)
	return s, nil
}

// begin makes the connection of a session that begins with a login.
func (s *Session) begin(c *Connector, inner innerConn, login Login) {
	s.conn = c.newConn(inner, login.Database, login.FoundRows)
	s.conn.SetSeveral(login.Several)
	s.conn.Guard(login.Account)
}

// A Plan says how a text is to be run.
type Plan struct {
	text string
	st   *planner.Statement
}

// Plan plans a text. It may ask the connection about the session. The error of a text that
// must not be sent is a *RefusedError, or what the server said.
func (s *Session) Plan(ctx context.Context, text string) (Plan, error) {
	p := Plan{text: text}
	var err error
	if p.st, err = s.conn.Statement(ctx, text); err == nil && len(p.Parts()) > 1 {
		err = s.conn.mayCut(ctx, text)
	}
	return p, s.conn.connector.refused(err)
}

// Fills says that the text is to be run by Run. Else the caller sends it as it is.
func (p Plan) Fills() bool { return p.st.Way != planner.PassedThrough }

// Parts are the statements of a text that is filled, more than one if each has to be planned
// and run by itself, in their order, until one has an error.
func (p Plan) Parts() []string {
	if !p.Fills() || len(p.st.Plan.Ends) == 0 {
		return []string{p.text}
	}
	parts := make([]string, 0, len(p.st.Plan.Ends)+1)
	begin := 0
	for _, end := range p.st.Plan.Ends {
		parts = append(parts, p.text[begin:end])
		begin = end
	}
	return append(parts, p.text[begin:])
}

// Prepares says that the text is to be prepared by Prepare: it writes a table that a rule
// means, though perhaps a temporary one at this time.
func (p Plan) Prepares() bool { return p.Fills() || p.st.MayFill }

// HasEffects says that Sent has to be called.
func (p Plan) HasEffects() bool { return p.st.Effects }

// Sent notes how a text ended that the caller sent as it is, or one execution of a
// statement that it prepared.
func (s *Session) Sent(p Plan, prepared bool, err error) {
	if p.st.Effects {
		s.conn.After(p.st, err)
		if prepared {
			s.conn.DoubtDatabase(p.st)
		}
	}
}

// An Answer is what running a statement came to.
type Answer struct {
	// Result is the connection's, of the statement that wrote the rows, unless Rows is set.
	// If none had to be written it is none of the connection's.
	Result driver.Result
	ID     int64 // LastInsertId, in place of the one in Result

	// Rows are the connection's, of a statement that answers with rows.
	Rows driver.Rows

	// Source is the connection's result of the step that read the source of an INSERT …
	// SELECT or LOAD DATA; nil for other statements.
	Source driver.Result
}

// Run runs a text that Fills, and has one part. Errors are the server's, *RefusedError or *FillError; the
// statement did not run then. ctx bounds the wait for ids.
func (s *Session) Run(ctx context.Context, p Plan) (Answer, error) {
	e := execution{c: s.conn, st: p.st, text: p.text, client: true}
	return e.answer(ctx)
}

// answer runs the statement.
func (e *execution) answer(ctx context.Context) (Answer, error) {
	if err := e.run(ctx); err != nil {
		return Answer{}, e.c.connector.refused(err)
	}
	if e.wantRows {
		return Answer{Rows: e.rows}, nil
	}
	a := Answer{Result: e.result, Source: e.source}
	if r, ok := e.result.(*result); ok {
		a.Result, a.ID = r.Result, r.id
	} else {
		a.ID, _ = e.result.LastInsertId() // as the inner connection says it
	}
	return a, nil
}

// A Prepared is a statement that the client prepared and that may have to be filled.
type Prepared struct{ stmt *stmt }

// Prepare prepares a text that Prepares. The caller has prepared the text on the connection
// already, for the client to see what that answers; executions go through the Prepared.
func (s *Session) Prepare(ctx context.Context, p Plan) (*Prepared, error) {
	var st *stmt
	var err error
	if p.st.Way == planner.InParts {
		err = s.conn.prepareError(ctx, p.text)
	} else {
		st, err = s.conn.prepare(ctx, p.st, p.text)
	}
	if err != nil {
		return nil, s.conn.connector.refused(err)
	}
	return &Prepared{st}, nil
}

// Run executes it, as Session.Run does a text.
func (p *Prepared) Run(ctx context.Context, args []driver.NamedValue) (Answer, error) {
	e := execution{c: p.stmt.c, stmt: p.stmt, args: args, client: true}
	return e.answer(ctx)
}

// Close closes what it has on the server.
func (p *Prepared) Close() error { return p.stmt.Close() }

// UseDatabase notes the database that is in use since COM_INIT_DB.
func (s *Session) UseDatabase(name string) {
	s.conn.DBUnknown = false
	s.conn.Use(name)
}

// Reset notes that the session began anew, with COM_CHANGE_USER or, if the same is true of
// a connection's login, COM_RESET_CONNECTION. Prepared statements are gone with it. knownDB
// says whether login.Database is the one in use.
func (s *Session) Reset(login Login, knownDB bool) {
	alone := s.conn.Alone && !knownDB // COM_RESET_CONNECTION leaves the roles as they are
	s.begin(s.conn.connector, s.conn.Conn, login)
	if alone {
		s.conn.Guard("")
	}
	s.conn.DBUnknown = !knownDB
}

// SetSeveral notes what COM_SET_OPTION changed.
func (s *Session) SetSeveral(on bool) { s.conn.SetSeveral(on) }

// SetNoBackslashEscapes notes what the status in the server's last answer says of sql_mode.
// It is not known any more once that has changed: where a stored program sets sql_mode, servers
// put back the mode behind it, but not the status.
func (s *Session) SetNoBackslashEscapes(on, known bool) { s.conn.SetNoBackslashEscapes(on, known) }

// NoBackslashEscapes returns whether sql_mode has it, if the session was asked and nothing has
// changed since.
func (s *Session) NoBackslashEscapes() (on, asked bool) {
	return s.conn.Settings.NoBackslashEscapes, s.conn.Settings.SessionKnown
}
