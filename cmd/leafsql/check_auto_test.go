//go:build unix

package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCheckNotesUnfilledColumns: each AUTO_INCREMENT column that no rule fills is a note with the rule that fills it.
func TestCheckNotesUnfilledColumns(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		second := target.Database(t)
		other := databaseName(second)
		open(t, second, "CREATE TABLE far (day INT, num INT AUTO_INCREMENT, PRIMARY KEY (num, day))", "CREATE TABLE near (id BIGINT PRIMARY KEY)")
		db := open(t, dsn, allocTable, "CREATE TABLE plain (id BIGINT PRIMARY KEY)",
			"CREATE TABLE part (id BIGINT AUTO_INCREMENT, day INT, PRIMARY KEY (id, day)) PARTITION BY HASH (day) PARTITIONS 2",
			"CREATE TABLE uu (id CHAR(36) PRIMARY KEY, num INT AUTO_INCREMENT, UNIQUE (num))",
			"CREATE TABLE mixed (id BIGINT PRIMARY KEY, num INT AUTO_INCREMENT, UNIQUE (num))",
			"CREATE TABLE log (day INT, id BIGINT AUTO_INCREMENT, PRIMARY KEY (id, day))",
			"INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('plain', 1, 10), ('mixed', 1, 10), ('near', 1, 10)")
		of := func(leafTables string) (notes map[string]string) {
			notes = make(map[string]string)
			for _, f := range runJSON[check.Report](t, exitOK, "check", "-dsn", dsn+"?leafTables="+leafTables).Findings {
				if f.Code == "unfilled" {
					if f.Severity != check.Note || !strings.Contains(f.Message, "AUTO_INCREMENT") {
						t.Errorf("finding = %+v, want a note on AUTO_INCREMENT", f)
					}
					rule, _, _ := strings.Cut(f.Fix, " ")
					notes[f.Table] = rule
				}
			}
			return notes
		}
		here := databaseName(dsn) + "."
		want := map[string]string{here + "part": "part:id", here + "uu": "uu:num", here + "mixed": "mixed:num"}
		if got := of("*,!log"); !equalMaps(got, want) {
			t.Errorf("under *: %v, want %v", got, want)
		}
		want[other+".far"] = other + ".far:num"
		if got := of("*,!log," + other + ".*"); !equalMaps(got, want) {
			t.Errorf("with another database: %v, want %v", got, want)
		}
		var rules []string
		for _, rule := range want {
			rules = append(rules, rule)
		}
		exec(t, db, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('part', 1, 10), ('uu', 1, 10), ('far', 1, 10)")
		slices.Sort(rules)
		report := runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn+"?leafTables=plain,!log,"+strings.Join(rules, ","))
		if got := listFindings(report); slices.ContainsFunc(got, func(f string) bool { return strings.HasPrefix(f, "unfilled") }) || !slices.Contains(got, "auto-increment uu") {
			t.Errorf("with the rules of the notes: %v, want no note, and a warning on AUTO_INCREMENT", got)
		}
		if got := of("none"); len(got) > 0 {
			t.Errorf("findings with leafTables=none = %v, want none", got)
		}
	})
}

func equalMaps(a, b map[string]string) bool {
	for k, v := range a {
		if b[k] != v {
			return false
		}
	}
	return len(a) == len(b)
}

// TestCheckReportsAutoIncrementThatCameBack: AUTO_INCREMENT on a column that leafsql fills has its own message, and check
// names the queries that do not return the next id.
func TestCheckReportsAutoIncrementThatCameBack(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
		message := func() string {
			t.Helper()
			_, out, _ := runLeafsql(t.Context(), "check", "-dsn", dsn+"?leafTables=orders")
			_, out, found := strings.Cut(out, ": auto-increment: ")
			if !found || !strings.Contains(out, "SHOW TABLE STATUS") {
				t.Errorf("output = %s\nwant a finding on AUTO_INCREMENT with the queries that do not return the next id", out)
			}
			return out
		}
		if m := message(); strings.Contains(m, "at its start") {
			t.Errorf("message before leaf_alloc has a row = %q, want none of \"at its start\"", m)
		}
		for _, step := range []string{"-do=switch", "-do=drop", "-do=unguard"} {
			if step == "-do=drop" {
				message() // while the trigger exists
			}
			mustRun(t, exitOK, "migrate", "-dsn", dsn, step, "orders")
		}
		exec(t, openLeaf(t, dsn+"?leafTables=orders"), "INSERT INTO orders VALUES ()")
		mustRun(t, exitOK, "check", "-dsn", dsn+"?leafTables=orders")
		exec(t, db, "ALTER TABLE orders MODIFY id INT NOT NULL AUTO_INCREMENT") // like ent at the start of its program
		if m := message(); !strings.Contains(m, "at its start") {
			t.Errorf("message after a program added AUTO_INCREMENT again = %q, want \"at its start\"", m)
		}
	})
}

// TestCheckReportsIncrementAboveOne: check and the start of the proxy report an auto_increment_increment above 1.
func TestCheckReportsIncrementAboveOne(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--auto-increment-increment=3"}})
			db := open(t, server.DSN(""), "CREATE DATABASE shop", "CREATE TABLE shop.orders (id BIGINT PRIMARY KEY)", "CREATE TABLE shop.leaf_alloc "+strings.TrimPrefix(allocTable, "CREATE TABLE leaf_alloc"),
				"INSERT INTO shop.leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)")
			dsn := server.DSN("shop") + "?leafTables=orders"
			logged := func(dsn string) string {
				p := startProxy(t, 1, "-dsn", dsn, "-listen", "127.0.0.1:0")
				p.end(t)
				return p.output.String()
			}
			report := runJSON[check.Report](t, exitProblems, "check", "-dsn", dsn)
			if got := listFindings(report); !slices.Equal(got, []string{"increment"}) || !strings.Contains(report.Findings[0].Message, "auto_increment_increment is 3") ||
				!strings.Contains(report.Findings[0].Fix, "sessionVariables=auto_increment_increment=1") {
				t.Fatalf("findings = %+v, want increment with the value 3 and a hint", report.Findings)
			}
			f := runJSON[check.Report](t, exitOK, "check", "-dsn", dsn+"&auto_increment_increment=1").Findings
			if !slices.ContainsFunc(f, func(f check.Finding) bool { return f.Code == "increment" && f.Severity == check.Note }) {
				t.Errorf("findings with a DSN that sets it = %+v, want a note", f)
			}
			if log := logged(dsn); !strings.Contains(log, "auto_increment_increment") || !strings.Contains(log, "sessionVariables=auto_increment_increment=1") {
				t.Errorf("log of the proxy = %s\nwant the setting of clients", log)
			}
			exec(t, db, report.Findings[0].SQL...)
			mustRun(t, exitOK, "check", "-dsn", dsn)
			if log := logged(dsn); strings.Contains(log, "auto_increment_increment") {
				t.Errorf("log of the proxy with an increment of 1 = %s\nwant no line about it", log)
			}
		})
	}
}
