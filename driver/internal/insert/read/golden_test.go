package read

import (
	"bufio"
	"bytes"
	"flag"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/staged"
)

var update = flag.Bool("update", false, "write what the plans come to into testdata")

// A goldenCase is a query and the expected result. In testdata:
//
//	@ settings up to the next empty line, if they differ from MariaDB's defaults
//	< the query, a Go string if it begins with "
//	> the query with ids from 201, with ? if it has arguments; = for no change;
//	  the statements of a stage: they fill it, read it and copy two of its rows;
//	/ the query up to the cut
//	| the plan of each statement
//	! the refusal
//	~ the session's settings have to be read first
type goldenCase struct {
	comment  []string
	settings string
	text     string
	want     []string
}

func readGolden(t testing.TB, file string) []goldenCase {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	var cases []goldenCase
	var c goldenCase
	sc := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; sc.Scan(); n++ {
		line := sc.Text()
		if c.text != "" && (line == "" || strings.IndexByte("#@<", line[0]) >= 0) {
			cases = append(cases, c)
			c = goldenCase{settings: c.settings}
		}
		switch {
		case line == "":
			c.settings = ""
		case line[0] == '#':
			c.comment = append(c.comment, line)
		case line[0] == '@':
			c.settings = line[2:]
		case line[0] == '<':
			c.text = line[2:]
			if c.text[0] == '"' {
				if c.text, err = strconv.Unquote(c.text); err != nil {
					t.Fatalf("%s:%d: error %v, want a quoted text", file, n, err)
				}
			}
		default:
			c.want = append(c.want, line)
		}
	}
	if c.text != "" {
		cases = append(cases, c)
	}
	return cases
}

func quoteLine(s string) string {
	if s != "" && s[0] != '"' && strings.IndexFunc(s, func(r rune) bool { return r < ' ' || r == 0x7f || r == 0xfffd }) < 0 {
		return s
	}
	return strconv.Quote(s)
}

func goldenFiles(t testing.TB) []string {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatalf("files of testdata = %v, error %v; want at least one", files, err)
	}
	return files
}

func TestPlansEqualGoldenTexts(t *testing.T) {
	for _, file := range goldenFiles(t) {
		t.Run(strings.TrimSuffix(filepath.Base(file), ".txt"), func(t *testing.T) {
			cases := readGolden(t, file)
			var out strings.Builder
			settings := ""
			for i, c := range cases {
				got := outcome(c.text, c.settings)
				if !*update && strings.Join(got, "\n") != strings.Join(c.want, "\n") {
					t.Errorf("%s\ngot  %s\nwant %s", c.text, strings.Join(got, "\n     "), strings.Join(c.want, "\n     "))
				}
				refused := strings.HasPrefix(got[0], "!")
				if refused != (filepath.Base(file) == "refusals.txt") {
					t.Errorf("%s\nin %s: result %s, want refusals exactly in refusals.txt", c.text, file, got[0])
				}
				if i > 0 && (len(c.comment) > 0 || c.settings != settings) {
					out.WriteByte('\n')
					settings = ""
				}
				for _, line := range c.comment {
					fmt.Fprintln(&out, line)
				}
				if c.settings != settings {
					fmt.Fprintf(&out, "@ %s\n", c.settings)
				}
				settings = c.settings
				fmt.Fprintf(&out, "< %s\n%s\n", quoteLine(c.text), strings.Join(got, "\n"))
			}
			if *update {
				if err := os.WriteFile(file, []byte(out.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// settings parses the settings of a case.
func settings(s string) (insert.Settings, Schema) {
	m := insert.Settings{SessionKnown: true, MariaDB: true, Version: 101119, Charset: "utf8mb4"}
	var programs insert.Effects
	plain, triggers, hidden, auto := false, false, false, false
	for _, w := range strings.Fields(s) {
		switch w {
		case "mysql":
			m.MariaDB, m.Version = false, 90704
		case "tidb":
			m.MariaDB, m.TiDB, m.Version = false, true, 80011
		case "vitess":
			m.MariaDB, m.Vitess, m.Version = false, true, 80406
		case "ansi":
			m.ANSIQuotes = true
		case "nobackslash":
			m.NoBackslashEscapes = true
		case "unknown":
			m.SessionKnown, m.Charset = false, ""
		case "old":
			m.MariaDB, m.Version = false, 50614
		case "11.4.5":
			m.Version = 110405
		case "triggers":
			triggers = true
		case "hidden":
			hidden = true
		case "auto":
			auto = true
		case "latin1", "gbk", "big5", "sjis":
			m.Charset = w
		case "readsid":
			programs.Kinds = insert.ReadsID
		case "result":
			plain = true
		default:
			panic("unknown setting " + w)
		}
	}
	table := func(db, name string) (*insert.Table, error) {
		t, err := lookup(db, name)
		if t != nil && plain {
			p := *t
			p.IDWay, p.UpdatesID = insert.NoID, false
			return &p, err
		}
		if t != nil && (triggers || hidden) {
			p := *t
			p.RowTriggers, p.AutoIncrement = insert.HiddenTriggers, auto
			if triggers {
				p.RowTriggers = insert.SomeTriggers
			}
			return &p, err
		}
		return t, err
	}
	return m, Schema{
		Table:  table,
		Stager: &staged.Judge{Settings: m, ProgramEffects: func(db string, calls, views []insert.TableName) (insert.Effects, error) { return programs, nil }},
	}
}

// outcome returns the lines of testdata for a query.
func outcome(text, set string) []string {
	mode, schema := settings(set)
	p, unknown, err := Parse(text, mode, schema)
	switch {
	case err != nil:
		return []string{"! " + err.Error()}
	case unknown:
		return []string{"~"}
	}
	if p.Cut > 0 {
		return []string{"/ " + quoteLine(text[:p.Cut])}
	}
	var lines []string
	if len(p.Inserts) > 0 && p.Inserts[0].Staging != nil {
		in := &p.Inserts[0]
		lines = append(lines, "> "+quoteLine(staged.FillQuery(in.Staging, "stage", "")))
		if in.Staging.Key >= 0 {
			lines = append(lines, "> "+quoteLine(staged.CountQuery(in, "stage", math.MaxInt64)))
		}
		filled, _ := staged.CopyQuery(in, "stage", "", insert.Block{First: 201, UUID: [16]byte{1, 2, 3, 4, 5, 6, 0x70, 7, 0x80, 8, 9, 10, 11, 12, 13, 0xff}, N: 2})
		lines = append(lines, "> "+quoteLine(filled))
	} else {
		blocks := blocksFor(p, 201)
		got := p.Text(blocks)
		if p.NumInput > 0 {
			got = p.Template(blocks).Text
		}
		lines = []string{"> " + quoteLine(got)}
		if got == text {
			lines[0] = "="
		}
	}
	for i := range p.Inserts {
		lines = append(lines, "| "+describe(&p.Inserts[i]))
	}
	if p.SetsSession {
		lines = append(lines, "| sets what the session reads texts by")
	}
	if p.Use != "" || p.Opaque {
		lines = append(lines, fmt.Sprintf("| use %s%s", p.Use, map[bool]string{true: "?"}[p.Opaque]))
	}
	for _, c := range p.Changes {
		line := "| changes " + c.DB + "." + c.Table
		for _, f := range []struct {
			on   bool
			name string
		}{{c.Temporary, "temporary"}, {c.Drop, "drop"}, {c.Truncate, "truncate"}, {c.Database, "database"}, {c.Like.Table != "", "like " + c.Like.Table}} {
			if f.on {
				line += " " + f.name
			}
		}
		lines = append(lines, line)
	}
	return lines
}

func describe(in *insert.Insert) string {
	s := fmt.Sprintf("%d: %s", in.Statement, in.Table.Name)
	switch {
	case in.Staging == nil:
		s += fmt.Sprintf(" rows %d, lacking %d", in.Rows, in.RowsWithoutKey)
	default:
		s += fmt.Sprintf(" staged %v, key %d, args %d", in.Staging.Columns, in.Staging.Key, in.Staging.FillArgs)
	}
	if in.Floor > 0 {
		s += fmt.Sprint(", floor ", in.Floor)
	}
	if len(in.ArgKeys) > 0 {
		s += fmt.Sprint(", keys ", in.ArgKeys)
	}
	for _, f := range []struct {
		on   bool
		name string
	}{
		{in.Duplicates == insert.Replace, "replace"}, {in.Duplicates == insert.Ignore || in.Duplicates == insert.UpdateOrIgnore, "ignore"}, {in.Duplicates >= insert.Update, "upsert"}, {in.Returning, "returning"},
		{in.Conditional, "conditional"}, {in.Way == insert.IDInText, "marker"}, {in.Way == insert.IDSetAfter, "late"}, {in.Update >= insert.RowUpdate, "upsert marker"}, {in.Update == insert.UserUpdate, "user's marker"},
		{in.Update == insert.AlwaysUpdate, "own marker"}, {in.KeepsKey && (in.ExplicitKey > 0 || len(in.ArgKeys) > 0), "keeps the key"}, {in.Positional, "positional"},
		{in.Staging != nil && in.Staging.Needs.HasAny(insert.NeedOneTime), "clock"}, {in.Staging != nil && in.Staging.Needs.HasAny(insert.NeedTryNames), "names the source"},
	} {
		if f.on {
			s += ", " + f.name
		}
	}
	return s
}
