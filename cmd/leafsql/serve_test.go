package main

import (
	"bufio"
	"database/sql"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	osexec "os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestMain allows the test binary to run as the command.
func TestMain(m *testing.M) {
	if os.Getenv("LEAFSQL_TEST_MAIN") != "" {
		main()
	}
	os.Exit(m.Run())
}

func leafsqlCommand(t *testing.T, args ...string) *osexec.Cmd {
	cmd := osexec.CommandContext(t.Context(), os.Args[0], args...)
	cmd.Env = append(os.Environ(), "LEAFSQL_TEST_MAIN=1")
	return cmd
}

// TestServeEndsCleanly: the process serves with Java Leaf's settings, and ends cleanly after a signal.
func TestServeEndsCleanly(t *testing.T) {
	dsn := mysqltest.Database(t)
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{
		"CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL)",
		"INSERT INTO leaf_alloc VALUES ('orders', 1000, 100)",
	} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "leaf.properties")
	text := fmt.Sprintf("leaf.name=test\nleaf.snowflake.enable=false\nleaf.jdbc.url=jdbc:mysql://%s/%s\nleaf.jdbc.username=%s\nleaf.jdbc.password=%s\n",
		cfg.Addr, cfg.DBName, cfg.User, cfg.Passwd)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := leafsqlCommand(t, "serve", "-listen", "127.0.0.1:0", "-config", file)
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(log)
	var server string
	for server == "" && lines.Scan() {
		if m := regexp.MustCompile(`serving ids.* address=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			server = m[1]
		}
	}
	res, err := http.Get(server + "/api/segment/get/orders")
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(res.Body)
	res.Body.Close()
	if err != nil || string(body) != "1000" {
		t.Errorf("answer = %d %q, %v, want 1000", res.StatusCode, body, err)
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, _ := io.ReadAll(log)
	if err := cmd.Wait(); err != nil || strings.Contains(string(rest), cfg.Passwd) && cfg.Passwd != "" {
		t.Errorf("end of serve: %v, want nil and a log without the password:\n%s", err, rest)
	}
}

// TestExitCodesDistinguishHelpAndMistakes: help exits with 0, and an impossible request with 2.
func TestExitCodesDistinguishHelpAndMistakes(t *testing.T) {
	for args, want := range map[string]int{"serve -h": 0, "": 2, "nosuch": 2, "serve -nosuch": 2, "serve": 2, "serve -dsn x": 2, "serve -log-format xml": 2, "serve -dsn app@tcp(h:1)/db -listen 256.0.0.1:1": 2} {
		cmd := leafsqlCommand(t, strings.Fields(args)...)
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != want || len(out) == 0 {
			t.Errorf("leafsql %s: exit code %d, want %d\n%s", args, got, want, out)
		}
	}
}

// TestJSONLogsAreObjects: with -log-format json each line is an object with a time, a level and a text, including the
// last line of a process that failed.
func TestJSONLogsAreObjects(t *testing.T) {
	for _, c := range []struct {
		command, listens, listen, last string
		code                           int
	}{
		{"serve", "serving ids", "127.0.0.1:0", "leafsql: ended", 0}, {"serve", "", "256.0.0.1:1", "leafsql: failed", 2},
		{"proxy", "serving clients", "127.0.0.1:0", "leafsql: ended", 0}, {"proxy", "", "127.0.0.1:x", "leafsql: failed", 2},
	} {
		cmd := leafsqlCommand(t, c.command, "-dsn", "app:s3cret@tcp(127.0.0.1:1)/away", "-listen", c.listen, "-log-format", "json")
		log, err := cmd.StderrPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		type entry struct{ Time, Level, Msg, Address, Version, Err string }
		var line, last entry // background work may log something after it
		for lines := bufio.NewScanner(log); lines.Scan(); {
			line = entry{}
			if err := json.Unmarshal(lines.Bytes(), &line); err != nil || line.Time == "" || line.Level == "" || line.Msg == "" {
				t.Errorf("log line = %s, %v, want an object with time, level and msg", lines.Text(), err)
			}
			if line.Msg == c.last {
				last = line
			}
			if line.Msg == "leafsql: "+c.listens {
				if line.Address == "" || line.Version == "" {
					t.Errorf("log line = %s, want an address and a version", lines.Text())
				}
				cmd.Process.Signal(syscall.SIGTERM)
			}
		}
		cmd.Wait()
		if code := cmd.ProcessState.ExitCode(); code != c.code || last.Msg != c.last || (last.Err != "") != (code != 0) {
			t.Errorf("%s: exit code = %d, last lines %+v and %+v, want %d and %q", c.command, code, last, line, c.code, c.last)
		}
	}
}

// TestServeLowersLimitWithFewFiles: if the process may open fewer files than -max-connections needs, a client with idle
// connections still does not lock out others, and the log shows the lower limit.
func TestServeLowersLimitWithFewFiles(t *testing.T) {
	cmd := osexec.CommandContext(t.Context(), "sh", "-c", `ulimit -n 512; exec "$0" serve -dsn "app@tcp(127.0.0.1:1)/away" -listen 127.0.0.1:0`, os.Args[0])
	cmd.Env = append(os.Environ(), "LEAFSQL_TEST_MAIN=1")
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	defer cmd.Process.Kill()
	lines, address, told := bufio.NewScanner(log), "", false
	for address == "" && lines.Scan() {
		told = told || strings.Contains(lines.Text(), "fewer connections than -max-connections are accepted") && strings.Contains(lines.Text(), "connections=448")
		if m := regexp.MustCompile(`serving ids.* address=http://(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			address = m[1]
		}
	}
	if !told {
		t.Error("log has no line about the lower limit, want one")
	}
	for i := range 600 {
		c, err := net.DialTimeout("tcp", address, 20*time.Second)
		if err != nil {
			t.Fatalf("connection %d: %v", i, err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(20 * time.Second))
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		if line, err := bufio.NewReader(c).ReadString('\n'); !strings.HasPrefix(line, "HTTP/1.1 200") {
			t.Fatalf("connection %d: answer = %q, %v, want 200", i, line, err)
		}
	}
}
