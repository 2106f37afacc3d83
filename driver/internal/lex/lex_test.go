package lex

import (
	"fmt"
	"strings"
	"testing"
)

var kindNames = map[Kind]string{
	Word: "w", Name: "n", String: "s", HexString: "x", BitString: "b", Number: "#", Param: "p", Var: "v", Assign: ":", NullN: "N", Bad: "!",
}

// tokens returns the kinds and texts of the tokens.
func tokens(s Scanner) string {
	var b strings.Builder
	for t := s.Next(); t.Kind != EOF; t = s.Next() {
		if b.Len() > 0 {
			b.WriteByte(' ')
		}
		if name, ok := kindNames[t.Kind]; ok {
			fmt.Fprintf(&b, "%s[%s]", name, s.Text[t.Pos:t.End])
		} else {
			b.WriteString(s.Text[t.Pos:t.End])
		}
	}
	return b.String()
}

func TestScannerFindsTokens(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", ""},
		{" \t\r\n\v\f\x00", ""},
		{"SELECT a,b", "w[SELECT] w[a] , w[b]"},
		{"größe $a_1", "w[größe] w[$a_1]"},
		{"`a``b`.`c`", "n[`a``b`] . n[`c`]"},
		{"`a", "![`a]"},
		{"'it''s' 'a\\'b' \"x\"", `s['it''s'] s['a\'b'] s["x"]`},
		{`'a\\'b`, `s['a\\'] w[b]`},
		{"'a", "!['a]"},
		{`'a\`, `!['a\]`},
		{`'a\'`, `!['a\']`},
		{"n'x' N'x' x'4F' X'' b'01' B'1' _utf8mb4'x' nn'x'", "s[n'x'] s[N'x'] x[x'4F'] x[X''] b[b'01'] b[B'1'] w[_utf8mb4] s['x'] w[nn] s['x']"},
		{"n 'x' n\"x\"", `w[n] s['x'] w[n] s["x"]`},
		{"1 1.5 .5 1. 1e5 1.5e-3 1E+2 0x4F 0b01 0x 0xg 0b2", "#[1] #[1.5] #[.5] #[1.] #[1e5] #[1.5e-3] #[1E+2] #[0x4F] #[0b01] w[0x] w[0xg] w[0b2]"},
		{"1a 1e 1e+ 1ea 2b.3c t.1 t.1e5 t .5", "w[1a] w[1e] w[1e] + w[1ea] w[2b] . w[3c] w[t] . w[1] w[t] . w[1e5] w[t] #[.5]"},
		{"db . t.`x`.y", "w[db] . w[t] . n[`x`] . w[y]"},
		{"0X4F", "w[0X4F]"},
		{"? '?' /* ? */ -- ?\n? # ?", "p[?] s['?'] p[?]"},
		{"29--1 29-- 1\n2 --\n3 --", "#[29] - - #[1] #[29] #[2] #[3]"},
		{"a--\tb\nc --\x01d\ne", "w[a] w[c] w[e]"},
		{"a/b a/*b*/c/**/d/* /* */ e", "w[a] / w[b] w[a] w[c] w[d] w[e]"},
		{"a */ b", "w[a] * / w[b]"},
		{"a /* b", "w[a] ![/* b]"},
		{"/*+ HINT */ a", "w[a]"},
		{"a /*! b */ c /*!50000 d*/ e /*!50000f*/", "w[a] w[b] w[c] w[d] w[e] w[f]"},
		{"a /*!5000 b*/", "w[a] #[5000] w[b]"},
		{"a /*! b", "w[a] w[b] ![]"},
		{"a /*! /* b */ c */ d", "w[a] w[c] w[d]"},
		{"@a @@b @`c d` @'e' @a.b @", "v[@a] v[@@b] v[@] n[`c d`] v[@] s['e'] v[@a.b] v[@]"},
		{"@a:=1 a:b :=", "v[@a] :[:=] #[1] w[a] : w[b] :[:=]"},
		{`\N \n`, `N[\N] \ w[n]`},
		{"a<=>b||c", "w[a] < = > w[b] | | w[c]"},
		{"a -- b\x00c", "w[a] w[c]"},
	} {
		if got := tokens(Scanner{Text: c.text, Version: 90704}); got != c.want {
			t.Errorf("tokens of %q\ngot %s\nwant %s", c.text, got, c.want)
		}
	}
}

func TestSQLModeChangesTokens(t *testing.T) {
	for _, c := range []struct {
		text     string
		settings Scanner
		want     string
		seen     Seen
	}{
		{`'a\' b`, Scanner{NoBackslashEscapes: true}, `s['a\'] w[b]`, SeenBackslash},
		{`"a" "b""c"`, Scanner{ANSIQuotes: true}, `n["a"] n["b""c"]`, SeenDoubleQuote},
		{`"a\" b`, Scanner{ANSIQuotes: true}, `n["a\"] w[b]`, SeenDoubleQuote},
		{`a \ b`, Scanner{}, `w[a] \ w[b]`, 0},
	} {
		s := c.settings
		s.Text = c.text
		if got := tokens(s); got != c.want {
			t.Errorf("tokens of %q\ngot %s\nwant %s", c.text, got, c.want)
		}
		for s.Next().Kind != EOF {
		}
		if s.Seen != c.seen {
			t.Errorf("Seen after %q = %b, want %b", c.text, s.Seen, c.seen)
		}
	}
}

func TestVersionCommentsDependOnServer(t *testing.T) {
	for _, c := range []struct {
		text         string
		maria, mysql string
		old          string // MySQL 5.6
	}{
		{"a /*! b */ c", "w[a] w[b] w[c]", "w[a] w[b] w[c]", "w[a] w[b] w[c]"},
		{"a /*!50614 b */ c", "w[a] w[b] w[c]", "w[a] w[b] w[c]", "w[a] w[b] w[c]"},
		{"a /*!50699 b */ c", "w[a] w[b] w[c]", "w[a] w[b] w[c]", "w[a] w[c]"},
		{"a /*!50700 b */ c", "w[a] w[c]", "w[a] w[b] w[c]", "w[a] w[c]"},
		{"a /*!90705 b */ c", "w[a] w[c]", "w[a] w[c]", "w[a] w[c]"},
		{"a /*M! b */ c", "w[a] w[b] w[c]", "w[a] w[c]", "w[a] w[c]"},
		{"a /*M!80000 b */ c", "w[a] w[b] w[c]", "w[a] w[c]", "w[a] w[c]"},
		{"a /*M!101120 b */ c", "w[a] w[c]", "w[a] w[c]", "w[a] w[c]"},
		{"a /*!99999 b /* c */ d */ e", "w[a] w[e]", "w[a] w[e]", "w[a] w[e]"},
		{"a /*!99999 'b */ c' */", "w[a] w[c] ![' */]", "w[a] w[c] ![' */]", "w[a] w[c] ![' */]"},
		{"/*!80000 a */ /*!80000 b */", "", "w[a] w[b]", ""},
		{"a /*!99999 b", "w[a] ![/*!99999 b]", "w[a] ![/*!99999 b]", "w[a] ![/*!99999 b]"},
	} {
		for _, r := range []struct {
			name, want string
			settings   Scanner
		}{
			{"MariaDB", c.maria, Scanner{MariaDB: true, Version: 101119}},
			{"MySQL", c.mysql, Scanner{Version: 90704}},
			{"old MySQL", c.old, Scanner{Version: 50614}},
		} {
			r.settings.Text = c.text
			if got := tokens(r.settings); got != r.want {
				t.Errorf("%s: tokens of %q\ngot %s\nwant %s", r.name, c.text, got, r.want)
			}
		}
	}
}

// TestSixDigitsOfVersionCommentsDependOnServer: MySQL servers read six digits in two ways, MariaDB servers in one.
// TestTiDBRunsVersionCommentsOfAnyVersion: TiDB runs version comments of any version, and its own.
func TestTiDBRunsVersionCommentsOfAnyVersion(t *testing.T) {
	for text, want := range map[string]string{
		"a /*!99999 b */ c":            "w[a] w[b] w[c]",
		"a /*T! b */ c":                "w[a] w[b] w[c]",
		"a /*T![ttl,placement] b */ c": "w[a] w[b] w[c]",
		"a /*M! b */ c":                "w[a] w[c]",
		"a /*T b */ c":                 "w[a] w[c]",
		"a /*T![ b":                    "w[a] [ w[b] ![]",
		"a /*T! b":                     "w[a] w[b] ![]",
	} {
		if got := tokens(Scanner{Text: text, TiDB: true, Version: 80011}); got != want {
			t.Errorf("tokens(%q) = %s, want %s", text, got, want)
		}
	}
	if got, want := tokens(Scanner{Text: "a /*T! b */ c", Version: 80011}), "w[a] w[c]"; got != want {
		t.Errorf("tokens on MySQL = %s, want %s", got, want)
	}
}

func TestSixDigitsOfVersionCommentsDependOnServer(t *testing.T) {
	for version, want := range map[string]string{"101119": "w[a] w[b] w[c]", "101120": "w[a] w[c]"} {
		s := Scanner{Text: "a /*!" + version + " b */ c", MariaDB: true, Version: 101119}
		if got := tokens(s); got != want {
			t.Errorf("tokens on %s = %s, want %s", version, got, want)
		}
	}
	s := Scanner{Text: "a /*!080000 b */ c", Version: 90704}
	for s.Next().Kind != EOF {
	}
	if s.Seen&SeenSixDigits == 0 {
		t.Errorf("Seen = %b, want SeenSixDigits", s.Seen)
	}
}

// FuzzScanner: tokens come in order, do not overlap, and end with the text.
func FuzzScanner(f *testing.F) {
	for _, text := range []string{"", "a.1e5", "'a\\'", "/*!80000 a /* b */ */", "0x", "n'", "@`", "\\N", "--", "1.e", "t.`x", "\"\"\"", "/*M!"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, s := range []Scanner{
			{}, {NoBackslashEscapes: true}, {ANSIQuotes: true}, {MariaDB: true, Version: 101119}, {Version: 90704},
		} {
			s.Text = text
			end := 0
			for {
				tok := s.Next()
				if tok.Kind == EOF {
					break
				}
				if tok.Pos < end || tok.End < tok.Pos || tok.End > len(text) || tok.End == tok.Pos && tok.Kind != Bad {
					t.Fatalf("%q: token of kind %d at %d to %d, want one at %d or later within the text", text, tok.Kind, tok.Pos, tok.End, end)
				}
				end = tok.End
			}
			if tok := s.Next(); tok.Kind != EOF {
				t.Fatalf("%q: Next() after the end = %v, want EOF", text, tok)
			}
		}
	})
}

func BenchmarkScanner(b *testing.B) {
	text := strings.Repeat("('customer 17', 17.50, '2026-01-02 03:04:05', NULL, 'open', 12, 'Springfield', '00017'), ", 1000)
	b.SetBytes(int64(len(text)))
	for b.Loop() {
		s := Scanner{Text: text}
		for s.Next().Kind != EOF {
		}
	}
}
