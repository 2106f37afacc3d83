package through

import "testing"

func TestStripRemovesAutoIncrement(t *testing.T) {
	for text, want := range map[string]string{
		"CREATE TABLE t (id INT AUTO_INCREMENT PRIMARY KEY) AUTO_INCREMENT = 7": "CREATE TABLE t (id INT  PRIMARY KEY) ",
		"alter table t modify id bigint not null auto_increment":                "alter table t modify id bigint not null ",
		"CREATE TABLE t (id serial NOT NULL, serial INT)":                       "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL NOT NULL, serial INT)",
		"INSERT INTO t VALUES ('AUTO_INCREMENT')":                               "INSERT INTO t VALUES ('AUTO_INCREMENT')",
		"CREATE TABLE t (auto_increments INT)":                                  "CREATE TABLE t (auto_increments INT)",
	} {
		if got := (program{strip: true}).text(text); got != want {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
		if got := (program{}).text(text); got != text {
			t.Errorf("%s: %q, want it as it is", text, got)
		}
	}
}
