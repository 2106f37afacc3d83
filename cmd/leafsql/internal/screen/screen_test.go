package screen

import (
	"bytes"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestTableAlignsColumns(t *testing.T) {
	var out bytes.Buffer
	(&Screen{Out: &out}).Table([]string{"TAG", "NEXT"}, [][]string{{"or\tde\x1brs", FormatCount(12001)}, {"a", FormatCount(-123456)}}, "NEXT")
	want := "TAG           NEXT\n" +
		"or?de?rs    12,001\n" +
		"a         -123,456\n"
	if out.String() != want {
		t.Errorf("table =\n%swant\n%s", &out, want)
	}
}

// TestTableFitsTerminal: cells are broken between words and in names, then also in words.
func TestTableFitsTerminal(t *testing.T) {
	for width, want := range map[int]string{
		30: "TABLE        TYPE      HIGHEST\n" +
			"                           KEY\n" +
			"shop.orders  bigint    123,456\n" +
			"             unsigned\n",
		25: "TABLE   TYPE      HIGHEST\n" +
			"                      KEY\n" +
			"shop.   bigint    123,456\n" +
			"orders  unsigned\n",
		22: "TABLE  TYPE    HIGHEST\n" +
			"                   KEY\n" +
			"shop.  bigint  123,456\n" +
			"order  unsign\n" +
			"s      ed\n",
	} {
		var out bytes.Buffer
		s := &Screen{Out: &out, Width: func() int { return width }}
		s.Table([]string{"TABLE", "TYPE", "HIGHEST KEY"}, [][]string{{"shop.orders", "bigint unsigned", FormatCount(123456)}}, "HIGHEST KEY")
		if out.String() != want {
			t.Errorf("table with %d columns =\n%swant\n%s", width, &out, want)
		}
	}
}

// TestTextIsWrappedAtWords: lines are broken at spaces and between Chinese characters, but not after hyphens or before
// Chinese punctuation.
func TestTextIsWrappedAtWords(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"  a range that a running process has\nend\n", "  a range that a\n  running process\n  has\nend\n"},
		{"  -x\n    \tset -do before\n", "  -x\n        set -do\n        before\n"},
		{"run leafsql init -dsn x", "run leafsql init\n-dsn x"},
		{"检查各张表和有没有行的，并给出", "检查各张表和有没\n有行的，并给出"},
		{"https://example.com/a-long-address", "https://example.com/a-long-address"},
		{"", ""},
	} {
		var out bytes.Buffer
		s := &Screen{Out: &out, Width: func() int { return 17 }}
		if s.Printf("%s", c.text); out.String() != c.want {
			t.Errorf("Printf(%q) wrote %q, want %q", c.text, &out, c.want)
		}
	}
}

// TestFilesGetWholeLines: without a terminal nothing is wrapped or coloured.
func TestFilesGetWholeLines(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{Out: &out}
	long := strings.Repeat("word ", 50) + "end"
	s.Printf("%s\n", long)
	s.PrintLabel(Red, "error", ": "+long)
	s.PrintSQL(2, "SELECT "+long)
	if want := long + "\nerror: " + long + "\n  SELECT " + long + "\n"; out.String() != want {
		t.Errorf("output = %q, want %q", &out, want)
	}
}

// TestSQLIsBrokenOutsideQuotes: SQL that is copied from a terminal is the same statement.
func TestSQLIsBrokenOutsideQuotes(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{Out: &out, Width: func() int { return 24 }}
	s.PrintSQL(2, "-- on a server with a long name\nUPDATE t SET a = 'two\nlines   ';")
	s.PrintSQL(2, "CREATE TABLE `a b c d e f g h` (\n  n INT COMMENT 'it''s a \\' long comment',\n  m INT\n);")
	want := "  -- on a server with a long name\n  UPDATE t SET a = 'two\nlines   ';\n  CREATE TABLE\n    `a b c d e f g h` (\n    n INT COMMENT\n    'it''s a \\' long comment',\n    m INT\n  );\n"
	if out.String() != want {
		t.Errorf("SQL =\n%swant\n%s", &out, want)
	}
}

func TestLabelIsColoured(t *testing.T) {
	var out bytes.Buffer
	s := &Screen{Out: &out, Width: func() int { return 24 }, Colours: true}
	s.PrintLabel(Red, "error", ": row-missing: shop.orders, shop.users")
	if want := "\x1b[31merror\x1b[0m: row-missing:\n  shop.orders,\n  shop.users\n"; out.String() != want {
		t.Errorf("label = %q, want %q", &out, want)
	}
}

func TestEnvironmentSwitchesColoursOff(t *testing.T) {
	for _, c := range []struct {
		env  map[string]string
		want bool
	}{{map[string]string{"TERM": "xterm"}, true}, {map[string]string{"TERM": "xterm", "NO_COLOR": "1"}, false}, {map[string]string{"TERM": "dumb"}, false}} {
		if got := hasColours(func(name string) string { return c.env[name] }); got != c.want {
			t.Errorf("hasColours() with %v = %t, want %t", c.env, got, c.want)
		}
	}
}

func TestNumbersHaveSeparators(t *testing.T) {
	for forJSON, want := range map[bool]string{false: "1,024 of 12,345", true: "1024 of 12345"} {
		if got := (&Screen{ForJSON: forJSON}).Sprintf("%[2]d of %[1]d", int64(12345), 1024); got != want {
			t.Errorf("Sprintf() with ForJSON %t = %q, want %q", forJSON, got, want)
		}
	}
}

func TestProgressIsShownAfterASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out bytes.Buffer
		s := &Screen{progress: &out}
		done := s.Progress(func() string { return "1 of 3" })
		time.Sleep(progressDelay - 1)
		done()
		if out.Len() > 0 {
			t.Errorf("output within a second = %q, want none", &out)
		}
		done = s.Progress(func() string { return "2 of 3" })
		time.Sleep(progressDelay + 1)
		done()
		if out.String() != "\r\x1b[K2 of 3\r\x1b[K" {
			t.Errorf("output = %q, want the progress once, and then an empty line", &out)
		}
	})
}
