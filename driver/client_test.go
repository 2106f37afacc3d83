package driver

import (
	"context"
	"database/sql/driver"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/leafsql/leafsql/internal/fill"
)

// attached returns a session with a connection that does nothing.
func attached(t testing.TB, login fill.Login) (*clientSession, *noopConn) {
	t.Helper()
	cfg := NewConfig()
	cfg.MySQL.DBName = "shop"
	cfg.Tables = []Rule{{Table: "t", Generator: &counter{}}}
	connector, err := Wrap(noop{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { connector.Close() })
	inner := &noopConn{}
	s, err := connector.attach(t.Context(), inner, login)
	if err != nil {
		t.Fatal(err)
	}
	return s, inner
}

func (s *clientSession) mustPlan(t testing.TB, text string) fill.Plan {
	t.Helper()
	p, err := s.Plan(t.Context(), text)
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return p
}

// TestSessionRunsFilledStatements: a filled statement runs with ids, and its Answer has the connection's result and the id.
func TestSessionRunsFilledStatements(t *testing.T) {
	s, inner := attached(t, fill.Login{Database: "shop"})
	if p := s.mustPlan(t, "SELECT 1"); p.Fills() || p.HasEffects() || p.Prepares() {
		t.Errorf("Plan(SELECT 1) = %+v, want nothing to fill, record or prepare", p)
	}
	a, err := s.Run(t.Context(), s.mustPlan(t, "INSERT INTO t (a) VALUES (1), (2)"))
	if _, ok := a.Result.(noopResult); err != nil || !ok || a.ID != 1 || a.Rows != nil || a.Source != nil {
		t.Errorf("Run() = %+v, %v; want id 1 and the result of the connection", a, err)
	}
	if want := "INSERT INTO t (a, `id`) VALUES (1, 1), (2, LAST_INSERT_ID(1)+1)"; inner.last != want {
		t.Errorf("sent %s, want %s", inner.last, want)
	}
	prepared, err := s.Prepare(t.Context(), s.mustPlan(t, "INSERT INTO t (a) VALUES (?)"))
	if err != nil {
		t.Fatal(err)
	}
	if a, err = prepared.Run(t.Context(), []driver.NamedValue{{Ordinal: 1, Value: int64(5)}}); err != nil || a.ID != 3 {
		t.Errorf("Run() of the prepared statement = %+v, %v; want id 3", a, err)
	}
	if err := prepared.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
}

// An unusedContext fails its test if a method is called.
type unusedContext struct {
	context.Context
	t testing.TB
}

func (c unusedContext) Done() <-chan struct{}       { return c.fail("Done").Done() }
func (c unusedContext) Err() error                  { return c.fail("Err").Err() }
func (c unusedContext) Value(key any) any           { return c.fail("Value").Value(key) }
func (c unusedContext) Deadline() (time.Time, bool) { return c.fail("Deadline").Deadline() }

func (c unusedContext) fail(method string) context.Context {
	c.t.Helper()
	c.t.Errorf("%s was called, want a statement that does not wait to leave its context unused", method)
	return c.Context
}

// TestStatementThatDoesNotWaitLeavesContextUnused: the methods of the proxy's contexts start a timer.
func TestStatementThatDoesNotWaitLeavesContextUnused(t *testing.T) {
	s, _ := attached(t, fill.Login{Database: "shop"})
	if _, err := s.Run(t.Context(), s.mustPlan(t, "INSERT INTO t (a) VALUES (1)")); err != nil { // looks the table up, and checks the privileges
		t.Fatal(err)
	}
	ctx := unusedContext{t.Context(), t}
	plan, err := s.Plan(ctx, "INSERT INTO t (a) VALUES (2)")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(ctx, plan); err != nil {
		t.Error(err)
	}
	prepared, err := s.Prepare(t.Context(), s.mustPlan(t, "INSERT INTO t (a) VALUES (?)"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := prepared.Run(ctx, []driver.NamedValue{{Ordinal: 1, Value: int64(5)}}); err != nil {
		t.Error(err)
	}
}

// clientValue is an argument from a client of the protocol.
type clientValue struct{ key any }

func (v clientValue) KeyValue() any { return v.key }

// TestKeyValueDecidesWhetherArgumentIsKey: an argument's KeyValue decides whether it is a key.
func TestKeyValueDecidesWhetherArgumentIsKey(t *testing.T) {
	s, _ := attached(t, fill.Login{Database: "shop"})
	prepared, err := s.Prepare(t.Context(), s.mustPlan(t, "INSERT INTO t (id, a) VALUES (?, 1)"))
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		key any
		id  int64
	}{{nil, 1}, {int64(7), 7}, {int64(0), 2}, {[]byte("9"), 9}, {uint64(8), 8}} {
		a, err := prepared.Run(t.Context(), []driver.NamedValue{{Ordinal: 1, Value: clientValue{tt.key}}})
		if err != nil || tt.key != nil && a.ID != 1 && a.ID != tt.id { // noop returns 1
			t.Errorf("Run(%v) = %+v, %v; want id %d", tt.key, a, err, tt.id)
		}
	}
	if _, err := prepared.Run(t.Context(), []driver.NamedValue{{Ordinal: 1, Value: clientValue{time.Now()}}}); !errors.Is(err, ErrRefused) {
		t.Errorf("Run() with a time as key: error %v, want a refusal", err)
	}
}

// TestSessionRunsStatementsOneByOne: the statements of a filled query are run one by one if the connection
// allows several statements. Otherwise the server's error is returned.
func TestSessionRunsStatementsOneByOne(t *testing.T) {
	const text = "SELECT 1; INSERT INTO t (a) VALUES (1); SELECT 2"
	s, _ := attached(t, fill.Login{Database: "shop", MultiStatements: true})
	if got, want := s.mustPlan(t, text).Parts(text), []string{"SELECT 1;", " INSERT INTO t (a) VALUES (1);", " SELECT 2"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if p := s.mustPlan(t, "SELECT 1; SELECT 2"); p.Fills() || p.Parts(p.Text) != nil {
		t.Errorf("Parts() = %q, want nil for a query that is not filled", p.Parts(p.Text))
	}
	s.SetMultiStatements(false)
	if _, err := s.Plan(t.Context(), text); !errors.Is(err, ErrRefused) { // noop would have prepared it as one statement
		t.Errorf("Plan() of several statements: error %v, want a refusal", err)
	}
}

// TestSessionAppliesStateOfCommands: state that commands of the protocol change applies to the queries after them.
func TestSessionAppliesStateOfCommands(t *testing.T) {
	s, _ := attached(t, fill.Login{Database: "other"})
	fills := func() bool { return s.mustPlan(t, `INSERT INTO t (a) VALUES (1)`).Fills() }
	if fills() {
		t.Error("Fills() in another database = true, want false")
	}
	if s.Use("shop"); !fills() {
		t.Error("Fills() after COM_INIT_DB = false, want true")
	}
	if s.Reset(fill.Login{Database: "other"}, true); fills() {
		t.Error("Fills() after COM_CHANGE_USER to another database = true, want false")
	}
	if s.Reset(fill.Login{Database: "shop"}, true); !fills() {
		t.Error("Fills() after COM_CHANGE_USER = false, want true")
	}
	for _, certain := range []bool{true, false, true} {
		s.SetBackslashEscapes(certain)
		fills := s.mustPlan(t, `INSERT INTO t (a) VALUES ('\'), ('\')`).Fills() // the string does not end
		if on, queried := s.NoBackslashEscapes(); fills || on || queried == certain {
			t.Errorf("if backslashes escape for certain %v: Fills() = %v, NoBackslashEscapes() = %v, %v; want false, and false, %v", certain, fills, on, queried, !certain)
		}
	}
	p := s.mustPlan(t, "USE other")
	if s.RecordSent(p, false, nil); fills() {
		t.Error("Fills() after USE of another database = true, want false")
	}
}

// TestAttachRequiresInnerConn: an attached connection has to implement all methods of innerConn.
func TestAttachRequiresInnerConn(t *testing.T) {
	s, _ := attached(t, fill.Login{})
	_, err := s.connector.attach(context.Background(), bareConn{}, fill.Login{})
	if !errors.As(err, new(*ConfigError)) {
		t.Errorf("attach(): error %v, want a ConfigError", err)
	}
}

type bareConn struct{ driver.Conn }
