package driver

import (
	"context"
	"database/sql/driver"
	"fmt"

	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/fill"
)

func init() {
	fill.Attach = func(ctx context.Context, connector driver.Connector, conn driver.Conn, login fill.Login) (fill.Session, error) {
		return connector.(*Connector).attach(ctx, conn, login)
	}
}

// A clientSession is the session of a client of MySQL's protocol. It implements fill.Session.
type clientSession struct{ *conn }

// attach returns the session of a connection that is logged in.
func (c *Connector) attach(ctx context.Context, inner driver.Conn, login fill.Login) (*clientSession, error) {
	ic, ok := inner.(innerConn)
	if !ok {
		return nil, configError("Attach", fmt.Sprintf("the connection (%T) lacks %s", inner, missingMethods(inner)), "")
	}
	if !c.tables.HasLearned() {
		own, err := c.Connect(ctx)
		if err != nil {
			return nil, err
		}
		own.Close()
	}
	s := new(clientSession)
	s.initialize(c, ic, login)
	return s, nil
}

// initialize initializes the session's connection after a login.
func (s *clientSession) initialize(c *Connector, inner innerConn, login fill.Login) {
	s.conn = c.newConn(inner, login.Database, login.FoundRows)
	s.SetMultiStatements(login.MultiStatements)
	s.Guard(login.Account)
}

func (s *clientSession) Plan(ctx context.Context, text string) (fill.Plan, error) {
	st, err := s.Statement(ctx, text)
	if err == nil && st.Parts(text) != nil {
		err = s.checkCut(ctx, text)
	}
	return fill.Plan{Text: text, Statement: st}, s.connector.countRefusal(err)
}

// statementOf returns the planned statement of p.
func statementOf(p fill.Plan) *planner.Statement { return p.Statement.(*planner.Statement) }

func (s *clientSession) RecordSent(p fill.Plan, prepared bool, err error) {
	if st := statementOf(p); st.Effects {
		s.RecordEffects(st, prepared, err)
	}
}

func (s *clientSession) Run(ctx context.Context, p fill.Plan) (fill.Answer, error) {
	e := &execution{c: s.conn, st: statementOf(p), text: p.Text, forClient: true}
	return e.runForClient(ctx)
}

// runForClient runs the statement and returns its outcome.
func (e *execution) runForClient(ctx context.Context) (fill.Answer, error) {
	if err := e.run(ctx); err != nil {
		return fill.Answer{}, e.c.connector.countRefusal(err)
	}
	if e.wantRows {
		return fill.Answer{Rows: e.rows}, nil
	}
	a := fill.Answer{Result: e.result, Source: e.sourceResult}
	if r, ok := e.result.(*result); ok {
		a.Result, a.ID = r.Result, r.id
	} else {
		_, a.ID = session.ResultCounts(e.result) // the id of the inner connection's result
	}
	return a, nil
}

func (s *clientSession) Prepare(ctx context.Context, p fill.Plan) (fill.Prepared, error) {
	st := statementOf(p)
	if st.Way == planner.InParts {
		return nil, s.connector.countRefusal(s.prepareError(ctx, p.Text))
	}
	prepared, err := s.prepare(ctx, st, p.Text)
	if err != nil {
		return nil, s.connector.countRefusal(err)
	}
	return prepared, nil
}

// Run executes the statement for a client of MySQL's protocol.
func (s *stmt) Run(ctx context.Context, args []driver.NamedValue) (fill.Answer, error) {
	e := &execution{c: s.c, stmt: s, args: args, forClient: true}
	return e.runForClient(ctx)
}

func (s *clientSession) Reset(login fill.Login, knownDB bool) {
	if s.Unshared && !knownDB { // COM_RESET_CONNECTION does not reset the session's roles
		login.Account = ""
	}
	s.initialize(s.connector, s.Conn, login)
	s.DBUnknown = !knownDB
}

func (s *clientSession) NoBackslashEscapes() (on, queried bool) {
	return s.Settings.NoBackslashEscapes, s.Settings.SessionKnown
}
