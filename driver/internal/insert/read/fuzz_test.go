package read

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/insert/inserttest"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// modes are the settings under which a query is fuzzed.
var modes = []string{"", "mysql", "ansi", "nobackslash", "ansi nobackslash", "unknown", "unknown", "result", "latin1", "gbk", "big5 ansi", "sjis"}

func FuzzParse(f *testing.F) {
	for _, text := range inserttest.Corpus(f, "testdata") {
		f.Add(text)
	}
	f.Add("INSERT INTO orders (total) SELECT 1 FROM x ON DUPLICATE KEY UPDATE total = orders.") // ends in a name
	f.Add("INSERT größe 0")                                                                     // refused, and the session's character set is needed
	f.Fuzz(func(t *testing.T, text string) {
		for _, m := range modes {
			checkText(t, text, m)
		}
	})
}

// checkText checks properties that hold for every query.
func checkText(t *testing.T, text, set string) {
	mode, schema := settings(set)
	p, unknown, err := Parse(text, mode, schema)
	switch {
	case err != nil:
		if p != nil || unknown {
			t.Fatalf("%s: Parse(%q) = plan %v, unknown %v, error %v; want only an error", set, text, p != nil, unknown, err)
		}
		return
	case unknown:
		if p != nil || mode.SessionKnown {
			t.Fatalf("%s: Parse(%q) = plan %v and unknown settings, want no plan, and settings that are not known", set, text, p != nil)
		}
		return
	}
	if p.Cut > 0 {
		if p.Cut >= len(text) || p.CutInput > p.NumInput || p.Inserts != nil {
			t.Fatalf("%s: Parse(%q): cut at %d with %d of %d placeholders and %d inserts, want a cut before the end without inserts", set, text, p.Cut, p.CutInput, p.NumInput, len(p.Inserts))
		}
		return
	}
	none := make([]insert.Block, len(p.Inserts))
	always := false
	for i, in := range p.Inserts {
		if in.RowsWithoutKey == 0 && len(in.ArgKeys) == 0 && !in.Positional && in.Staging == nil && in.Floor == 0 {
			t.Fatalf("%s: Parse(%q): statement %d has nothing to fill, want rows or keys", set, text, i)
		}
		none[i].Explicit = make([]bool, len(in.ArgKeys))
		for j := range none[i].Explicit {
			none[i].Explicit[j] = true
		}
		always = always || in.Positional || in.Update == insert.AlwaysUpdate
		if in.NeedsOwnText() && len(p.Inserts) > 1 {
			t.Fatalf("%s: Parse(%q): %d inserts, want a statement with its own text alone", set, text, len(p.Inserts))
		}
		if in.Staging != nil {
			checkStage(t, text, set, p)
			return
		}
	}
	if !always && (p.Text(none) != text || p.Template(none).Text != text) {
		t.Fatalf("%s: text of %q changed without ids, want it unchanged", set, text)
	}
	if len(p.Inserts) == 0 {
		return
	}

	fills := blocksFor(p, 201)
	for _, f := range [][]insert.Block{fills, none} {
		s := p.Template(f)
		args := insert.AppendArgs(nil, make([]int, p.NumInput), s, f, idOf(func(id int64) int { return int(id) }), func(n int64) int { return int(n) })
		if len(args) != s.NumInput {
			t.Fatalf("%s: %q: %d arguments, want %d", set, text, len(args), s.NumInput)
		}
		if again, _, err := Parse(s.Text, mode, schema); err == nil && again != nil && again.NumInput != s.NumInput {
			t.Fatalf("%s: %q: NumInput = %d, want the %d placeholders of %q", set, text, s.NumInput, again.NumInput, s.Text)
		}
	}

	// A filled query has no row without a key. Users do not write the expression that numbers the rows
	// of a select.
	for _, in := range p.Inserts {
		if len(in.ArgKeys) > 0 {
			return
		}
	}
	_, schema = settings(set + " result") // a marker is an expression
	if p, unknown, err = Parse(text, mode, schema); unknown || err != nil {
		return // now the query is read differently
	}
	filled := p.Text(fills)
	q, unknown, err := Parse(filled, mode, schema)
	if unknown && strings.Contains(set, "unknown") {
		return // now its values are examined
	}
	if r, ok := err.(*insert.Refusal); ok && (strings.Contains(r.Reason, "version comment") || strings.HasPrefix(r.Reason, "the statement cannot be read")) {
		return // now its values are examined; if they cannot be read, no server can read them
	}
	if err != nil || unknown {
		t.Fatalf("%s: %q: Parse of the filled query: unknown %v, error %v; want a plan: %q", set, text, unknown, err, filled)
	}
	conditional := slices.ContainsFunc(p.Inserts, func(in insert.Insert) bool { return in.Conditional })
	for _, in := range q.Inserts {
		// A select of too few values is staged, and the server refuses it.
		if in.RowsWithoutKey > 0 || len(in.ArgKeys) > 0 || in.Staging != nil && !conditional {
			t.Fatalf("%s: %q: the filled query still lacks a key, want none: %q", set, text, filled)
		}
	}
	if q.NumInput != p.NumInput || q.Results != p.Results {
		t.Fatalf("%s: %q: filled query with %d placeholders and %d results, want %d and %d: %q", set, text, q.NumInput, q.Results, p.NumInput, p.Results, filled)
	}
}

// checkStage checks properties that hold for every staged statement.
func checkStage(t *testing.T, text, set string, p *insert.Plan) {
	in := &p.Inserts[0]
	s := in.Staging
	if s.FillArgs < 0 || s.FillArgs > p.NumInput || s.Key >= len(s.Columns) {
		t.Fatalf("%s: %q: FillArgs = %d, Key = %d; want at most %d placeholders, and a column of %v", set, text, s.FillArgs, s.Key, p.NumInput, s.Columns)
	}
	staged.FillQuery(s, "`shop`.`stage`", "")
	if s.Key >= 0 {
		staged.CountQuery(in, "`shop`.`stage`", 1)
	}
	staged.CopyQuery(in, "`shop`.`stage`", "", insert.Block{})
	staged.CopyQuery(in, "`shop`.`stage`", "", insert.Block{First: 201, N: 1})
}

// TestLongTexts: time and stack grow no faster than the length of the query.
func TestLongTexts(t *testing.T) {
	const n, longest = 1 << 20, 5 * time.Second
	took := stopwatch.Start(t)
	rep := func(s string) string { return strings.Repeat(s, n/len(s)) }
	for _, text := range []string{
		rep("("), rep(")"), rep("'"), rep("`"), rep("\""), rep("/*"), rep("/*!"), rep("/*!80000 "), rep("*/"), rep("--"), rep("-- \n"), rep("#"),
		rep("\\"), rep("?"), rep(";"), rep("a "), rep("a:"), rep("a."), rep("@"), rep("0x"), rep("1e"), rep("IF("), rep("INSERT "), rep("insert(a"), rep("."),
		"INSERT INTO orders (customer) VALUES " + rep("("),
		"INSERT INTO orders (customer) VALUES (" + rep("(1),"),
		"INSERT INTO orders (customer) VALUES " + rep("(1),"),
		"INSERT INTO orders (id) VALUES (" + rep("(") + "0" + rep(")") + ")",
		"INSERT INTO orders (id) VALUES (" + rep("-") + "0)",
		"INSERT INTO orders (id) VALUES " + rep("((((NULL)))),"),
		"INSERT INTO orders (id) VALUES " + rep("(?),") + "(1)",
		"INSERT INTO orders (id) VALUES ('" + rep("0") + "')",
		"INSERT INTO orders (id) VALUES (" + rep("'' ") + ")",
		"INSERT INTO orders (" + rep("a,") + "b) VALUES (1)",
		"INSERT INTO orders SET " + rep("a=1,") + "b=1",
		"INSERT INTO orders SET a=1 ON DUPLICATE KEY UPDATE " + rep("a=1,") + "id=id",
		"INSERT INTO orders (customer) SELECT " + rep("(SELECT "),
		"INSERT INTO orders (customer) SELECT " + rep("1 UNION SELECT ") + "1",
		rep("INSERT INTO orders (customer) VALUES (1) AS n ON DUPLICATE KEY UPDATE total=1;"),
		rep("INSERT INTO orders VALUES ();"),
		rep("INSERT INTO other VALUES ();"),
		rep("CREATE PROCEDURE p() BEGIN "), "CREATE PROCEDURE p() BEGIN " + rep("THEN IF("),
		rep("CREATE EVENT e DO BEGIN;END;"), rep("ALTER EVENT e DO CASE "), rep("CREATE PROCEDURE p a:"), "CREATE FUNCTION f() " + rep("RETURN (("), "CREATE PACKAGE p AS " + rep("IF END "),
		"CREATE PROCEDURE p() BEGIN DECLARE HANDLER FOR " + rep("NOT a,"), "CREATE PROCEDURE p() BEGIN " + rep("INSERT INTO other VALUES ();"),
		"BEGIN NOT ATOMIC " + rep("PREPARE s FROM 'x'"), "EXECUTE IMMEDIATE " + rep("CONCAT('"), "EXECUTE IMMEDIATE " + rep("'x' y "),
		"SET NAMES gbk; INSERT INTO orders (a) VALUES ('" + rep("\xbf\\"), rep("\xa0"), rep("\xe9`"),
		"INSERT INTO orders (customer) " + rep("(") + "SELECT 1" + rep(")"),
		rep("BEGIN NOT ATOMIC "), "BEGIN NOT ATOMIC " + rep("INSERT INTO other VALUES ();"),
		"EXECUTE IMMEDIATE '" + rep("EXECUTE IMMEDIATE ''") + "'",
		rep("PREPARE s FROM 'x';"), rep("SET STATEMENT a=1 FOR "), rep("ANALYZE "), rep("USE a;"),
	} {
		for _, m := range []string{"", "unknown"} {
			mode, schema := settings(m)
			before := took()
			if p, unknown, err := Parse(text, mode, schema); err == nil && !unknown {
				fills := blocksFor(p, 1)
				p.Text(fills)
				p.Template(fills)
			}
			if d := took() - before; d > longest { // quadratic growth would take minutes
				t.Errorf("Parse(%.40s…) of %d bytes took %v, want at most %v", text, len(text), d, longest)
			}
		}
	}
}
