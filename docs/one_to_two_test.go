package docs

import (
	"cmp"
	"context"
	"database/sql"
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
				o := &shopMove{t: t, shell: shell{hosts: hosts}, log: newRequests()}
				o.log.setCancels(way.prepared != "A clone") // canceled orders would appear again, as the page announces
				o.followOneToTwo(way.prepared, way.inShop)
			})
		}
	}
}

// followOneToTwo follows the page, with one of the two ways in which it prepares the second database. With inShop,
// leaf_alloc is in the database shop, as migration.md creates it.
func (o *shopMove) followOneToTwo(prepared string, inShop bool) {
	t := o.t
	o.prepareHosts()
	runSQL(t, o.hosts, "CREATE DATABASE shop;\n")
	defer o.end()
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
		if inShop {
			b.code = storeInShop.Replace(b.code)
			if !strings.Contains(b.code, "DSN1=") {
				b.code = strings.ReplaceAll(b.code, "&leafStore=app:secret@tcp(db0:3306)%2Fshop", "") // as in migration.md
			}
		}
		o.runBlock("one-to-two.md", b)
	}
	o.running.stop()
	o.running = nil
	o.verify()
	o.checkAnnouncedErrors()
}

// storeInShop changes the blocks of the page as its section "After Migration" describes.
var storeInShop = strings.NewReplacer("%2Fleaf", "%2Fshop", "CREATE DATABASE leaf;", "", "leaf.leaf_alloc", "shop.leaf_alloc")

// checkAnnouncedErrors compares the errors of requests with those on the page.
func (o *shopMove) checkAnnouncedErrors() {
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

// copyDatabase copies all of db0 to db1, as a replica or a dump does.
func (o *shopMove) copyDatabase() {
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
