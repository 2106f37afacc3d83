//go:build packages

// Package contrib tests the packages of leafsql: each file here is read by the program that it is for, and each package is
// built and run. `make packages` installs the programs that the tests need.
package contrib

import (
	"bufio"
	"bytes"
	"context"
	"database/sql"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

const version = "v9.8.7-test"

// made builds the release for this platform and unpacks it.
var (
	folder        string
	releaseFolder = sync.OnceValue(func() (err error) {
		if folder, err = os.MkdirTemp("", "leafsql-packages-"); err != nil {
			return err
		}
		out, err := exec.Command("sh", "-ec", `make -s -C .. release VERSION="$1" PLATFORMS="$2" OUT="$3"; tar -xzf "$3"/*.tar.gz -C "$3" --strip-components=1`,
			"sh", version, runtime.GOOS+"/"+runtime.GOARCH, folder).CombinedOutput()
		if err != nil {
			err = fmt.Errorf("%w\n%s", err, out)
		}
		return err
	})
)

// release returns a folder with the files of make release, and the archive unpacked.
func release(t *testing.T) string {
	t.Helper()
	if err := releaseFolder(); err != nil {
		t.Fatal(err)
	}
	return folder
}

func TestMain(m *testing.M) {
	code := m.Run()
	if folder != "" {
		os.RemoveAll(folder)
	}
	os.Exit(code)
}

// run returns the standard output of a command. If the command fails, its standard error is logged.
func run(t *testing.T, in string, name string, args ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Stdin = strings.NewReader(in)
	var said bytes.Buffer
	cmd.Stderr = &said
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s%s", name, strings.Join(args, " "), err, out, said.String())
	}
	return string(out)
}

func read(t *testing.T, file string) []byte {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// shop runs an SQL script on a new MariaDB, and returns the server's address.
func shop(t *testing.T, script string) (addr string) {
	t.Helper()
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB})
	db, err := sql.Open("mysql", server.DSN("")+"?multiStatements=true")
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if _, err := db.Exec(script); err != nil {
		t.Fatal(err)
	}
	return server.Addr()
}

// A daemon is a command that logs its addresses.
type daemon struct {
	*exec.Cmd
	log    io.Reader
	output bytes.Buffer // its log so far
}

// startDaemon starts a command, and returns the ports from those lines of its log that contain the given texts.
func startDaemon(t *testing.T, cmd *exec.Cmd, texts ...string) (d *daemon, ports []string) {
	t.Helper()
	d = &daemon{Cmd: cmd}
	var err error
	if d.log, err = cmd.StderrPipe(); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ports = make([]string, len(texts))
	lines := bufio.NewScanner(io.TeeReader(d.log, &d.output))
	for slices.Contains(ports, "") {
		if !lines.Scan() {
			t.Fatalf("the process ended without its addresses in the log, want addresses for %d listeners\n%s", len(ports), d.output.String())
		}
		for i, text := range texts {
			if m := regexp.MustCompile(text + `.*\baddress\W{1,3}(?:http://)?[^\s",]*:(\d+)`).FindStringSubmatch(lines.Text()); m != nil {
				ports[i] = m[1]
			}
		}
	}
	return d, ports
}

// end ends the command with SIGTERM.
func (d *daemon) end(t *testing.T) {
	t.Helper()
	d.Process.Signal(syscall.SIGTERM)
	io.Copy(&d.output, d.log)
	if err := d.Wait(); err != nil {
		t.Errorf("exit after SIGTERM: %v, want status 0\n%s", err, d.output.String())
	}
}

// checkServe starts leafsql serve, and sends the requests of probes and clients. The address is in its log.
func checkServe(t *testing.T, cmd *exec.Cmd, token string) {
	t.Helper()
	d, ports := startDaemon(t, cmd, "serving ids")
	get := func(path string) (body string, status int) {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		req, err := http.NewRequestWithContext(ctx, "GET", "http://127.0.0.1:"+ports[0]+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		if token != "" && !strings.HasSuffix(path, "z") {
			req.Header.Set("Authorization", "Bearer "+token)
		}
		res, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatalf("%v\n%s", err, d.output.String())
		}
		defer res.Body.Close()
		text, err := io.ReadAll(res.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(text), res.StatusCode
	}
	for path, want := range map[string]string{"/healthz": "ok\n", "/readyz": "ready\n", "/api/segment/get/orders": "1"} {
		if body, status := get(path); body != want || status != 200 {
			t.Errorf("%s: %d %q, want %q\n%s", path, status, body, want, d.output.String())
		}
	}
	if body, _ := get("/metrics"); !strings.Contains(body, `leafsql_build_info{`) {
		t.Errorf("metrics have no leafsql_build_info, want it\n%s", body)
	}
	d.end(t)
}

const allocSQL = `CREATE DATABASE shop;
CREATE TABLE shop.leaf_alloc (biz_tag varchar(128) NOT NULL PRIMARY KEY, max_id bigint NOT NULL, step int NOT NULL);
INSERT INTO shop.leaf_alloc VALUES ('orders', 1, 1000);
CREATE USER app IDENTIFIED BY 'secret';
GRANT SELECT, UPDATE ON shop.leaf_alloc TO app;
`

func writeTemp(t *testing.T, name, content string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
