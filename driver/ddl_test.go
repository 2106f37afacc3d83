package driver_test

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
)

// TestChangedAndFilledInOneText: the INSERT was planned on the columns that
// the same text moves.
func TestChangedAndFilledInOneText(t *testing.T) {
	_, leaf := open(t, "leafTables=u,v&multiStatements=true", allocTable, row("u", 1000, 10), row("v", 1000, 10),
		"CREATE TABLE u (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT, b INT)")
	insertID(t, leaf, "INSERT INTO u VALUES (NULL, 1, 1)")
	for _, text := range []string{
		"ALTER TABLE u MODIFY b INT FIRST; INSERT INTO u VALUES (7, NULL, 8)",
		"DROP TABLE IF EXISTS `u`; CREATE TABLE u (a INT, id BIGINT PRIMARY KEY AUTO_INCREMENT, b INT); INSERT INTO u VALUES (7, NULL, 8)",
		"SELECT 1; alter table u add c int first; INSERT INTO u VALUES (7, NULL, 8)",
		"CREATE TABLE v (id BIGINT PRIMARY KEY AUTO_INCREMENT, a INT); INSERT INTO v (a) VALUES (1)",
	} {
		if _, err := leaf.Exec(text); !errors.Is(err, driver.ErrRefused) {
			t.Errorf("%s: %v", text, err)
		}
	}
	if id := insertID(t, leaf, "CREATE TABLE w (x INT); INSERT INTO u (a) VALUES (2)"); id != 1001 {
		t.Errorf("another table's DDL: id %d", id)
	}
	insertID(t, leaf, "ALTER TABLE u MODIFY b INT FIRST")
	insertID(t, leaf, "INSERT INTO u VALUES (5, NULL, 6)")
	var a, b int
	if err := leaf.QueryRow("SELECT a, b FROM u WHERE id = 1002").Scan(&a, &b); err != nil || a != 6 || b != 5 {
		t.Errorf("a %d, b %d, %v", a, b, err)
	}
}
