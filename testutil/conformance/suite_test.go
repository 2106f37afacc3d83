//go:build unix

package main

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestExclusionsHavePeerAndReason: each line names a peer, and has a reason.
func TestExclusionsHavePeerAndReason(t *testing.T) {
	t.Setenv(mysqltest.EnvServer, "tidb")
	total := 0
	for _, p := range peers {
		modes, err := p.exclusions()
		if err != nil {
			t.Fatal(err)
		}
		if len(modes["bare"]) > 0 {
			t.Errorf("%s: %d tests are excluded on go-sql-driver itself, want none", p.name, len(modes["bare"]))
		}
		for _, mode := range []string{"filled", proxied} {
			for _, reason := range modes[mode] {
				if total++; reason == "" {
					t.Errorf("%s: a line of excluded.txt has no reason, want one", p.name)
				}
			}
		}
	}
	if lines := len(parseLines(exclusions)); total != lines {
		t.Errorf("%d lines of excluded.txt name a peer and its mode, want all %d", total, lines)
	}
}

func TestParseReadsOutcomes(t *testing.T) {
	got, crashed := parse([]byte(`=== RUN   TestA
=== RUN   TestA/one
    a_test.go:1: said
--- PASS: TestA (0.00s)
    --- PASS: TestA/one (0.00s)
    --- PASS: TestA/04bd81af-21ad-4692-a208-bb08fe179d73 (0.00s)
=== RUN   TestB
=== PAUSE TestB
--- SKIP: TestC (0.00s)
=== RUN   TestD
--- FAIL: TestD (1.20s)
=== CONT  TestB
=== RUN   TestB/two
panic: interface conversion
`))
	want := outcomes{"TestA": "PASS", "TestA/one": "PASS", "TestA/UUID": "PASS", "TestC": "SKIP", "TestD": "FAIL"}
	if !maps.Equal(got, want) || crashed != "TestB" {
		t.Errorf("parse() = %v, %q, want %v, %q", got, crashed, want, "TestB")
	}
}

func TestDifferencesOmitExclusions(t *testing.T) {
	bare := outcomes{"TestA": "PASS", "TestB": "PASS", "TestC": "FAIL", "TestD": "SKIP", "TestE": "PASS", "TestE/x": "PASS", "TestF": "PASS"}
	got := outcomes{"TestA": "PASS", "TestB": "FAIL", "TestC": "FAIL", "TestD": "SKIP", "TestF": "SKIP"}
	skip := map[string]string{"TestE": "a reason"}
	if d := findDifferences(bare, got, skip); !slices.Equal(d, []string{"TestB", "TestF"}) {
		t.Errorf("findDifferences() = %v, want [TestB TestF]", d)
	}
}

// TestPageListsEveryProgram: docs/programs.md has a row for each program and library whose
// tables have AUTO_INCREMENT, with the version that is tested here.
func TestPageListsEveryProgram(t *testing.T) {
	page, err := os.ReadFile("../../docs/programs.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range peers {
		if !slices.Contains(p.modes, "dropped") {
			continue
		}
		where, version := p.repository, p.commit
		if p.module != "" {
			where, version, _ = strings.Cut(p.module, "@")
			where = "https://" + regexp.MustCompile(`/v\d+$`).ReplaceAllString(where, "")
		} else {
			version = version[:7]
		}
		row := regexp.MustCompile(`(?m)^\|[^|]*\(` + where + `\)[^|]*\|[^|]*` + version + `[^|]*\|.*$`)
		if !row.Match(page) {
			t.Errorf("docs/programs.md has no row for %s %s, want one", where, version)
		}
	}
}
