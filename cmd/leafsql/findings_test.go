package main

import (
	"bytes"
	"strings"
	"testing"

	"github.com/rivo/uniseg"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/internal/chinese"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestReportFitsTerminal: on a terminal no line of a report is wider than 80 columns, and equal findings are one. JSON has each
// of them.
func TestReportFitsTerminal(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1000000, 1000), ('customers_of_the_archive', 1234567890123, 1000), ('invoices', 5, 1000)",
		"CREATE TABLE orders (id BIGINT NOT NULL PRIMARY KEY AUTO_INCREMENT)", "CREATE TABLE customers_of_the_archive (id BIGINT UNSIGNED NOT NULL PRIMARY KEY AUTO_INCREMENT COMMENT 'as printed on all invoices')",
		"CREATE TABLE invoices (id BIGINT NOT NULL PRIMARY KEY)", "INSERT INTO invoices VALUES (987654321)")
	args := []string{"check", "-dsn", dsn + "?leafTables=*"}
	for _, texts := range []chinese.Texts{nil, chineseTexts} {
		var out, errs bytes.Buffer
		s := &screen.Screen{Out: &out, Err: &errs, Texts: texts, Width: func() int { return 80 }}
		if status := run(t.Context(), s, args); status != exitProblems {
			t.Errorf("status = %d with the error %q, want %d", status, &errs, exitProblems)
		}
		for line := range strings.Lines(out.String()) {
			if width := uniseg.StringWidth(strings.TrimSuffix(line, "\n")); width > 80 {
				t.Errorf("%q is %d columns wide, want at most 80", line, width)
			}
		}
		if n := strings.Count(out.String(), "auto-increment"); n != 1 {
			t.Errorf("output =\n%swant the two findings auto-increment as one, got %d", &out, n)
		}
		if want := s.Texts.Text("Run leafsql check again.") + "\n"; !strings.HasSuffix(out.String(), want) {
			t.Errorf("output =\n%swant it to end with %q", &out, want)
		}
	}
	found := 0
	for _, f := range runJSON[check.Report](t, exitProblems, args...).Findings {
		if f.Code == "auto-increment" {
			found++
		}
	}
	if found != 2 {
		t.Errorf("JSON has %d findings auto-increment, want 2", found)
	}
}

// TestGroupedFindingsKeepTheirSQL: if a statement belongs to several findings of a group, each has it.
func TestGroupedFindingsKeepTheirSQL(t *testing.T) {
	var out bytes.Buffer
	var findings []check.Finding
	for _, table := range []string{"parent", "child", "parent"} {
		findings = append(findings, check.Finding{Code: "auto-increment", Severity: check.Warning, Server: "db", Table: table, SQL: []string{"SET a = 0", "ALTER TABLE " + table, "SET a = 1"}})
	}
	printFindings(&screen.Screen{Out: &out}, findings)
	want := "    SET a = 0;\n    ALTER TABLE parent;\n    SET a = 1;\n    SET a = 0;\n    ALTER TABLE child;\n    SET a = 1;\n"
	if !strings.HasSuffix(out.String(), want) {
		t.Errorf("output =\n%swant it to end with\n%s", &out, want)
	}
}

// TestNextStepsFollowFindings: the report ends with the subcommands for its findings, in the order in which they are to run.
func TestNextStepsFollowFindings(t *testing.T) {
	for _, c := range []struct {
		findings []check.Finding
		want     string
	}{
		{nil, "Nothing to do."},
		{[]check.Finding{{Code: "row-unmarked", Severity: check.Note}}, "Nothing to do."},
		{[]check.Finding{{Code: "hidden", Severity: check.Unknown}}, "Next: apply the fixes above"},
		{[]check.Finding{{Code: "stores-differ", Severity: check.Error}}, "  1. Apply the fixes … 2. Run leafsql check again."},
		{[]check.Finding{{Code: "row-missing", Severity: check.Error}}, "  1. Run leafsql init … 2. Run leafsql check again."},
		{[]check.Finding{{Code: "auto-increment", Severity: check.Warning}}, "  1. Apply the fixes … 2. Run leafsql check again."}, // on TiDB
		{[]check.Finding{{Code: "auto-increment", Severity: check.Warning, Migrate: true}, {Code: "alloc-missing", Severity: check.Error}, {Code: "rights", Severity: check.Error}},
			"  1. Run leafsql init … 2. Run leafsql migrate … 3. Apply the other fixes … 4. Run leafsql check again."},
	} {
		var out bytes.Buffer
		printNext(&screen.Screen{Out: &out}, c.findings)
		rest := out.String()
		for part := range strings.SplitSeq(c.want, "…") {
			before, after, ok := strings.Cut(rest, part)
			if rest = after; !ok {
				t.Errorf("output for %v =\n%swant %q after %q", c.findings, &out, part, before)
			}
		}
	}
}
