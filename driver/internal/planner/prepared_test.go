package planner

import "testing"

func TestReadsOneWayFindsAmbiguousTexts(t *testing.T) {
	for text, want := range map[string]bool{
		"INSERT INTO t (a) VALUES (?)":          true,
		"INSERT INTO t (a) VALUES ('x', 1)":     true,
		`INSERT INTO t (a) VALUES ("x")`:        false, // a name, under ANSI_QUOTES
		`INSERT INTO t (a) VALUES ('\'')`:       false, // NO_BACKSLASH_ESCAPES
		"INSERT INTO t (a) VALUES ('')":         false, // EMPTY_STRING_IS_NULL
		"INSERT INTO t (a) VALUES (1 || 2)":     false, // PIPES_AS_CONCAT
		"INSERT INTO t (a) VALUES (NOT a = 1)":  false, // HIGH_NOT_PRECEDENCE
		"INSERT INTO t (a) VALUES (a - b)":      false, // NO_UNSIGNED_SUBTRACTION
		"INSERT INTO t (größe) VALUES (?)":      false, // another character set
		"INSERT INTO t (a) VALUES (a[1])":       false,
		"UPDATE t SET a = 1 WHERE b = ! c":      false,
		"DELETE FROM t WHERE a = 'it' 's' or b": true,
	} {
		if got := isUnambiguous(text); got != want {
			t.Errorf("isUnambiguous(%s) = %v, want %v", text, got, want)
		}
	}
}
