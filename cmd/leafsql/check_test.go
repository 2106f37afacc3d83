//go:build unix

package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// listFindings returns the findings as "code table-or-tag", in order, without the note on rows without a mark, such as
// those that tests add by hand.
func listFindings(r check.Report) []string {
	all := []string{}
	for _, f := range r.Findings {
		if f.Code == "row-unmarked" && f.Severity == check.Note {
			continue
		}
		where := f.Tag
		if f.Table != "" {
			_, table, ok := strings.Cut(f.Table, ".")
			where = table
			if !ok {
				where = f.Table
			}
		}
		all = append(all, strings.TrimSpace(f.Code+" "+where))
	}
	return all
}

// TestCheckFindsFaults: each planted fault is found, nothing else is, and the SQL of the findings fixes every
// fault that SQL can fix.
func TestCheckFindsFaults(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		const key = "(id BIGINT PRIMARY KEY, a INT)"
		db := open(t, dsn, strings.Replace(allocTable, "InnoDB", "MyISAM", 1), // 1
			"CREATE TABLE other "+key,
			"CREATE TRIGGER noted BEFORE UPDATE ON leaf_alloc FOR EACH ROW SET @leaf = 1", // 2
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('low', 100, 10), ('broken', 1, 0), ('counted', 1, 10), ('small', 3000000000, 10), ('filling', 2000000000, 10)"+
				", ('audit', 1, 10), ('keyed', 1, 10), ('loose', 100, 10), ('javas', 1, 10)",
			"CREATE TABLE low "+key, "INSERT INTO low VALUES (500, 1)", // 3
			"CREATE TABLE norow "+key,                                                  // 4
			"CREATE TABLE broken "+key,                                                 // 5
			"CREATE TABLE counted (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT)",       // 6
			"CREATE TABLE small (id INT PRIMARY KEY COMMENT 'it''s', a INT)",           // 7
			"CREATE TABLE filling (id INT PRIMARY KEY, a INT)",                         // 8
			"CREATE TABLE pairs (x BIGINT, y BIGINT, PRIMARY KEY (x, y))",              // 9
			"CREATE TABLE loose (id BIGINT, a INT)", "INSERT INTO loose VALUES (1, 1)", // 10
			"CREATE TABLE audit "+key, "CREATE TABLE keyed "+key,
			"CREATE TRIGGER copied AFTER INSERT ON other FOR EACH ROW INSERT INTO audit VALUES (NEW.id, 1)", // 11
			"CREATE TRIGGER numbered BEFORE INSERT ON keyed FOR EACH ROW SET NEW.id = 7",                    // 12
			"CREATE PROCEDURE fill() BEGIN SELECT 1; REPLACE INTO audit (a) VALUES (1); END",                // 13
			"CREATE EVENT nightly ON SCHEDULE EVERY 1 DAY DISABLE DO INSERT INTO audit (a) VALUES (1)",      // 14
			"CREATE VIEW counting AS SELECT * FROM counted",                                                 // 15
		)
		leaf := dsn + "?leafTables=low,norow,broken,counted,small,filling,pairs,loose:id,audit,keyed,nosuch" // 16
		want := []string{
			"row-broken broken", "alloc-engine leaf_alloc", "alloc-trigger leaf_alloc", "row-missing norow", "row-too-low low", "key-unfit pairs", "key-not-unique loose", "key-small small",
			"key-filling filling", "rule-without-table nosuch", "auto-increment counted", "trigger-inserts audit", "trigger-sets-key keyed",
			"routine-inserts audit", "event-inserts audit", "view-inserts counted", "highest-unknown loose", "tag-without-table javas",
		}
		if hasSelectedKeysBug(t, db) { // keyed has a trigger
			want = slices.Insert(want, 0, "server-bug")
		}
		report := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
		if got := listFindings(report); !slices.Equal(got, want) {
			t.Fatalf("found\n %v\nwant\n %v", got, want)
		}
		text := mustRun(t, exitProblems, "check", "-dsn", leaf)
		for _, code := range want {
			if code, _, _ = strings.Cut(code, " "); !strings.Contains(text, ": "+code+": ") {
				t.Errorf("output = %s\nwant the code %s", text, code)
			}
		}
		if !strings.Contains(text, "> 100 %") { // small
			t.Errorf("output = %s\nwant a column that is used by more than 100 %%", text)
		}
		for _, f := range report.Findings {
			if len(f.SQL) == 0 && f.Fix == "" && f.Severity != check.Note {
				t.Errorf("finding %s has neither SQL nor a hint, want one", f.Code)
			}
			exec(t, db, f.SQL...)
		}
		want = []string{"key-unfit pairs", "key-not-unique loose", "rule-without-table nosuch", "tag-without-table javas"} // its key may be NULL
		if got := listFindings(runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)); !slices.Equal(got, want) {
			t.Errorf("findings after the fixes =\n %v\nwant\n %v", got, want)
		}
	})
}

// TestCheckFindsHowTablesAreMade: check finds keys without a unique index, with a UUID's type, or with a
// sequence as their default, engines without transactions, and a leaf_worker with a different definition.
func TestCheckFindsHowTablesAreMade(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable,
			"CREATE TABLE files (id BIGINT PRIMARY KEY, num BIGINT, KEY (num))",
			"CREATE TABLE parts (day INT, num BIGINT, PRIMARY KEY (day, num), KEY (num))",
			"CREATE TABLE marks (id BIGINT, UNIQUE (id))",
			"CREATE TABLE texts (id VARCHAR(36) PRIMARY KEY)",
			"CREATE TABLE old (id BIGINT PRIMARY KEY) ENGINE = MyISAM",
			"CREATE TABLE leaf_worker (worker_id INT PRIMARY KEY, nonce VARCHAR(64) NOT NULL, hw INT NOT NULL, owner TEXT) ENGINE = MyISAM",
			"CREATE TABLE events (id BIGINT PRIMARY KEY)",
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('files', 1, 10), ('parts', 1, 10), ('marks', 1, 10), ('texts', 1, 10), ('old', 1, 10)")
		want := []string{"leases-column leaf_worker", "leases-engine leaf_worker",
			"key-not-unique files", "key-not-unique marks", "key-not-unique parts", "key-text texts", "table-engine old"}
		rules := "files:num,parts:num,marks:id,texts,old,events:id:snowflake"
		if target.Name == "mariadb" && target.Has(t, 100300, 0) {
			exec(t, db, "CREATE SEQUENCE numbers", "CREATE TABLE counted (id BIGINT DEFAULT NEXTVAL(numbers) PRIMARY KEY)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('counted', 1, 10)")
			want, rules = slices.Insert(want, 6, "default-sequence counted"), rules+",counted"
		}
		leaf := dsn + "?leafTables=" + rules
		report := runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
		if got := listFindings(report); !slices.Equal(got, want) {
			t.Fatalf("found\n %v\nwant\n %v", got, want)
		}
		if m := report.Findings[0].Message; !strings.Contains(m, "no column free") || !strings.Contains(m, "no column registry") || !strings.Contains(m, "hw is of type int") {
			t.Errorf("message = %q, want the columns free, registry and hw", m)
		}
		for i, f := range report.Findings {
			if f.Code != "leases-engine" { // the table is created again
				exec(t, db, report.Findings[i].SQL...)
			}
		}
		want = []string{"key-not-unique files", "key-not-unique marks", "key-not-unique parts", "key-text texts"} // notes, except for the text
		report = runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
		if got := listFindings(report); !slices.Equal(got, want) {
			t.Errorf("findings after the fixes =\n %v\nwant\n %v", got, want)
		}
		mustRun(t, exitOK, "check", "-dsn", strings.Replace(leaf, "texts,", "", 1))
		exec(t, db, "ALTER TABLE leaf_worker DROP PRIMARY KEY")
		report = runJSON[check.Report](t, exitProblems, "check", "-dsn", leaf)
		exec(t, db, report.Findings[0].SQL...)
		mustRun(t, exitOK, "check", "-dsn", strings.Replace(leaf, "texts,", "", 1))
	})
}

// TestCheckAltersCharacterSetOfTags: if the character set of leaf_alloc cannot encode a tag, it is altered before the tag gets a
// row.
func TestCheckAltersCharacterSetOfTags(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, strings.Replace(allocTable, "InnoDB", "InnoDB CHARACTER SET latin1", 1), "CREATE TABLE 订单 (id BIGINT PRIMARY KEY)", "CREATE TABLE größe (id BIGINT PRIMARY KEY)",
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('größe', 1, 10)")
		for _, want := range []string{"alloc-column leaf_alloc", "row-missing 订单"} {
			report := runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=订单,größe")
			if got := listFindings(report); !slices.Equal(got, []string{want}) {
				t.Fatalf("found %v, want %s", got, want)
			}
			exec(t, db, report.Findings[0].SQL...)
		}
		mustRun(t, exitOK, "check", "-dsn", dsn+"?leafTables=订单,größe")
	})
}

// TestCheckFindsNothingBetweenSwitchAndDrop: between switch and drop nothing is found.
func TestCheckFindsNothingBetweenSwitchAndDrop(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE VIEW all_orders AS SELECT * FROM orders")
		if hasSelectedKeysBug(t, db) {
			t.Skip(mysqltest.Refused + "rows selected into a table with a trigger")
		}
		args := []string{"check", "-dsn", dsn + "?leafTables=orders"}
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-do", "switch", "orders")
		out := mustRun(t, exitOK, args...)
		for _, want := range []string{"note: auto-increment: ", "leafsql migrate -do drop", "note: view-inserts: ", "errors and warnings: 0"} {
			if !strings.Contains(out, want) {
				t.Errorf("output = %s\nwant %q", out, want)
			}
		}
		mustRun(t, exitOK, "migrate", "-dsn", dsn, "-back", "orders")
		if out := mustRun(t, exitProblems, args...); !strings.Contains(out, "warning: auto-increment: ") {
			t.Errorf("output = %s\nwant a warning on AUTO_INCREMENT", out)
		}
	})
}

// TestCheckSumsUp: the tags of other programs are one note.
func TestCheckSumsUp(t *testing.T) {
	dsn := mysqltest.Database(t)
	var rows []string
	for i := range 500 {
		rows = append(rows, fmt.Sprintf("('tag%03d', 1, 10)", i))
	}
	open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES "+strings.Join(rows, ","))
	mustRun(t, exitOK, "init", "-dsn", dsn+"?leafTables=none") // writes the marks
	report := runJSON[check.Report](t, exitOK, "check", "-dsn", dsn+"?leafTables=none")
	if len(report.Findings) != 1 || !strings.Contains(report.Findings[0].Message, "500 tags: tag000, tag001, tag002, tag003, tag004 and 495 more") {
		t.Errorf("findings = %+v, want one for 500 tags", report.Findings)
	}
}

// TestCheckShowsSQLThatCreatesLeafAlloc: the SQL creates leaf_alloc, and then the row.
func TestCheckShowsSQLThatCreatesLeafAlloc(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (41)")
		for _, want := range []string{"alloc-missing leaf_alloc", "row-missing orders"} {
			report := runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=orders")
			if got := listFindings(report); !slices.Equal(got, []string{want}) {
				t.Fatalf("found %v, want %s", got, want)
			}
			exec(t, db, report.Findings[0].SQL...)
		}
		if got := queryNumber(t, db, "SELECT max_id FROM leaf_alloc"); got != 42 {
			t.Errorf("max_id = %d, want 42", got)
		}
		mustRun(t, exitOK, "check", "-dsn", dsn+"?leafTables=orders")
	})
}

// TestCheckFindsNothingOnCleanSchema: nothing is found on 200 tables.
func TestCheckFindsNothingOnCleanSchema(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable)
		var rows []string
		for i := range 200 {
			exec(t, db, fmt.Sprintf("CREATE TABLE t%d (id BIGINT PRIMARY KEY, a INT) SELECT %d AS id, 1 AS a", i, i+1))
			rows = append(rows, fmt.Sprintf("('t%d', 1000, 100)", i))
		}
		exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES "+strings.Join(rows, ","))
		exec(t, db, "CREATE PROCEDURE look() SELECT COUNT(*) FROM t1", "CREATE TABLE log (n INT)", "CREATE TRIGGER logged AFTER INSERT ON t1 FOR EACH ROW INSERT INTO log VALUES (1)")
		began := time.Now()
		report := runJSON[check.Report](t, exitOK, "check", "-dsn", dsn)
		t.Logf("%d tables in %v", len(report.Tables), time.Since(began).Round(time.Millisecond))
		if got := listFindings(report); len(got) > 0 || len(report.Tables) != 200 {
			t.Errorf("tables = %d with findings %v, want 200 without any", len(report.Tables), got)
		}
	})
}

// TestCheckAllowsFarKeysThatAreKept: under leafExplicit=keep the row need not be above very high keys.
func TestCheckAllowsFarKeysThatAreKept(t *testing.T) {
	runOnServers(t, func(t *testing.T, _ mysqltest.Target, dsn string) {
		open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (5), (1 << 60)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 6, 10)")
		for parameter, want := range map[string]bool{"": true, "&leafExplicit=keep": false} {
			_, out, _ := runLeafsql(t.Context(), "check", "-dsn", dsn+"?leafTables=orders"+parameter)
			if strings.Contains(out, "row-too-low") != want {
				t.Errorf("output with %q = %s\nwant row-too-low: %t", parameter, out, want)
			}
		}
	})
}
