//go:build unix

package clients

import (
	"bufio"
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A page is the text of a page in docs.
type page string

func readPage(t *testing.T, name string) page {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	return page(text)
}

// blocks returns the code blocks in a language in a section.
func (p page) blocks(t *testing.T, heading, lang string) (code []string) {
	t.Helper()
	_, section, _ := strings.Cut(string(p), "\n"+heading+"\n")
	section, _, _ = strings.Cut(section, "\n#")
	for _, m := range regexp.MustCompile("(?s)```"+lang+"\n(.*?)```").FindAllStringSubmatch(section, -1) {
		code = append(code, m[1])
	}
	if code == nil {
		t.Fatalf("the page has no %s block under %q, want one", lang, heading)
	}
	return code
}

// snippets returns the snippets for a language in the page's table of languages.
func (p page) snippets(t *testing.T, language string) (code []string) {
	t.Helper()
	row := regexp.MustCompile(`(?m)^\| ` + language + ` \|(.*)\|$`).FindStringSubmatch(string(p))
	if row == nil {
		t.Fatalf("docs/proxy.md has no row for %s, want one", language)
	}
	for _, m := range regexp.MustCompile("`([^`]*3307[^`]*)`").FindAllStringSubmatch(row[1], -1) {
		code = append(code, m[1])
	}
	return code
}

// insertRow is the INSERT in a snippet's program, which prints the id.
const insertRow = "INSERT INTO orders (customer) VALUES ('%s')"

// wrappers has the programs around the page's snippets, by language.
var wrappers = map[string]func(t *testing.T, snippet, insert string) *exec.Cmd{
	"PHP": func(t *testing.T, snippet, insert string) *exec.Cmd {
		return command("php", "php", "-r", fmt.Sprintf("$db = %s; $db->query(%q); echo $db instanceof PDO ? $db->lastInsertId() : $db->insert_id;", snippet, insert))(t)
	},
	"Python": func(t *testing.T, snippet, insert string) *exec.Cmd {
		return command("python", "/usr/bin/python3", "-c", fmt.Sprintf("import pymysql\ndb = %s\nc = db.cursor()\nc.execute(%q)\ndb.commit()\nprint(c.lastrowid)", snippet, insert))(t)
	},
	"Java": func(t *testing.T, snippet, insert string) *exec.Cmd {
		return java("java", "../snippet/Snippet.java", snippet, insert)(t)
	},
	"command line": func(t *testing.T, snippet, insert string) *exec.Cmd {
		cmd := command(".", "setsid", "-w", "sh", "-c", fmt.Sprintf(`%s -N -e "%s; SELECT LAST_INSERT_ID()"`, snippet, insert))(t)
		cmd.Stdin = strings.NewReader("secret\n") // it asks for the password, and has no terminal
		return cmd
	},
}

// TestPageConnectsEveryLanguage follows docs/proxy.md: it creates leaf_alloc and the accounts, starts the proxy, and connects a program in
// each language to it.
func TestPageConnectsEveryLanguage(t *testing.T) {
	p := readPage(t, "proxy.md")
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			s := newShop(t, kind, p)
			s.checkCounterRights(t)
			for _, language := range slices.Sorted(maps.Keys(wrappers)) {
				for _, snippet := range p.snippets(t, language) {
					s.runSnippet(t, language, snippet)
				}
			}
		})
	}
}

// A shopServer is the page's server, with a leafsql proxy in front.
type shopServer struct {
	db        *sql.DB
	addresses *strings.Replacer // replaces the page's addresses
	proxy     string            // host:port
	page      string            // address of -metrics
	kind      mysqltest.Kind
}

// newShop follows the page up to the start of the proxy.
func newShop(t *testing.T, kind mysqltest.Kind, p page) *shopServer {
	t.Helper()
	tools := t.TempDir()
	if out, err := exec.Command("go", "build", "-C", "../../cmd/leafsql", "-buildvcs=false", "-o", filepath.Join(tools, "leafsql"), ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	server := mysqltest.Run(t, mysqltest.Config{Kind: kind})
	s := &shopServer{db: open(t, addParameters(server.DSN(""), "multiStatements=true")), kind: kind}
	t.Cleanup(func() { s.db.Close() })
	s.runScript(t, `CREATE DATABASE shop;
CREATE TABLE shop.orders (id BIGINT NOT NULL PRIMARY KEY, customer VARCHAR(64) NOT NULL);
CREATE USER admin IDENTIFIED BY 'secret';
GRANT ALL ON *.* TO admin WITH GRANT OPTION;`)
	s.addresses = strings.NewReplacer("127.0.0.1:3306", server.Addr(), "127.0.0.1:3307", "127.0.0.1:0")
	shells := p.blocks(t, "## Quick start", "sh")
	shell := func(code string) *exec.Cmd {
		cmd := exec.Command("sh", "-ec", s.addresses.Replace(code))
		cmd.Env = append(os.Environ(), "PATH="+tools+":"+os.Getenv("PATH"))
		return cmd
	}
	s.runScript(t, p.blocks(t, "## Quick start", "sql")[0])
	if out, err := shell(shells[0]).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	s.proxy, s.page = startListening(t, shell(strings.Replace(shells[1], "\nleafsql proxy", "\nexec leafsql proxy -metrics 127.0.0.1:0", 1)))
	s.addresses = strings.NewReplacer("3307", s.proxy[strings.LastIndex(s.proxy, ":")+1:])
	return s
}

// startListening starts a command, which has to be leafsql proxy, and returns the addresses at which it listens.
// It stops the command at the end of the test.
func startListening(t *testing.T, cmd *exec.Cmd) (proxy, page string) {
	t.Helper()
	log, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	t.Cleanup(func() {
		cmd.Process.Signal(syscall.SIGTERM)
		io.Copy(&said, log)
		if err := cmd.Wait(); err != nil {
			t.Errorf("leafsql proxy: %v\n%s", err, said.String())
		}
	})
	lines := bufio.NewScanner(io.TeeReader(log, &said))
	for lines.Scan() {
		if m := regexp.MustCompile(`page and metrics.* address=http://(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			page = m[1]
		}
		if m := regexp.MustCompile(`serving clients.* address=(\S+)`).FindStringSubmatch(lines.Text()); m != nil {
			return m[1], page
		}
	}
	t.Fatalf("leafsql proxy ended without its addresses in the log, want them\n%s", said.String())
	return "", ""
}

func (s *shopServer) runScript(t *testing.T, script string) {
	t.Helper()
	if _, err := s.db.Exec(script); err != nil {
		t.Fatalf("%v in\n%s", err, script)
	}
}

// checkCounterRights reports an error if the application's account may change a counter.
func (s *shopServer) checkCounterRights(t *testing.T) {
	t.Helper()
	app := open(t, "app:secret@tcp("+s.proxy+")/shop")
	defer app.Close()
	_, err := app.Exec("UPDATE leafsql.leaf_alloc SET max_id = 1")
	if e, ok := errors.AsType[*mysql.MySQLError](err); !ok || e.Number != 1142 {
		t.Errorf("an UPDATE of leaf_alloc by the application's account: got %v, want error 1142", err)
	}
}

// runSnippet runs a program that connects to the proxy, inserts a row and prints its
// id.
func (s *shopServer) runSnippet(t *testing.T, language, snippet string) {
	t.Helper()
	name := language + " " + snippet[:min(12, len(snippet))]
	name = strings.ReplaceAll(name, "'", "")
	shown := s.addresses.Replace(snippet)
	if s.kind == mysqltest.MySQL && strings.HasPrefix(snippet, "jdbc:mysql:") {
		const wanted = "allowPublicKeyRetrieval=true"
		if !strings.Contains(string(readPage(t, "proxy.md")), "`"+wanted+"`") {
			t.Errorf("docs/proxy.md does not say that Connector/J wants %s", wanted)
		}
		shown += "?" + wanted
	}
	cmd := wrappers[language](t, shown, fmt.Sprintf(insertRow, name))
	cmd.Env = append(os.Environ(), cmd.Env...)
	out, err := cmd.Output()
	if err != nil {
		var ended *exec.ExitError
		errors.As(err, &ended)
		t.Errorf("%s: %v\n%s\n%s", snippet, err, out, ended.Stderr)
		return
	}
	var id string
	if err := s.db.QueryRow("SELECT id FROM shop.orders WHERE customer = ?", name).Scan(&id); err != nil || strings.TrimSpace(string(out)) != id {
		t.Errorf("%s: printed id = %s, want the row's id %s, %v", snippet, out, id, err)
	}
}
