package docs

import (
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/haproxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// config returns the page's options, with another server_id for each server.
func (r *runBook) config() mysqltest.Config {
	var args []string
	for line := range strings.Lines(r.block("ini " + r.kindName())) {
		if name, value, ok := strings.Cut(line, " = "); ok {
			value, _, _ = strings.Cut(value, "#")
			args = append(args, "--"+strings.ReplaceAll(name, "_", "-")+"="+strings.TrimSpace(value))
		}
	}
	r.servers++
	return mysqltest.Config{Kind: r.kind, Args: append(args, fmt.Sprintf("--server-id=%d", r.servers))}
}

// kindName returns the name of the servers' kind, as blocks of the page have it.
func (r *runBook) kindName() string {
	return map[mysqltest.Kind]string{mysqltest.MariaDB: "MariaDB", mysqltest.MySQL: "MySQL"}[r.kind]
}

// block returns the page's only block of a language.
func (r *runBook) block(lang string) string {
	r.t.Helper()
	var found []string
	for _, b := range readPage(r.t, haPage).blocks {
		if b.lang == lang {
			found = append(found, b.code)
		}
	}
	if len(found) != 1 {
		r.t.Fatalf("%s has %d blocks of %q, want 1", haPage, len(found), lang)
	}
	return found[0]
}

// runBlocks runs the SQL and the commands under a heading.
func (r *runBook) runBlocks(sub string) {
	r.t.Helper()
	ran := 0
	for _, b := range readPage(r.t, haPage).blocks {
		if b.sub != sub || b.lang != "sql" && b.lang != "sql "+r.kindName() && b.lang != "sh" && b.lang != "haproxy" {
			continue
		}
		ran++
		r.t.Logf("%s:%d", haPage, b.line)
		switch {
		case b.lang == "haproxy":
			r.startBalancer(b.code)
		case b.lang == "sh":
			r.runShell(b.code)
		case strings.Contains(b.code, "-- finds none"):
			r.waitForNoRow(b.code)
		default:
			if strings.Contains(b.code, "_HOST='db1'") {
				r.copyToOldPrimary()
			}
			r.runSQL(b.code)
		}
	}
	if ran == 0 {
		r.t.Errorf("%s: nothing to run under %q", haPage, sub)
	}
}

// runSQL runs a block, each part of it on the server that it names.
func (r *runBook) runSQL(code string) {
	r.t.Helper()
	code = regexp.MustCompile(`(MASTER|SOURCE)_HOST='(\w+)'`).ReplaceAllStringFunc(code, func(found string) string {
		side, name, _ := strings.Cut(strings.Trim(found, "'"), "_HOST='")
		host, port, _ := strings.Cut(r.hosts[name].Addr(), ":")
		return fmt.Sprintf("%s_HOST='%s', %[1]s_PORT=%[3]s", side, host, port)
	})
	for _, part := range regexp.MustCompile(`(?m)^-- on `).Split(code, -1)[1:] {
		runSQL(r.t, r.hosts, "-- on "+strings.ReplaceAll(part, "10.0.0.5", "127.0.0.1"))
	}
}

// runShell runs commands as an operator types them, and returns their output.
func (r *runBook) runShell(code string) string {
	r.t.Helper()
	r.writeClientPrograms()
	s := shell{hosts: r.hosts, exports: r.exports}
	output := s.run(r.t, strings.ReplaceAll(code, "10.0.0.5:3306", r.front))
	r.exports = s.exports
	return output
}

// writeClientPrograms writes programs mysql and mysqldump for the shell, which connect to the servers by the
// page's names.
func (r *runBook) writeClientPrograms() {
	r.t.Helper()
	writeClients(r.t, r.dir, r.hosts)
	if r.exports == "" {
		r.exports = fmt.Sprintf("export PATH=%s:$PATH\ncd %[1]s\n", r.dir)
	}
}

// startBalancer starts HAProxy as the page configures it.
func (r *runBook) startBalancer(config string) {
	r.t.Helper()
	haproxytest.Run(r.t, strings.NewReplacer("10.0.0.5:3306", r.front, "10.0.0.11:3306", r.hosts["db0"].Addr(), "10.0.0.12:3306", r.hosts["db1"].Addr(),
		"/etc/haproxy", r.dir).Replace(config))
	runSQL(r.t, r.hosts, "-- on db0\n"+fmt.Sprintf(orders, "")+app+admin+fmt.Sprintf(leaf, "shop", "orders")+
		"CREATE TABLE shop.events (id BIGINT NOT NULL PRIMARY KEY, what VARCHAR(64) NOT NULL);\n")
	r.runShell("leafsql init -new-registry -dsn 'admin:secret@tcp(10.0.0.5:3306)/shop?leafTables=events:id:snowflake'\n")
}

// waitForNoRow waits until the replica has applied enough for a query to find no row.
func (r *runBook) waitForNoRow(code string) {
	r.t.Helper()
	name, query, _ := strings.Cut(strings.TrimPrefix(code, "-- on "), "\n")
	query, _, _ = strings.Cut(query, "; --")
	db := r.open(name)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var found int
		err := db.QueryRow("SELECT COUNT(*) FROM (" + query + ") AS t").Scan(&found)
		if err == nil && found == 0 {
			return
		}
		if time.Now().After(deadline) {
			r.t.Fatalf("%s finds %d rows on %s (%v)", query, found, name, err)
		}
	}
}

// copyToOldPrimary replaces a tool that copies the new primary's data: it empties the old primary, which then applies
// the whole binlog.
func (r *runBook) copyToOldPrimary() {
	t := r.t
	t.Helper()
	config := r.config()
	empty, err := mysqltest.Prepare(config)
	if err != nil {
		t.Fatal(err)
	}
	defer empty.Stop()
	old := r.hosts["db0"]
	for _, err := range []error{old.Kill9(), os.RemoveAll(old.DataDir()), os.Rename(empty.DataDir(), old.DataDir()), old.Launch(config.Args[len(config.Args)-1])} {
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestTopologiesNameTests: each topology of the page has a test that exists, or is marked as not run.
func TestTopologiesNameTests(t *testing.T) {
	for _, row := range readTable(t, haPage, "## Where to keep leaf_alloc") {
		if checkNamedTests(t, haPage, row[4]); !strings.Contains(row[4], "`Test") && !strings.HasSuffix(row[4], "not run") {
			t.Errorf("%s: row %s names no test, want a test or 'not run'", haPage, row[0])
		}
	}
}
