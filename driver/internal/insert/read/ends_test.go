package read

import (
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// TestQueryIsCutAfterEachStatement: a query is cut after each statement that is followed by something, so that the server runs
// the parts one by one as it would run the query.
func TestQueryIsCutAfterEachStatement(t *testing.T) {
	for _, tt := range []struct{ text, parts string }{
		{"INSERT INTO orders (total) VALUES (1)", "INSERT INTO orders (total) VALUES (1)"},
		{"INSERT INTO orders (total) VALUES (1);", "INSERT INTO orders (total) VALUES (1);"},
		{"INSERT INTO orders (total) VALUES (1); \n", "INSERT INTO orders (total) VALUES (1); \n"},
		{"SELECT ';'; INSERT INTO orders (total) VALUES (';;'); SELECT `;`", "SELECT ';';| INSERT INTO orders (total) VALUES (';;');| SELECT `;`"},
		{"SELECT 1; -- done", "SELECT 1;| -- done"},
		{"SELECT 1;; \n;", "SELECT 1;; \n;"},
		{"SELECT 1;;SELECT 2", "SELECT 1;|;SELECT 2"},
		{"SELECT 1; /* c */;", "SELECT 1;| /* c */;"},
		{"INSERT INTO orders (total) SELECT 1 FROM t; -- c", "INSERT INTO orders (total) SELECT 1 FROM t;| -- c"},
		{"SELECT 1; /* c */; SELECT 2;; -- c", "SELECT 1;| /* c */; SELECT 2;|; -- c"},
		{";SELECT 1", ";SELECT 1"},
		{"SELECT 1; BEGIN NOT ATOMIC SELECT 2; SELECT 3; END", "SELECT 1;| BEGIN NOT ATOMIC SELECT 2; SELECT 3; END"},
		{"SELECT 1; IF @a THEN SELECT 2; END IF; SELECT 3 -- c", "SELECT 1;| IF @a THEN SELECT 2; END IF; SELECT 3 -- c"},
		{"SELECT 1; CREATE PROCEDURE p() BEGIN SELECT 2; SELECT 3; END; SELECT 4", "SELECT 1;| CREATE PROCEDURE p() BEGIN SELECT 2; SELECT 3; END;| SELECT 4"},
		{"SELECT 1; CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1; SELECT 2", "SELECT 1;| CREATE TRIGGER g BEFORE INSERT ON t FOR EACH ROW SET NEW.a = 1;| SELECT 2"},
		{"CREATE TABLE orders (id INT); INSERT INTO orders (total) VALUES (1); SELECT 1", "CREATE TABLE orders (id INT);| INSERT INTO orders (total) VALUES (1); SELECT 1"},
		{"INSERT INTO orders (total) SELECT 1 FROM t; SELECT 1; SELECT 2", "INSERT INTO orders (total) SELECT 1 FROM t;| SELECT 1; SELECT 2"},
		{"INSERT INTO orders (total) SELECT 1 FROM t;; ", "INSERT INTO orders (total) SELECT 1 FROM t;; "},
		{"INSERT INTO orders (total) SELECT 1 FROM t; \x00", "INSERT INTO orders (total) SELECT 1 FROM t; \x00"},
		{"INSERT INTO orders (total) SELECT 1 FROM t;; \x00", "INSERT INTO orders (total) SELECT 1 FROM t;|; \x00"},
		{"SELECT 1; INSERT INTO orders (total) SELECT 1 FROM t; SELECT 2", "SELECT 1;| INSERT INTO orders (total) SELECT 1 FROM t; SELECT 2"},
	} {
		plan := mustParse(t, tt.text)
		if got := cutAtEnds(tt.text, plan.Ends); got != tt.parts {
			t.Errorf("%q\ngot  %s\nwant %s", tt.text, got, tt.parts)
		}
		if !slices.IsSorted(plan.Ends) {
			t.Errorf("Ends = %v, want ascending positions", plan.Ends)
		}
	}
}

// TestCommentsBelongToSingleStatement: on a connection for single statements, comments after the only semicolon belong to the statement.
func TestCommentsBelongToSingleStatement(t *testing.T) {
	settings := insert.Settings{MariaDB: true, Version: 101119, SessionKnown: true, SingleStatement: true}
	for _, tt := range []struct{ text, parts string }{
		{"INSERT INTO orders (total) VALUES (1); -- c", "INSERT INTO orders (total) VALUES (1); -- c"},
		{"INSERT INTO orders (total) VALUES (1);\n# c\n/* c */\n; ", "INSERT INTO orders (total) VALUES (1);\n# c\n/* c */\n; "},
		{"INSERT INTO orders (total) VALUES (1); /*!999999 c */", "INSERT INTO orders (total) VALUES (1); /*!999999 c */"},
		{"INSERT INTO orders (total) VALUES (1); /*!40101 DO 1 */", "INSERT INTO orders (total) VALUES (1);| /*!40101 DO 1 */"},
		{"INSERT INTO orders (total) SELECT 1 FROM t; -- c; c", "INSERT INTO orders (total) SELECT 1 FROM t; -- c; c"},
		{"INSERT INTO orders (total) SELECT 1 FROM t;; -- c", "INSERT INTO orders (total) SELECT 1 FROM t;|; -- c"},
		{"INSERT INTO orders (total) SELECT 1 FROM t; /* c */ ; -- c", "INSERT INTO orders (total) SELECT 1 FROM t;| /* c */ ; -- c"},
		{"INSERT INTO orders (total) SELECT 1 FROM t; /* c */; DO 1", "INSERT INTO orders (total) SELECT 1 FROM t;| /* c */; DO 1"},
	} {
		plan, _, err := Parse(tt.text, settings, shop)
		if err != nil {
			t.Fatalf("Parse(%q): error %v, want none", tt.text, err)
		}
		if got := cutAtEnds(tt.text, plan.Ends); got != tt.parts {
			t.Errorf("parts of %q = %s, want %s", tt.text, got, tt.parts)
		}
	}
}

// cutAtEnds returns the parts of a query with a | between them.
func cutAtEnds(text string, ends []int) string {
	var parts []string
	begin := 0
	for _, end := range ends {
		parts = append(parts, text[begin:end])
		begin = end
	}
	return strings.Join(append(parts, text[begin:]), "|")
}

// TestKnownBackslashNeedsNoSettings: if it is known whether a backslash escapes, the session's settings need not be
// read for it. They are read if something else depends on them.
func TestKnownBackslashNeedsNoSettings(t *testing.T) {
	for _, tt := range []struct {
		text                   string
		unknown, unknownBefore bool
	}{
		{`INSERT INTO orders (customer) VALUES ('a')`, false, false},
		{`INSERT INTO orders (customer) VALUES ('\'')`, false, true},
		{`INSERT INTO orders (customer) VALUES ("a\"")`, true, true},
		{`INSERT INTO orders (customer) VALUES ("a")`, true, true},
		{"INSERT INTO orders (customer) VALUES ('\xe9\\')", true, true}, // may be one character
		{`SET sql_mode = 'NO_BACKSLASH_ESCAPES'; INSERT INTO orders (customer) VALUES ('\'')`, true, true},
	} {
		for _, known := range []bool{true, false} {
			settings := insert.Settings{MariaDB: true, Version: 101119, BackslashKnown: known}
			_, unknown, err := Parse(tt.text, settings, shop)
			want := tt.unknown
			if !known {
				want = tt.unknownBefore
			}
			if err != nil || unknown != want {
				t.Errorf("backslash known %v: Parse(%s): unknown %v, error %v; want unknown %v", known, tt.text, unknown, err, want)
			}
		}
	}
	text := `INSERT INTO orders (customer) VALUES ('\'), (2), ('\')`
	p, _, err := Parse(text, insert.Settings{BackslashKnown: true, NoBackslashEscapes: true}, shop)
	if err != nil || len(p.Inserts) != 1 || p.Inserts[0].Rows != 3 {
		t.Errorf("Parse(%s) = %+v, %v; want one INSERT of 3 rows", text, p, err)
	}
}
