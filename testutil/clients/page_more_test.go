//go:build unix && clients

package clients

import (
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// init adds the programs with clients that are not in the distribution.
func init() {
	wrappers["Node"] = func(t *testing.T, snippet, insert string) *exec.Cmd {
		return node("-e", fmt.Sprintf("const mysql = require('mysql2'); const db = %s; db.query(%q, (err, res) => { if (err) throw err; console.log(res.insertId); db.end() })", snippet, insert))(t)
	}
	wrappers["Rust"] = func(t *testing.T, snippet, insert string) *exec.Cmd { return rust("insert", snippet, insert)(t) }
	wrappers["Ruby"] = func(t *testing.T, snippet, insert string) *exec.Cmd {
		return command("ruby", "ruby", "-rmysql2", "-e", fmt.Sprintf("db = %s; db.query(%q); puts db.last_id", snippet, insert))(t)
	}
}

// TestPageHAProxyPassesInserts runs HAProxy with the page's configuration in front of the proxy, and inserts a row through it, once
// the proxy has answered its checks.
func TestPageHAProxyPassesInserts(t *testing.T) {
	p := readPage(t, "proxy.md")
	s := newShop(t, mysqltest.MariaDB, p)
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	file, socket := filepath.Join(dir, "haproxy.cfg"), filepath.Join(dir, "socket")
	_, pagePort, _ := strings.Cut(s.page, ":")
	config := fmt.Sprintf("global\n    stats socket %s\n\n", socket) + strings.NewReplacer("10.0.0.5:3306", fmt.Sprintf("127.0.0.1:%d", port),
		"10.0.0.11:3307", s.proxy, "10.0.0.12:3307", s.proxy, "port 9307", "port "+pagePort).Replace(p.blocks(t, "### HAProxy", "haproxy")[0])
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	path := "/usr/sbin/haproxy" // may not be on the PATH
	if out, err := exec.Command(path, "-c", "-f", file).CombinedOutput(); err != nil || strings.Contains(string(out), "WARNING") {
		t.Fatalf("%v; run .ci/install haproxy\n%s", err, out)
	}
	haproxy := exec.Command(path, "-db", "-f", file)
	if err := haproxy.Start(); err != nil {
		t.Fatal(err)
	}
	defer haproxy.Wait()
	defer haproxy.Process.Kill()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		state := serverStates(socket)
		if strings.Count(state, ",L7OK,") == 2 {
			break
		}
		if strings.Contains(state, ",DOWN,") || time.Now().After(end) {
			t.Fatalf("state of HAProxy's checks, want no server DOWN:\n%s", state)
		}
	}
	s.addresses = strings.NewReplacer("3307", fmt.Sprint(port))
	s.runSnippet(t, "PHP", p.snippets(t, "PHP")[0])
}

// serverStates returns the states of the servers that HAProxy reports.
func serverStates(socket string) string {
	c, err := net.Dial("unix", socket)
	if err != nil {
		return ""
	}
	defer c.Close()
	io.WriteString(c, "show stat\n")
	text, _ := io.ReadAll(c)
	return string(text)
}

// examples has the commands that run the examples of docs/languages.md, by the language of their code.
var examples = map[string]func(t *testing.T, code string) *exec.Cmd{
	"php":    func(t *testing.T, code string) *exec.Cmd { return command("php", "php", "-r", code)(t) },
	"python": func(t *testing.T, code string) *exec.Cmd { return python("-c", code)(t) },
	"java": func(t *testing.T, code string) *exec.Cmd {
		file := filepath.Join(t.TempDir(), "Example.java")
		if err := os.WriteFile(file, []byte(code), 0o600); err != nil {
			t.Fatal(err)
		}
		return java("java", file)(t)
	},
	"js":   func(t *testing.T, code string) *exec.Cmd { return node("-e", code)(t) },
	"ruby": func(t *testing.T, code string) *exec.Cmd { return command("ruby", "ruby", "-e", code)(t) },
	"rust": func(t *testing.T, code string) *exec.Cmd {
		cmd := command(".", "sh", "-c", `cat >example.rs && rustc --edition 2021 --extern diesel -L "$0" example.rs && ./example`, filepath.Join(installedFolder(t, "rust"), "target", "debug", "deps"))(t)
		cmd.Dir, cmd.Stdin = t.TempDir(), strings.NewReader(code)
		return cmd
	},
	"perl": func(t *testing.T, code string) *exec.Cmd { return command("perl", "perl", "-e", code)(t) },
	"sh":   func(t *testing.T, code string) *exec.Cmd { return command(".", "sh", "-c", code)(t) },
}

// TestExamplesOfLanguagesPrintIDs runs every example of docs/languages.md through the proxy. Each inserts one row and prints its id.
func TestExamplesOfLanguagesPrintIDs(t *testing.T) {
	blocks := regexp.MustCompile("(?s)```([a-z]+)\n(.*?)```").FindAllStringSubmatch(string(readPage(t, "languages.md")), -1)
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, kind, readPage(t, "proxy.md"))
			for i, b := range blocks {
				cmd := examples[b[1]](t, s.addresses.Replace(b[2]))
				cmd.Env = append(os.Environ(), cmd.Env...)
				out, err := cmd.CombinedOutput()
				var rows int
				var last string
				if err := s.db.QueryRow("SELECT COUNT(*), MAX(id) FROM shop.orders WHERE customer = 'ann'").Scan(&rows, &last); err != nil {
					t.Fatal(err)
				}
				if got := strings.TrimSpace(string(out)); err != nil || rows != i+1 || got != last {
					t.Fatalf("example %d, in %s: printed %q, %v, with %d rows; want the last id %s and %d rows", i+1, b[1], got, err, rows, last, i+1)
				}
			}
		})
	}
}
