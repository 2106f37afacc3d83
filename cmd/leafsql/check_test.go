//go:build unix

package main

import (
	"context"
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/internal/versions"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// found are the findings as "code table-or-tag", in order.
func found(r check.Report) []string {
	all := []string{}
	for _, f := range r.Findings {
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

// TestCheckFindsFaults: each planted fault is found, nothing else is, and the SQL that
// goes with the findings mends what SQL can mend.
func TestCheckFindsFaults(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
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
		if losesSelectedKeys(t, db) { // keyed has a trigger
			want = slices.Insert(want, 0, "server-bug")
		}
		report := jsonOf[check.Report](t, mend, "check", "-dsn", leaf)
		if got := found(report); !slices.Equal(got, want) {
			t.Fatalf("found\n %v\nwant\n %v", got, want)
		}
		text := mustRun(t, mend, "check", "-dsn", leaf)
		for _, code := range want {
			if code, _, _ = strings.Cut(code, " "); !strings.Contains(text, ": "+code+": ") {
				t.Errorf("%s is not in\n%s", code, text)
			}
		}
		for _, f := range report.Findings {
			if len(f.SQL) == 0 && f.Fix == "" && f.Severity != check.Note {
				t.Errorf("%s says no way out", f.Code)
			}
			exec(t, db, f.SQL...)
		}
		want = []string{"key-unfit pairs", "key-not-unique loose", "rule-without-table nosuch", "tag-without-table javas"} // it may be NULL
		if got := found(jsonOf[check.Report](t, mend, "check", "-dsn", leaf)); !slices.Equal(got, want) {
			t.Errorf("mended, there is\n %v\nwant\n %v", got, want)
		}
	})
}

// TestCheckFindsHowTablesAreMade: keys that nothing keeps unique, that look like UUIDs or that a sequence numbers too, engines
// without transactions, and a leaf_worker that is not leafsql's.
func TestCheckFindsHowTablesAreMade(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
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
		report := jsonOf[check.Report](t, mend, "check", "-dsn", leaf)
		if got := found(report); !slices.Equal(got, want) {
			t.Fatalf("found\n %v\nwant\n %v", got, want)
		}
		if m := report.Findings[0].Message; !strings.Contains(m, "no column free") || !strings.Contains(m, "no column registry") || !strings.Contains(m, "hw is of type int") {
			t.Error(m)
		}
		for i, f := range report.Findings {
			if f.Code != "leases-engine" { // the table is made anew
				exec(t, db, report.Findings[i].SQL...)
			}
		}
		want = []string{"key-not-unique files", "key-not-unique marks", "key-not-unique parts", "key-text texts"} // but for the text they are notes
		report = jsonOf[check.Report](t, mend, "check", "-dsn", leaf)
		if got := found(report); !slices.Equal(got, want) {
			t.Errorf("mended, there is\n %v\nwant\n %v", got, want)
		}
		mustRun(t, fine, "check", "-dsn", strings.Replace(leaf, "texts,", "", 1))
		exec(t, db, "ALTER TABLE leaf_worker DROP PRIMARY KEY")
		report = jsonOf[check.Report](t, mend, "check", "-dsn", leaf)
		exec(t, db, report.Findings[0].SQL...)
		mustRun(t, fine, "check", "-dsn", strings.Replace(leaf, "texts,", "", 1))
	})
}

// TestCheckLetters: a leaf_alloc whose character set has not a tag's letters cannot get its row before.
func TestCheckLetters(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, strings.Replace(allocTable, "InnoDB", "InnoDB CHARACTER SET latin1", 1), "CREATE TABLE 订单 (id BIGINT PRIMARY KEY)", "CREATE TABLE größe (id BIGINT PRIMARY KEY)",
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('größe', 1, 10)")
		for _, want := range []string{"alloc-column leaf_alloc", "row-missing 订单"} {
			report := jsonOf[check.Report](t, mend, "check", "-dsn", dsn+"?leafTables=订单,größe")
			if got := found(report); !slices.Equal(got, []string{want}) {
				t.Fatalf("found %v, want %s", got, want)
			}
			exec(t, db, report.Findings[0].SQL...)
		}
		mustRun(t, fine, "check", "-dsn", dsn+"?leafTables=订单,größe")
	})
}

// TestCheckGuarded: between switch and drop nothing is wrong.
func TestCheckGuarded(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)", "CREATE VIEW all_orders AS SELECT * FROM orders")
		if losesSelectedKeys(t, db) {
			t.Skip(mysqltest.Refused + "selected rows into a table whose trigger stands")
		}
		args := []string{"check", "-dsn", dsn + "?leafTables=orders"}
		if out := mustRun(t, mend, "migrate", "-dsn", dsn, "-do", "switch", "orders"); !strings.Contains(out, "warning: view-inserts: ") || !strings.Contains(out, "-ignore-programs") {
			t.Error(out)
		}
		filled := dsn + "?leafTables=orders,all_orders:id:segment(orders)"
		mustRun(t, fine, "migrate", "-dsn", filled, "-do", "switch", "orders")
		mustRun(t, fine, "migrate", "-dsn", filled, "-back", "orders")
		mustRun(t, fine, "migrate", "-dsn", dsn, "-ignore-programs", "-do", "switch", "orders")
		out := mustRun(t, fine, args...)
		for _, want := range []string{"note: auto-increment: ", "leafsql migrate -do drop", "note: view-inserts: ", "findings to look after: 0"} {
			if !strings.Contains(out, want) {
				t.Errorf("%q is missing in\n%s", want, out)
			}
		}
		mustRun(t, fine, "migrate", "-dsn", dsn, "-back", "orders")
		if out := mustRun(t, mend, args...); !strings.Contains(out, "warning: auto-increment: ") {
			t.Error(out)
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
	open(t, dsn, durable, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES "+strings.Join(rows, ","))
	report := jsonOf[check.Report](t, fine, "check", "-dsn", dsn+"?leafTables=none")
	if len(report.Findings) != 1 || !strings.Contains(report.Findings[0].Message, "500 tags: tag000, tag001, tag002, tag003, tag004 and 495 more") {
		t.Errorf("%+v", report.Findings)
	}
}

// TestCheckShards: what differs between shards is found, and the highest key is that of
// all of them.
func TestCheckShards(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 100, 10), ('users', 100, 10), ('items', 100, 10)",
			"CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE users (id BIGINT PRIMARY KEY, a INT)", "CREATE TABLE items (id BIGINT PRIMARY KEY)")
		db := open(t, second, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO orders VALUES (100, 1)", "CREATE TABLE users (id BIGINT PRIMARY KEY, a BIGINT, c INT)")
		args := []string{"check", "-dsn", dsn + "?leafTables=orders,users,items", "-shard", second}
		report := jsonOf[check.Report](t, mend, args...)
		want := []string{"row-too-low orders", "shards-differ items", "shards-differ users"}
		if got := found(report); !slices.Equal(got, want) {
			t.Errorf("found %v, want %v", got, want)
		}
		admin := open(t, dsn)
		exec(t, admin, report.Findings[0].SQL...)
		exec(t, db, report.Findings[1].SQL...)
		exec(t, db, append(report.Findings[2].SQL, "ALTER TABLE users DROP COLUMN c")...)
		if got := found(jsonOf[check.Report](t, fine, args...)); len(got) > 0 {
			t.Errorf("mended, there is %v", got)
		}

		third := target.Database(t)
		open(t, third, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)")
		report = jsonOf[check.Report](t, mend, "check", "-dsn", dsn+"?leafTables=orders", "-shard", third+"?leafTables=orders")
		if got := found(report); !slices.Contains(got, "stores-differ") {
			t.Errorf("a shard with a leaf_alloc of its own: %v", got)
		}
	})
}

// TestCheckRights: what a user lacks is found, and what it is not shown is never taken
// to be right. With the rights that are proposed all is well.
func TestCheckRights(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		name, elsewhere := database(dsn), database(target.Database(t))
		db := open(t, dsn, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY, a INT)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)",
			"CREATE USER "+name+"@'%' IDENTIFIED BY 'Secret-9.word'",
			"GRANT SELECT, INSERT, TRIGGER, EVENT ON "+name+".* TO "+name+"@'%'",
			"CREATE TABLE "+elsewhere+".sales (id BIGINT PRIMARY KEY)",
			"CREATE TRIGGER "+elsewhere+".copied AFTER INSERT ON "+elsewhere+".sales FOR EACH ROW INSERT INTO "+name+".orders (a) VALUES (1)")
		t.Cleanup(func() { db.Exec("DROP USER " + name + "@'%'") })
		args := []string{"check", "-dsn", as(dsn, name, "Secret-9.word") + "?leafTables=orders"}
		report := jsonOf[check.Report](t, mend, args...)
		want := []string{"rights *", "rights leaf_alloc", "hidden"}
		if got := found(report); !slices.Equal(got, want) {
			t.Fatalf("found %v, want %v", got, want)
		}
		exec(t, db, report.Findings[0].SQL...)
		exec(t, db, report.Findings[1].SQL...)
		if got := found(jsonOf[check.Report](t, unclear, args...)); !slices.Equal(got, want[2:]) {
			t.Errorf("with rights there is %v", got)
		}
		exec(t, db, report.Findings[2].SQL...)
		if got := found(jsonOf[check.Report](t, mend, args...)); !slices.Equal(got, []string{"trigger-inserts orders"}) {
			t.Errorf("with all rights there is %v", got)
		}
		exec(t, db, "DROP TRIGGER "+elsewhere+".copied")
		if got := found(jsonOf[check.Report](t, fine, args...)); len(got) > 0 {
			t.Errorf("with all rights there is %v", got)
		}
	})
}

// TestCheckServers: what is wrong with a server, with leaf_alloc's columns, and between two
// shards' DSNs.
func TestCheckServers(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Args: []string{"--read-only=1", "--sql-mode=NO_ENGINE_SUBSTITUTION", "--innodb-flush-log-at-trx-commit=2"}})
	second := mysqltest.Database(t)
	const events = "CREATE TABLE events (id BIGINT PRIMARY KEY)"
	db := open(t, server.DSN(""), "CREATE DATABASE shop", "USE shop", events)
	db.Close()
	dsn := server.DSN("shop")
	db = open(t, dsn, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(3), max_id INT, step INT NOT NULL)", "INSERT INTO leaf_alloc VALUES ('orders', 1, 10), ('two', 5, 10), ('two', 9, 10), ('nil', NULL, 10)",
		"CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE two (id BIGINT PRIMARY KEY)", "CREATE TABLE nil (id BIGINT PRIMARY KEY)")
	open(t, second, events, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "CREATE TABLE two (id BIGINT PRIMARY KEY)", "CREATE TABLE nil (id BIGINT PRIMARY KEY)")
	const tables = "?leafTables=orders,two,nil,events:id:snowflake&leafWorker=static(1)"
	args := []string{"check", "-dsn", dsn + tables + "&leafNewRegistry=true",
		"-shard", second + strings.Replace(tables, "(1)", "(2)", 1) + "&leafStore=" + strings.ReplaceAll(dsn, "/", "%2F") + "&sql_mode='NO_AUTO_VALUE_ON_ZERO'"}
	report := jsonOf[check.Report](t, mend, args...)
	want := []string{"read-only", "workers-differ", "row-broken nil", "row-broken two", "alloc-key leaf_alloc",
		"alloc-column leaf_alloc", "alloc-column leaf_alloc", "alloc-column leaf_alloc", "alloc-durability leaf_alloc",
		"row-missing orders", "sql-mode", "sql-mode", "new-registry", "tag-without-table ord"} // the server cut the tag
	if got := found(report); !slices.Equal(got, want) {
		t.Fatalf("found\n %v\nwant\n %v", got, want)
	}
	for _, f := range report.Findings {
		if strings.HasSuffix(f.Server, "/shop") {
			exec(t, db, f.SQL...)
		}
	}
	want = []string{"workers-differ", "sql-mode", "new-registry", "tag-without-table ord"} // the DSNs'
	if got := found(jsonOf[check.Report](t, mend, args...)); !slices.Equal(got, want) {
		t.Errorf("mended, there is\n %v\nwant\n %v", got, want)
	}
}

// TestCheckWithoutAlloc: the SQL creates leaf_alloc, and then the row.
func TestCheckWithoutAlloc(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO orders VALUES (41)")
		for _, want := range []string{"alloc-missing leaf_alloc", "row-missing orders"} {
			report := jsonOf[check.Report](t, mend, "check", "-dsn", dsn+"?leafTables=orders")
			if got := found(report); !slices.Equal(got, []string{want}) {
				t.Fatalf("found %v, want %s", got, want)
			}
			exec(t, db, report.Findings[0].SQL...)
		}
		if got := number(t, db, "SELECT max_id FROM leaf_alloc"); got != 42 {
			t.Errorf("max_id is %d", got)
		}
		mustRun(t, fine, "check", "-dsn", dsn+"?leafTables=orders")
	})
}

// TestCheckRate: what is left is told in years, from two looks.
func TestCheckRate(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, durable, allocTable, "CREATE TABLE orders (id INT PRIMARY KEY)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)")
	earlier := filepath.Join(t.TempDir(), "earlier.json")
	report := mustRun(t, fine, "check", "-json", "-dsn", dsn+"?leafTables=orders")
	if err := os.WriteFile(earlier, []byte(report), 0o600); err != nil {
		t.Fatal(err)
	}
	exec(t, db, "UPDATE leaf_alloc SET max_id = 1000001")
	r := jsonOf[check.Report](t, mend, "check", "-since", earlier, "-dsn", dsn+"?leafTables=orders")
	if got := found(r); !slices.Equal(got, []string{"key-filling orders"}) || r.Tables[0].Years == nil || *r.Tables[0].Years > 1 {
		t.Errorf("found %v, left %v", got, r.Tables[0].Years)
	}
	report = strings.Replace(report, `"max_id": "1"`, `"max_id": 1`, 1) // as 0.1 wrote it
	if err := os.WriteFile(earlier, []byte(report), 0o600); err != nil || strings.Contains(report, `"max_id": "`) {
		t.Fatal(err, report)
	}
	if r := jsonOf[check.Report](t, mend, "check", "-since", earlier, "-dsn", dsn+"?leafTables=orders"); r.Tables[0].Years == nil {
		t.Error("since a report of 0.1 nothing is counted")
	}
	r = jsonOf[check.Report](t, fine, "check", "-measure", "1ms", "-dsn", dsn+"?leafTables=orders")
	if r.Tables[0].Years != nil {
		t.Errorf("a tag that stands still lasts %v years", *r.Tables[0].Years)
	}
}

// TestCheckStep: what takes more of a small column than it should is named.
func TestCheckStep(t *testing.T) {
	dsn, a, b := mysqltest.Database(t), mysqltest.Database(t), mysqltest.Database(t)
	db := open(t, dsn, durable, allocTable, "CREATE TABLE small (id TINYINT UNSIGNED PRIMARY KEY)", "CREATE TABLE large (id BIGINT PRIMARY KEY)",
		"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('small', 1, 16), ('large', 1, 2147483647)")
	leaf := dsn + "?leafTables=small,large"
	r := jsonOf[check.Report](t, fine, "check", "-dsn", leaf)
	if got := found(r); !slices.Equal(got, []string{"step-large small"}) || r.Findings[0].Severity != check.Note || !strings.Contains(r.Findings[0].Message, "take 16 ids a fetch") {
		t.Fatalf("%+v", r.Findings)
	}
	exec(t, db, r.Findings[0].SQL...)
	if got := found(jsonOf[check.Report](t, fine, "check", "-dsn", leaf)); len(got) > 0 {
		t.Error(got)
	}
	several := onStores(leaf, a, b)
	mustRun(t, fine, "init", "-dsn", several)
	if r := jsonOf[check.Report](t, mend, "check", "-dsn", several); !slices.Contains(found(r), "step-large small") || r.Findings[0].Severity != check.Warning {
		t.Errorf("%+v", r.Findings)
	}
}

// TestCheckOnCleanSchema: nothing is found on 200 tables.
func TestCheckOnCleanSchema(t *testing.T) {
	onBoth(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable)
		var rows []string
		for i := range 200 {
			exec(t, db, fmt.Sprintf("CREATE TABLE t%d (id BIGINT PRIMARY KEY, a INT) SELECT %d AS id, 1 AS a", i, i+1))
			rows = append(rows, fmt.Sprintf("('t%d', 1000, 100)", i))
		}
		exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES "+strings.Join(rows, ","))
		exec(t, db, "CREATE PROCEDURE look() SELECT COUNT(*) FROM t1", "CREATE TABLE log (n INT)", "CREATE TRIGGER logged AFTER INSERT ON t1 FOR EACH ROW INSERT INTO log VALUES (1)")
		began := time.Now()
		report := jsonOf[check.Report](t, fine, "check", "-dsn", dsn)
		t.Logf("%d tables in %v", len(report.Tables), time.Since(began).Round(time.Millisecond))
		if got := found(report); len(got) > 0 || len(report.Tables) != 200 {
			t.Errorf("%d tables, found %v", len(report.Tables), got)
		}
	})
}

func TestBadInput(t *testing.T) {
	for _, tt := range []struct{ args, want string }{
		{"nosuch", "leafsql help"},
		{"check", "no -dsn"},
		{"check -nosuch", "-h lists the flags"},
		{"check -dsn x/y orders", "takes no arguments"},
		{"check root:secret@tcp(127.0.0.1:1)/shop", "-dsn"},
		{"serve root:secret@tcp(127.0.0.1:1)/shop", "-dsn"},
		{"check -dsn root:secret@shop", "write user:password@"},
		{"check -dsn env:LEAFSQL_NOT_SET", "LEAFSQL_NOT_SET is not set"},
		{"check -dsn root:secret@tcp(127.0.0.1:1)/shop?leafTables=orders", "cannot connect to 127.0.0.1:1/shop"},
		{"check -dsn root:secret@tcp(127.0.0.1:1)/shop?leafNoSuch=1", "leafNoSuch"},
	} {
		status, out, errs := leafsql(t.Context(), strings.Fields(tt.args)...)
		if status != unclear || !strings.Contains(errs, tt.want) || strings.Contains(errs+out, "secret") || !strings.HasPrefix(errs, "leafsql: ") {
			t.Errorf("%s: %d\n%s%s", tt.args, status, errs, out)
		}
	}
	if out := mustRun(t, fine, "help"); !strings.Contains(out, "check") {
		t.Error(out)
	}
	if out := mustRun(t, fine, "check", "-h"); !strings.Contains(out, "-shard") {
		t.Error(out)
	}
}

// TestCheckLockedTables: MariaDB leaves the triggers of a locked table out.
func TestCheckLockedTables(t *testing.T) {
	server := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB}) // no other test's check is to meet the lock
	open(t, server.DSN(""), "CREATE DATABASE shop", "CREATE DATABASE other").Close()
	dsn := server.DSN("shop")
	db := open(t, dsn, durable, allocTable, "CREATE TABLE orders (id BIGINT PRIMARY KEY)", "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)")
	holder := open(t, server.DSN("other"))
	ctx, free := context.WithCancel(t.Context())
	held := make(chan struct{})
	go func() {
		defer close(held)
		holder.ExecContext(ctx, "CREATE TABLE locked AS SELECT SLEEP(600) AS x")
	}()
	defer func() { free(); <-held }()
	for number(t, db, "SELECT COUNT(*) FROM information_schema.processlist WHERE db = 'other' AND state = 'User sleep'") == 0 {
		time.Sleep(5 * time.Millisecond)
	}
	report := jsonOf[check.Report](t, unclear, "check", "-dsn", dsn+"?leafTables=orders")
	if got := found(report); !slices.Equal(got, []string{"hidden"}) || !strings.Contains(report.Findings[0].Message, "locked") {
		t.Errorf("%+v", report.Findings)
	}
}

// losesSelectedKeys reports whether the server has the bug MDEV-36026.
func losesSelectedKeys(t *testing.T, db *sql.DB) bool {
	t.Helper()
	var version string
	if err := db.QueryRow("SELECT VERSION()").Scan(&version); err != nil {
		t.Fatal(err)
	}
	number, _, _ := strings.Cut(version, "-")
	var major, minor, patch int
	if _, err := fmt.Sscanf(number, "%d.%d.%d", &major, &minor, &patch); err != nil {
		t.Fatalf("version %q: %v", version, err)
	}
	_, has := versions.NullsColumns(strings.Contains(version, "MariaDB"), major*10000+minor*100+patch)
	return has
}
