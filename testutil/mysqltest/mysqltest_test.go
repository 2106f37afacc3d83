//go:build unix

package mysqltest_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { db.Close() })
	return db
}

func mustExec(t *testing.T, db *sql.DB, stmt string) {
	t.Helper()
	if _, err := db.Exec(stmt); err != nil {
		t.Fatalf("%s: %v", stmt, err)
	}
}

func TestDatabaseIsFreshAndDropped(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			var names []string
			t.Run("create", func(t *testing.T) {
				for range 2 {
					db := open(t, target.Database(t))
					var name string
					if err := db.QueryRow("SELECT DATABASE()").Scan(&name); err != nil {
						t.Fatal(err)
					}
					mustExec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY)")
					names = append(names, name)
				}
			})
			if len(names) != 2 || names[0] == names[1] {
				t.Fatalf("databases %q, want two different ones", names)
			}
			db := open(t, target.DSN())
			for _, name := range names {
				var found int
				if err := db.QueryRow("SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?", name).Scan(&found); err != nil || found != 0 {
					t.Errorf("databases %s after the test that created it = %d, %v, want 0", name, found, err)
				}
			}
		})
	}
}

func TestTargetsAreWhatTheirNamesSay(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		var version string
		if err := open(t, target.DSN()).QueryRow("SELECT VERSION()").Scan(&version); err != nil {
			t.Fatal(err)
		}
		if isMaria := strings.Contains(version, "MariaDB"); isMaria != (target.Name == "mariadb") {
			t.Errorf("version of target %s = %s, want one of that server", target.Name, version)
		}
	}
}

func TestServerRestartsAfterAKill(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--max-connections=77"}})
			db := open(t, server.Target().Database(t))
			mustExec(t, db, "CREATE TABLE t (id BIGINT PRIMARY KEY)")
			mustExec(t, db, "INSERT INTO t VALUES (1)")

			if err := server.Kill9(); err != nil {
				t.Fatal(err)
			}
			if err := db.Ping(); err == nil {
				t.Fatal("Ping() after Kill9 = nil, want an error")
			}
			for range 2 { // once when stopped, once when running
				if err := server.Restart(); err != nil {
					t.Fatal(err)
				}
				var rows, limit int
				if err := db.QueryRow("SELECT COUNT(*), @@max_connections FROM t").Scan(&rows, &limit); err != nil {
					t.Fatal(err)
				}
				if rows != 1 || limit != 77 {
					t.Fatalf("rows %d, max_connections %d after a restart, want 1 and 77", rows, limit)
				}
			}
		})
	}
}

func TestPreparedServerStartsAtLaunch(t *testing.T) {
	server, err := mysqltest.Prepare(mysqltest.Config{Args: []string{"--max-connections=77"}})
	if err != nil {
		t.Fatal(err)
	}
	defer server.Stop()
	if help, err := server.RunToEnd("--verbose", "--help"); err != nil || !strings.Contains(help, "max-connections") {
		t.Errorf("help of the server = %.100s, %v, want max-connections in it", help, err)
	}
	if server.Running() || server.Freeze() == nil {
		t.Errorf("Running() before Launch = %t, want false and no success of Freeze()", server.Running())
	}
	db := open(t, server.DSN(""))
	for _, c := range []struct {
		args []string
		want int
	}{{[]string{"--max-connections=88"}, 88}, {nil, 77}} { // further options apply to one start
		if err := server.Launch(c.args...); err != nil {
			t.Fatal(err)
		}
		var limit int
		if err := db.QueryRow("SELECT @@max_connections").Scan(&limit); err != nil || limit != c.want || !server.Running() {
			t.Errorf("max_connections %d, %v, want %d", limit, err, c.want)
		}
		if err := server.Kill9(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestFrozenServerContinues(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{})
	db := open(t, server.DSN(""))
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
	if err := server.Freeze(); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	if err := db.PingContext(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("while it is frozen: %v, want no answer", err)
	}
	if err := server.Thaw(); err != nil {
		t.Fatal(err)
	}
	if err := db.Ping(); err != nil {
		t.Error(err)
	}
	if err := server.Freeze(); err != nil { // Stop works on a frozen server, too
		t.Fatal(err)
	}
}

func TestServerOutlivesTheVariableThatHeldIt(t *testing.T) {
	db := open(t, startAndForget(t))
	for range 3 {
		runtime.GC()
		time.Sleep(100 * time.Millisecond) // the collector's finalizers do not run immediately
	}
	if err := db.Ping(); err != nil {
		t.Fatal(err)
	}
}

//go:noinline
func startAndForget(t *testing.T) (dsn string) {
	server, err := mysqltest.Start(mysqltest.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return server.DSN("") // the janitor ends it with this process
}

func TestBadArgumentIsReportedWithTheServersWords(t *testing.T) {
	_, err := mysqltest.Start(mysqltest.Config{Args: []string{"--no-such-option"}})
	if err == nil || !strings.Contains(err.Error(), "no-such-option") {
		t.Fatalf("error %v, want the server's complaint about no-such-option", err)
	}
}

// TestServerDiesWithItsProcess starts this test binary as a child that starts a server, and ends the child in several ways.
func TestServerDiesWithItsProcess(t *testing.T) {
	if os.Getenv("MYSQLTEST_CHILD") != "" {
		server, err := mysqltest.Start(mysqltest.Config{})
		if err != nil {
			t.Fatal(err)
		}
		os.Stdout.WriteString("\nserver " + server.Addr() + "\n")
		if os.Getenv("MYSQLTEST_CHILD") == "exit" {
			os.Exit(0)
		}
		select {}
	}
	for name, sig := range map[string]syscall.Signal{"exit": 0, "interrupt": syscall.SIGINT, "kill": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			if len(tmp) > 70 { // too long for mysqltest to use it
				var err error
				if tmp, err = os.MkdirTemp("/tmp", "leafsql-"); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { os.RemoveAll(tmp) })
			}
			child := exec.Command(os.Args[0], "-test.run=^TestServerDiesWithItsProcess$")
			child.Env = append(os.Environ(), "MYSQLTEST_CHILD="+name, "TMPDIR="+tmp, mysqltest.EnvData+"=")
			out, err := child.StdoutPipe()
			if err != nil {
				t.Fatal(err)
			}
			if err := child.Start(); err != nil {
				t.Fatal(err)
			}
			defer child.Process.Kill()
			var addr string
			for lines := bufio.NewScanner(out); addr == "" && lines.Scan(); {
				addr, _ = strings.CutPrefix(lines.Text(), "server ")
				if !strings.HasPrefix(lines.Text(), "server ") {
					addr = ""
				}
			}
			if addr == "" {
				t.Fatal("the child started no server")
			}
			if sig != 0 {
				if err := child.Process.Signal(sig); err != nil {
					t.Fatal(err)
				}
			}
			child.Wait()
			eventually(t, "the server still listens", func() bool {
				conn, err := net.Dial("tcp", addr)
				if err == nil {
					conn.Close()
				}
				return errors.Is(err, syscall.ECONNREFUSED)
			})
			eventually(t, "the server's folder is still there", func() bool {
				left, err := filepath.Glob(filepath.Join(tmp, "leafsql-mysqltest-*"))
				return err == nil && len(left) == 0
			})
		})
	}
}

func eventually(t *testing.T, complaint string, ok func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal(complaint)
		}
	}
}
