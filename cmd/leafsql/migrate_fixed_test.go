//go:build unix

package main

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// checkRefusedMigration runs several steps of migrate. Each has to be refused with all texts of want, and to change
// no table.
func checkRefusedMigration(t *testing.T, dsn string, want []string, tables ...string) {
	t.Helper()
	db := open(t, dsn)
	read := func() (all string) {
		for _, table := range tables {
			var name, create string
			if err := db.QueryRow("SHOW CREATE TABLE "+table).Scan(&name, &create); err != nil {
				t.Fatal(err)
			}
			all += create
		}
		return all
	}
	before := read()
	for _, step := range []string{"-do=", "-do=widen", "-do=switch"} {
		status, out, errs := runLeafsql(t.Context(), append([]string{"migrate", "-dsn", dsn, step}, tables...)...)
		for _, text := range want {
			if status != exitFailure || !strings.Contains(errs, text) {
				t.Errorf("%s: status %d, error %q, want one with %q\n%s", step, status, errs, text, out)
			}
		}
	}
	if after := read(); after != before || countGuards(t, db) != 0 {
		t.Errorf("the tables are now %s, want them as before: %s", after, before)
	}
}

// TestMigrateNamesForeignKeys: foreign keys that prevent a BIGINT key are reported before any table is changed.
func TestMigrateNamesForeignKeys(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		elsewhere, here := target.Database(t), databaseName(dsn)
		db := open(t, dsn, "CREATE TABLE a (id INT AUTO_INCREMENT PRIMARY KEY)", "CREATE TABLE parent (id INT AUTO_INCREMENT PRIMARY KEY, top INT, CONSTRAINT own FOREIGN KEY (top) REFERENCES parent (id))",
			"CREATE TABLE child (id INT AUTO_INCREMENT PRIMARY KEY, p INT, CONSTRAINT of_parent FOREIGN KEY (p) REFERENCES parent (id), CONSTRAINT of_a FOREIGN KEY (id) REFERENCES a (id))",
			"CREATE TABLE unrelated (id INT AUTO_INCREMENT PRIMARY KEY, p INT, CONSTRAINT elsewhere FOREIGN KEY (p) REFERENCES parent (id))")
		open(t, elsewhere, "CREATE TABLE far (p INT, CONSTRAINT from_far FOREIGN KEY (p) REFERENCES "+here+".parent (id))")
		checkRefusedMigration(t, dsn, []string{here + ".child.of_parent", here + ".parent.own", databaseName(elsewhere) + ".far.from_far", "-keep-type"}, "unrelated", "parent")
		checkRefusedMigration(t, dsn, []string{here + ".child.of_a;"}, "child")
		checkRefusedMigration(t, dsn, []string{here + ".child.of_a;"}, "a")
		checkRefusedMigration(t, dsn, []string{"key of a:", "key of child:", "key of parent:"}, "a", "unrelated", "child", "parent")
		mustRun(t, exitProblems, "migrate", "-dsn", dsn, "-keep-type", "parent")
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "widen", "unrelated") // its foreign key is on another column
		exec(t, db, "ALTER TABLE child DROP FOREIGN KEY of_a")
		if out := mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "widen", "a", "child"); strings.Count(out, "CREATE TABLE IF NOT EXISTS") != 1 {
			t.Errorf("output of widen = %s\nwant the next step to create leaf_alloc once", out)
		}
	})
}

// TestMigrateRefusesInvisibleKeys: if the server refuses to drop the AUTO_INCREMENT of an invisible key, the first
// step is refused.
func TestMigrateRefusesInvisibleKeys(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		const invisible = "CREATE TABLE hidden (id INT INVISIBLE AUTO_INCREMENT PRIMARY KEY COMMENT 'INVISIBLE', n INT)"
		steps := func(table string) {
			for _, step := range []string{"-do=widen", "-do=switch", "-do=drop", "-do=unguard"} {
				mustRun(t, exitOK, "migrate", "-dsn", dsn, step, table)
			}
		}
		if target.Name == string(mysqltest.MySQL) {
			open(t, dsn, invisible)
			steps("hidden")
			generated := open(t, dsn+"?sql_generate_invisible_primary_key=1", "CREATE TABLE keyless (n INT)", "CREATE TABLE keyed (id INT AUTO_INCREMENT PRIMARY KEY)")
			checkRefusedMigration(t, dsn, []string{"error 4110"}, "keyless")
			exec(t, openLeaf(t, dsn+"?leafTables=*&leafCreate=true"), "INSERT INTO keyless (n) VALUES (1)", "INSERT INTO keyed VALUES ()")
			if n := queryNumber(t, generated, "SELECT COUNT(*) FROM leaf_alloc WHERE biz_tag = 'keyless'"); n != 0 {
				t.Errorf("rows of keyless in leaf_alloc = %d, want 0, because the server generated its key", n)
			}
			if out := mustRun(t, exitProblems, "check", "-dsn", dsn+"?leafTables=*"); strings.Contains(out, "keyless") {
				t.Errorf("output of check = %s\nwant no finding for keyless", out)
			}
			return
		}
		target.SkipUnless(t, "invisible columns", 100303, 0)
		open(t, dsn, invisible)
		checkRefusedMigration(t, dsn, []string{"error 4108", "COMMENT 'INVISIBLE'"}, "hidden")
		_, _, errs := runLeafsql(t.Context(), "migrate", "-dsn", dsn, "hidden")
		_, statement, _ := strings.Cut(strings.TrimSpace(errs), "visible first: ")
		exec(t, open(t, dsn), statement)
		steps("hidden")
	})
}

// TestMigrateIgnoresCase: on a server that ignores the case of names, tables are found under the spelling of the
// DSN and the arguments.
func TestMigrateIgnoresCase(t *testing.T) {
	folding := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--lower-case-table-names=1"}})
	db := open(t, folding.DSN(""), "CREATE DATABASE Shop")
	dsn := folding.DSN("Shop")
	for i, names := range [][2]string{{"Orders", "Orders"}, {"Orders", "orders"}, {"orders", "Shop.ORDERS"}, {"Shop.Orders", "shop.Orders"}} {
		exec(t, db, "DROP TABLE IF EXISTS Shop.leaf_alloc", "CREATE TABLE Shop.Orders (id INT AUTO_INCREMENT PRIMARY KEY)")
		on := dsn + "?leafTables=" + names[0]
		for _, step := range []string{"-do=widen", "-do=switch", "-back", "-do=switch", "-do=drop", "-do=unguard"} {
			mustRun(t, exitOK, "migrate", "-dsn", on, step, names[1])
		}
		mustRun(t, exitOK, "check", "-dsn", on)
		if id := queryNumber(t, db, "SELECT max_id FROM Shop.leaf_alloc"); id != 1 {
			t.Errorf("case %d: next id = %d, want 1", i, id)
		}
		exec(t, db, "DROP TABLE Shop.Orders")
	}
	if status, _, errs := runLeafsql(t.Context(), "check", "-dsn", dsn+"?leafTables=none", "-shard", folding.DSN("shop")); status != exitFailure || !strings.Contains(errs, "name each database once") {
		t.Errorf("one database as two shards: status %d, error %q, want %d and \"name each database once\"", status, errs, exitFailure)
	}
}

// TestCheckCountsPerPrefix: check reports a key that the server counts for each value of other columns.
func TestCheckCountsPerPrefix(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, "CREATE TABLE cells (grp INT, id INT AUTO_INCREMENT, PRIMARY KEY (grp, id)) ENGINE = MyISAM", "CREATE TABLE plain (id INT AUTO_INCREMENT PRIMARY KEY)")
	out := mustRun(t, exitProblems, "check", "-dsn", dsn+"?leafTables=cells:id,plain&leafCreate=true")
	if n := strings.Count(out, "for each value of the columns before it"); n != 1 {
		t.Errorf("%d of two tables are counted for each value of other columns, want 1\n%s", n, out)
	}
}
