package server

import (
	"bytes"
	"database/sql"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// logBuffer is a log in memory.
type logBuffer struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// count returns the number of lines that contain all parts.
func (l *logBuffer) count(parts ...string) (n int) {
next:
	for line := range strings.Lines(l.String()) {
		for _, part := range parts {
			if !strings.Contains(line, part) {
				continue next
			}
		}
		n++
	}
	return n
}

// createUser creates a user with rights on a leaf_alloc that has the tag orders.
func createUser(t *testing.T, rights string) (admin *sql.DB, as *mysql.Config) {
	t.Helper()
	admin, dsn := createDatabase(t, 10, "orders")
	as, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	as.User, as.Passwd = "u"+as.DBName[len(as.DBName)-12:], "Right-9.word"
	exec(t, admin, "CREATE USER "+as.User+"@'%' IDENTIFIED BY 'Right-9.word'")
	t.Cleanup(func() { admin.Exec("DROP USER " + as.User + "@'%'") })
	exec(t, admin, "GRANT "+rights+" ON leaf_alloc TO "+as.User+"@'%'")
	return admin, as
}

// TestWrongPasswordIsLoggedOnce: a refused login to the database is logged once, and its recovery once. Clients get an
// error without users and hosts.
func TestWrongPasswordIsLoggedOnce(t *testing.T) {
	db, cfg := createUser(t, "SELECT, UPDATE")
	user := cfg.User
	cfg.Passwd = "Wrong-9.word"
	var log logBuffer
	_, server, stop := runServer(t, Config{DSN: cfg.FormatDSN(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	const away = "leaf_alloc is unavailable"
	waitFor(t, "a warning", func() bool { return log.count("WARN", away) == 1 })
	host, _, _ := strings.Cut(cfg.Addr, ":")
	for range 3 {
		for path, code := range map[string]int{"/readyz": 503, "/db": 503, "/api/segment/get/orders": 503, "/api/snowflake/get/x": 503, "/": 200, "/cache": 200, "/metrics": 200} {
			a := get(t, server+path)
			if a.code != code {
				t.Errorf("%s: answer = %d %s, want %d", path, a.code, a.body, code)
			}
			for _, secret := range []string{user, host, "9.word", "password", "denied", cfg.DBName} {
				if strings.Contains(a.body, secret) {
					t.Errorf("%s: answer contains %s, want none of it: %s", path, secret, a.body)
				}
			}
		}
	}
	if log.count("WARN", away) != 1 || log.count("WARN", away, user) != 1 || log.count("WARN", "no worker id") != 1 || log.count("word=") != 0 || strings.Contains(log.String(), "9.word") {
		t.Errorf("log = %s\nwant each failure once, and each recovery once", log.String())
	}
	exec(t, db, "ALTER USER "+user+"@'%' IDENTIFIED BY 'Wrong-9.word'") // the server's password
	waitFor(t, "readiness", func() bool { return get(t, server+"/readyz").code == 200 })
	get(t, server+"/api/segment/get/orders").wantBody(t, "1000")
	if log.count("INFO", "leaf_alloc is available again") != 1 || log.count("WARN", away) != 1 {
		t.Errorf("log = %s\nwant each failure once, and each recovery once", log.String())
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
}

// TestRefusedTagIsLoggedOnce: a problem with one tag, or a missing right, is logged once while the store answers.
func TestRefusedTagIsLoggedOnce(t *testing.T) {
	db, cfg := createUser(t, "SELECT")
	user := cfg.User
	var log logBuffer
	_, server := startServer(t, Config{DSN: cfg.FormatDSN(), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	for range 5 {
		if a := get(t, server+"/api/segment/get/orders"); a.code != 503 || strings.Contains(a.body, user) {
			t.Errorf("%d %s", a.code, a.body)
		}
	}
	waitFor(t, "a warning", func() bool { return log.count("WARN", user) > 0 })
	if log.count("WARN", user) != 1 {
		t.Errorf("log = %s\nwant each failure once, and each recovery once", log.String())
	}
	exec(t, db, "GRANT UPDATE ON leaf_alloc TO "+user+"@'%'")
	waitFor(t, "ids", func() bool { return get(t, server+"/api/segment/get/orders").code == 200 })
	if log.count("INFO", "again") != 1 {
		t.Errorf("log = %s\nwant each failure once, and each recovery once", log.String())
	}
}

// TestSnowflakesUseDefaultSource: without a leafWorker, snowflakes use the default source, mysql(), and its warnings are
// in the server's log.
func TestSnowflakesUseDefaultSource(t *testing.T) {
	db, dsn := createDatabase(t, 10, "orders")
	exec(t, db, workerTable)
	var log logBuffer
	s, server := startServer(t, Config{DSN: dsn + "?leafNewRegistry=true", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if rows := s.connector.Worker(); rows.Worker != -1 {
		t.Errorf("Worker() before the first request = %+v, want -1", rows)
	}
	if a := get(t, server+"/api/snowflake/get/any"); a.code != 200 || len(a.body) < 15 {
		t.Errorf("%d %s", a.code, a.body)
	}
	var warnings int
	if err := db.QueryRow("SELECT @@global.innodb_flush_log_at_trx_commit <> 1 OR @@global.log_bin AND @@global.sync_binlog <> 1").Scan(&warnings); err != nil {
		t.Fatal(err)
	}
	if n := log.count("WARN", "may lose its last commits"); n != warnings {
		t.Errorf("warnings = %d, want %d: %s", n, warnings, log.String())
	}
	_, server = startServer(t, Config{DSN: dsn, NoSnowflakes: true})
	get(t, server+"/api/snowflake/get/any").wantProblem(t, 404, "disabled")
}

// TestMissingTableSuggestsInit: the log and the clients' error propose leafsql init.
func TestMissingTableSuggestsInit(t *testing.T) {
	var log logBuffer
	_, server, _ := runServer(t, Config{DSN: mysqltest.Database(t), Logger: slog.New(slog.NewTextHandler(&log, nil))})
	waitFor(t, "a warning", func() bool {
		return log.count("WARN", "leaf_alloc is unavailable", "create the table with leafsql init") == 1
	})
	for _, path := range []string{"/readyz", "/api/segment/get/orders", "/db"} {
		a := get(t, server+path)
		a.wantProblem(t, 503, "unavailable")
		if path != "/db" && !strings.Contains(a.body, "leaf_alloc does not exist; create it with leafsql init") {
			t.Errorf("%s: answer = %s, want the hint leafsql init", path, a.body)
		}
	}
	if log.count("CREATE") != 0 {
		t.Error(log.String())
	}
}

// TestLeafCreateMakesTables: with leafCreate=true the server creates leaf_alloc and leaf_worker, and no row. A refusal is
// logged once.
func TestLeafCreateMakesTables(t *testing.T) {
	dsn := mysqltest.Database(t)
	_, server, _ := runServer(t, Config{DSN: dsn + "?leafCreate=true&leafNewRegistry=true"})
	waitFor(t, "readiness", func() bool { return get(t, server+"/readyz").code == 200 })
	get(t, server+"/api/segment/get/orders").wantProblem(t, 404, "unknown-tag")
	created, n := connect(t, dsn), -1
	if err := created.QueryRow("SELECT COUNT(*) FROM leaf_alloc").Scan(&n); err != nil || n != 0 {
		t.Errorf("rows of leaf_alloc = %d, %v, want 0", n, err)
	}
	addTag(t, created, "orders", 1000, 10)
	get(t, server+"/api/segment/get/orders").wantBody(t, "1000")
	if a := get(t, server+"/api/snowflake/get/x"); a.code != 200 {
		t.Errorf("answer = %+v, want 200", a)
	}
	db, cfg := createUser(t, "SELECT, UPDATE")
	exec(t, db, "DROP TABLE leaf_alloc")
	var log logBuffer
	_, server, _ = runServer(t, Config{DSN: cfg.FormatDSN() + "?leafCreate=true", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	get(t, server+"/readyz").wantProblem(t, 503, "unavailable")
	waitFor(t, "a warning", func() bool { return log.count("WARN", "leaf_alloc could not be created", "leafsql init") == 1 })
	time.Sleep(2 * probeInterval)
	if log.count("could not be created") != 1 {
		t.Error(log.String())
	}
}
