package docs

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestOneToTwo moves a shop from one database to two and back, with the commands, the SQL and the deployments of
// one-to-two.md, while the shop's program writes and reads. Requests fail only as the page announces.
func TestOneToTwo(t *testing.T) {
	kinds := mysqltest.Kinds()
	if testing.Short() {
		kinds = kinds[:1]
	}
	buildToolsFolder(t) // before the program runs
	for _, kind := range kinds {
		all := serversOf(t, kind)
		all["db0"].Target().SkipUnless(t, "taking AUTO_INCREMENT off a column that a foreign key uses", 100300, 0)
		hosts := map[string]*mysqltest.Server{"db0": all["db0"], "db1": all["db1"]}
		for _, way := range []struct {
			prepared string
			inShop   bool
		}{{"An empty schema", false}, {"A clone", false}, {"A clone", true}} {
			name := string(kind) + "/" + way.prepared
			if way.inShop {
				name += " after migration.md"
			}
			t.Run(name, func(t *testing.T) {
				o := &oneToTwoRun{t: t, shell: shell{hosts: hosts}, log: newRequests(), inShop: way.inShop}
				o.followPage(way.prepared)
			})
		}
	}
}

// A oneToTwoRun is one run of the page.
type oneToTwoRun struct {
	t *testing.T
	shell
	running *program
	log     *requests
	inShop  bool // leaf_alloc is in the database shop, as migration.md creates it
}

// requestsPerBlock is the number of requests that the program completes between two blocks of
// the page.
const requestsPerBlock = 40

// followPage follows the page, with one of the two ways in which it prepares the second database.
func (o *oneToTwoRun) followPage(prepared string) {
	t := o.t
	for _, name := range []string{"db0", "db1"} {
		runSQL(t, o.hosts, "-- on "+name+"\nDROP DATABASE IF EXISTS shop;\nDROP DATABASE IF EXISTS leaf;\nDROP USER IF EXISTS app, admin;\n"+
			"CREATE USER admin IDENTIFIED BY 'secret';\nGRANT ALL PRIVILEGES ON *.* TO admin WITH GRANT OPTION;\n")
	}
	runSQL(t, o.hosts, "CREATE DATABASE shop;\n")
	defer func() {
		if o.running != nil {
			o.running.stop()
		}
		o.log.print(t)
	}()
	var at block
	for _, b := range readPage(t, "one-to-two.md").blocks {
		before := at
		if at = b; (b.sub == "An empty schema" || b.sub == "A clone") && b.sub != prepared {
			continue
		}
		if b.section == "Rollback" && before.section != b.section {
			o.verify()
		}
		o.log.enterStep(cmp.Or(b.sub, b.section))
		if b.sub == "A clone" && before.sub != b.sub {
			o.copyDatabase()
		}
		t.Logf("one-to-two.md:%d", b.line)
		if o.inShop {
			b.code = storeInShop.Replace(b.code)
			if !strings.Contains(b.code, "DSN1=") {
				b.code = strings.ReplaceAll(b.code, "&leafStore=app:secret@tcp(db0:3306)%2Fshop", "") // as in migration.md
			}
		}
		switch b.lang {
		case "sql":
			runSQL(t, o.hosts, b.code)
		case "sh":
			o.shell.run(t, b.code)
		case "sh deploy", "sh restart":
			o.deploy(b.code, b.lang == "sh restart")
		default:
			t.Fatalf("what is a block of %q?", b.lang)
		}
		if o.running != nil {
			o.running.awaitRequests(requestsPerBlock)
		}
	}
	o.running.stop()
	o.running = nil
	o.verify()
	o.checkAnnouncedErrors()
}

// storeInShop changes the blocks of the page as its section "After Migration" says.
var storeInShop = strings.NewReplacer("%2Fleaf", "%2Fshop", "CREATE DATABASE leaf;", "", "leaf.leaf_alloc", "shop.leaf_alloc")

var setting = regexp.MustCompile(`(?m)^(\w+)='?(.*?)'?$`)

// deploy starts the program with the settings of a block. It ends the running program afterwards, or before it if the
// page requires that.
func (o *oneToTwoRun) deploy(code string, restart bool) {
	settings := map[string]string{}
	for _, m := range setting.FindAllStringSubmatch(replaceAddresses(o.hosts, code), -1) {
		settings[m[1]] = m[2]
	}
	before := o.running
	if restart {
		o.running = nil
		before.stop()
	}
	o.running = start(o.t, settings, o.log)
	if before != nil && !restart {
		o.running.awaitRequests(requestsPerBlock) // both programs are running
		before.stop()
	}
}

// checkAnnouncedErrors compares the errors of requests with those on the page.
func (o *oneToTwoRun) checkAnnouncedErrors() {
	said := map[string][]string{}
	for _, row := range readTable(o.t, "one-to-two.md", "## Requests that fail") {
		for _, step := range regexp.MustCompile(`\(#([\w-]+)\)`).FindAllStringSubmatch(row[0], -1) {
			said[step[1]] = append(said[step[1]], row[1])
		}
	}
	refused := false
	for _, f := range o.log.failures {
		if !slices.Contains(said[anchor(f.began)], f.err) && !slices.Contains(said[anchor(f.ended)], f.err) {
			o.t.Errorf("in %q a request fails, which the page does not announce: %s", f.ended, f.err)
		}
		refused = refused || f.err == "1644"
	}
	if !refused {
		o.t.Error("the switch refuses no request: the page announces it, and the test does not see it")
	}
}

// verify checks the databases: every acknowledged row is stored exactly once, and rows that belong together are
// together.
func (o *oneToTwoRun) verify() {
	t := o.t
	o.t.Helper()
	count := open(t, o.hosts["db0"])
	defer count.Close()
	count.SetMaxOpenConns(1)
	must := func(text string) {
		t.Helper()
		if _, err := count.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	must("CREATE DATABASE counted")
	defer count.Exec("DROP DATABASE counted")
	must("CREATE TABLE counted.ids (tab VARCHAR(9), id BIGINT, of_order BIGINT, db VARCHAR(9), KEY (tab, id))")
	if o.running != nil {
		o.running.gate.Lock()
		defer o.running.gate.Unlock()
	}
	for name, server := range o.hosts {
		db := open(t, server)
		defer db.Close()
		for tab, order := range map[string]string{"orders": "id", "items": "order_id", "notes": "order_id"} {
			rows, err := db.Query(fmt.Sprintf("SELECT id, %s FROM shop.%s", order, tab))
			if err != nil {
				if name == "db1" {
					continue // the row does not exist yet
				}
				t.Fatal(err)
			}
			var values []string
			for rows.Next() {
				var id, of int64
				if err := rows.Scan(&id, &of); err != nil {
					t.Fatal(err)
				}
				values = append(values, fmt.Sprintf("('%s', %d, %d, '%s')", tab, id, of, name))
			}
			if err := errors.Join(rows.Err(), rows.Close()); err != nil {
				t.Fatal(err)
			}
			if len(values) > 0 {
				must("INSERT INTO counted.ids VALUES " + strings.Join(values, ", "))
			}
		}
	}
	figure := func(query string) (n int) {
		t.Helper()
		if err := count.QueryRow(query).Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, tab := range []string{"orders", "items", "notes"} {
		where := " FROM counted.ids WHERE tab = '" + tab + "'"
		rows, twice, on1 := figure("SELECT COUNT(*)"+where), figure("SELECT COUNT(*) - COUNT(DISTINCT id)"+where), figure("SELECT COUNT(*)"+where+" AND db = 'db1'")
		t.Logf("%s: %d rows, %d of them on db1, %d ids twice", tab, rows, on1, twice)
		if twice != 0 || rows != o.log.expectedRows(tab) {
			t.Errorf("%s: duplicate ids = %d, rows = %d, want 0 and the %d acknowledged rows", tab, twice, rows, o.log.expectedRows(tab))
		}
	}
	if n := figure("SELECT COUNT(*) FROM counted.ids AS part LEFT JOIN counted.ids AS whole ON whole.tab = 'orders' AND whole.id = part.of_order AND whole.db = part.db WHERE whole.id IS NULL"); n != 0 {
		t.Errorf("rows on another database than their order = %d, want 0", n)
	}
	must("CREATE TABLE counted.told (id BIGINT PRIMARY KEY)")
	must("INSERT INTO counted.told VALUES " + o.log.orderValues())
	if n := figure("SELECT COUNT(*) FROM counted.told WHERE id NOT IN (SELECT id FROM counted.ids WHERE tab = 'orders')"); n != 0 {
		t.Errorf("lost orders = %d, want 0", n)
	}
}

// copyDatabase copies all of db0 to db1, as a replica or a dump does.
func (o *oneToTwoRun) copyDatabase() {
	t, ctx := o.t, context.Background()
	var sessions [2]*sql.Conn
	for i, name := range []string{"db0", "db1"} {
		db := open(t, o.hosts[name])
		defer db.Close()
		var err error
		if sessions[i], err = db.Conn(ctx); err != nil {
			t.Fatal(err)
		}
		defer sessions[i].Close()
	}
	from, to := sessions[0], sessions[1]
	ask := func(query string) (rows [][]any) {
		t.Helper()
		r, err := from.QueryContext(ctx, query)
		if err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		defer r.Close()
		columns, _ := r.Columns()
		for r.Next() {
			row := make([]any, len(columns))
			for i := range row {
				row[i] = new(sql.NullString)
			}
			if err := r.Scan(row...); err != nil {
				t.Fatal(err)
			}
			rows = append(rows, row)
		}
		return rows
	}
	do := func(text string, args ...any) {
		t.Helper()
		if _, err := to.ExecContext(ctx, text, args...); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
	}
	text := func(v any) string { return v.(*sql.NullString).String }
	do("SET SESSION foreign_key_checks = 0")
	if _, err := from.ExecContext(ctx, "START TRANSACTION WITH CONSISTENT SNAPSHOT"); err != nil {
		t.Fatal(err)
	}
	for _, database := range []string{"leaf", "shop"} {
		do("CREATE DATABASE " + database)
		do("USE " + database)
		for _, tab := range ask("SELECT table_name FROM information_schema.tables WHERE table_schema = '" + database + "'") {
			name := database + "." + text(tab[0])
			do(text(ask("SHOW CREATE TABLE " + name)[0][1]))
			for rows := range slices.Chunk(ask("SELECT * FROM "+name), 1000) {
				row := "(?" + strings.Repeat(", ?", len(rows[0])-1) + ")"
				do("INSERT INTO "+name+" VALUES "+row+strings.Repeat(", "+row, len(rows)-1), slices.Concat(rows...)...)
			}
		}
		for _, trigger := range ask("SELECT trigger_name FROM information_schema.triggers WHERE trigger_schema = '" + database + "'") {
			do(text(ask("SHOW CREATE TRIGGER " + database + "." + text(trigger[0]))[0][2]))
		}
	}
}
