package server

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

func TestMain(m *testing.M) {
	mysql.SetLogger(&mysql.NopLogger{}) // tests cut connections
	m.Run()
}

const allocTable = `CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL DEFAULT '', max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL,
	description VARCHAR(256) DEFAULT NULL, update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP, PRIMARY KEY (biz_tag))`

const workerTable = `CREATE TABLE leaf_worker (worker_id int NOT NULL PRIMARY KEY, nonce varchar(64) NOT NULL, hw bigint unsigned NOT NULL, free tinyint NOT NULL,
	owner text NOT NULL, registry varchar(64) NOT NULL, update_time timestamp NOT NULL DEFAULT CURRENT_TIMESTAMP) CHARACTER SET utf8mb4`

// createDatabase returns a database with leaf_alloc and rows for tags, each starting at 1000.
func createDatabase(t testing.TB, step int, tags ...string) (db *sql.DB, dsn string) {
	t.Helper()
	dsn = mysqltest.Database(t)
	db = connect(t, dsn)
	exec(t, db, allocTable)
	for _, tag := range tags {
		addTag(t, db, tag, 1000, step)
	}
	return db, dsn
}

func exec(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.Exec(text, args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

func addTag(t testing.TB, db *sql.DB, tag string, maxID, step int) {
	t.Helper()
	exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, ?, ?)", tag, maxID, step)
}

// startServer starts a Server with cfg, on real connections.
func startServer(t testing.TB, cfg Config) (*Server, string) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(s)
	t.Cleanup(func() {
		srv.Close()
		s.Close()
	})
	return s, srv.URL
}

// startNetProxy returns a proxy, and the DSN that connects through it.
func startNetProxy(t testing.TB, dsn string) (*netfault.Proxy, string) {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	if cfg.Net != "tcp" {
		t.Fatalf("the server is at %s(%s)", cfg.Net, cfg.Addr)
	}
	proxy := netfault.Start(t, cfg.Addr)
	cfg.Addr = proxy.Addr()
	return proxy, cfg.FormatDSN()
}

// answer is an answer as a client receives it.
type answer struct {
	code   int
	header http.Header
	body   string
}

func do(t testing.TB, method, url string, header ...string) answer {
	t.Helper()
	a, err := sendRequest(t.Context(), method, url, header...)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func sendRequest(ctx context.Context, method, url string, header ...string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return answer{}, err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	res, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		return answer{}, err
	}
	defer res.Body.Close()
	body, err := io.ReadAll(res.Body)
	return answer{res.StatusCode, res.Header, string(body)}, err
}

func get(t testing.TB, url string, header ...string) answer {
	t.Helper()
	return do(t, "GET", url, header...)
}

// wantBody fails the test unless the body is text.
func (a answer) wantBody(t testing.TB, text string) {
	t.Helper()
	if a.code != 200 || a.body != text {
		t.Errorf("answer = %d %q, want 200 %q", a.code, a.body, text)
	}
}

// wantProblem fails the test unless the answer is a problem of RFC 9457, and not a number.
func (a answer) wantProblem(t testing.TB, code int, kind string) {
	t.Helper()
	var p struct {
		Type, Title, Detail string
		Status              int
	}
	if err := json.Unmarshal([]byte(a.body), &p); err != nil || a.header.Get("Content-Type") != "application/problem+json" {
		t.Errorf("answer = %d %s %q, want application/problem+json", a.code, a.header.Get("Content-Type"), a.body)
		return
	}
	if a.code != code || p.Status != code || p.Type != "urn:leafsql:problem:"+kind || p.Title != http.StatusText(code) || p.Detail == "" {
		t.Errorf("problem = %d %+v, want %d %s", a.code, p, code, kind)
	}
	if retry := a.header.Get("Retry-After"); (retry != "") != (code == 503) {
		t.Errorf("Retry-After of status %d = %q, want one with 503 alone", a.code, retry)
	}
}

// waitFor waits for a condition, and fails the test after 30 s.
func waitFor(t testing.TB, what string, there func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !there(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("waited for %s for 30s, want it earlier", what)
		}
	}
}

// runServer runs a Server on its own listener. stop ends it and returns the error of run.
func runServer(t testing.TB, cfg Config) (s *Server, url string, stop func() error) {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = slog.New(slog.DiscardHandler)
	}
	s, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() {
		defer s.Close()
		ended <- s.run(ctx, listener)
	}()
	var result error
	over := false
	stop = func() error {
		cancel()
		if !over {
			result, over = <-ended, true
		}
		return result
	}
	t.Cleanup(func() { stop() })
	scheme := "http"
	if s.tls != nil {
		scheme = "https"
	}
	return s, fmt.Sprintf("%s://%s", scheme, listener.Addr()), stop
}

func connect(t testing.TB, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}
