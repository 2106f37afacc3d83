package through

import "testing"

func TestCreatedTablesAreNamed(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE TABLE t (a INT)":                                 "t",
		" create temporary table if not exists `a b` (\n a INT)": "a b",
		"CREATE TABLE db.`t`(a INT)":                             "t",
		"CREATE TABLE t LIKE u":                                  "",
		"CREATE TABLE t AS SELECT 1":                             "",
		"INSERT INTO t VALUES ('CREATE TABLE x (a INT)')":        "",
		"/* CREATE TABLE x ( */ SELECT 1":                        "",
	} {
		got := ""
		if m := createPattern.FindStringSubmatch(text); m != nil {
			got = bareName(m[2])
		}
		if got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
	for text, want := range map[string]string{
		"DROP TABLE IF EXISTS `t`": "t",
		"TRUNCATE t":               "t",
		"truncate table db.t":      "t",
	} {
		if m := truncatePattern.FindStringSubmatch(text); m == nil || bareName(m[1]) != want {
			t.Errorf("%s: %q, want %q", text, m, want)
		}
	}
}
