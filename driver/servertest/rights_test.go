package servertest

import (
	"errors"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestGrantTakesEffectForOpenPool: a GRANT takes effect for the open connections of a pool. A GRANT
// on the database does at the next statement. A right that only new connections have does once a
// refused connection was replaced, which happens at most once a minute.
func TestGrantTakesEffectForOpenPool(t *testing.T) {
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			plain, leaf := account(t, target, "SELECT ON DB.t")
			leaf.SetMaxOpenConns(1)
			var db, user string
			if err := errors.Join(plain.QueryRow("SELECT DATABASE()").Scan(&db), leaf.QueryRow("SELECT SUBSTRING_INDEX(CURRENT_USER(), '@', 1)").Scan(&user)); err != nil {
				t.Fatal(err)
			}
			connection := func() (id int) {
				t.Helper()
				if err := leaf.QueryRow("SELECT CONNECTION_ID()").Scan(&id); err != nil {
					t.Fatal(err)
				}
				return id
			}
			grants := func(text string) {
				t.Helper()
				if _, err := plain.Exec(strings.NewReplacer("DB", db, "USER", user).Replace(text)); err != nil {
					t.Fatal(err)
				}
			}
			insert := func(want string) {
				t.Helper()
				_, err := leaf.Exec("INSERT INTO t (a, d, n) SELECT a, d, n FROM s")
				if want == "" && err != nil || want != "" && (!errors.Is(err, driver.ErrRefused) || !strings.Contains(err.Error(), want)) {
					t.Errorf("error %v, want %q", err, want)
				}
			}
			grants("GRANT INSERT ON DB.t TO USER")
			first := connection()
			insert("GRANT CREATE TEMPORARY TABLES ON `" + db + "`.*")
			second := connection()
			if second == first {
				t.Error("the refused connection is still used, want a new connection")
			}
			insert("which takes effect at once; rights on *.* and roles take effect for new connections")
			grants("GRANT CREATE TEMPORARY TABLES ON DB.* TO USER")
			insert("")
			grants("REVOKE CREATE TEMPORARY TABLES ON DB.* FROM USER")
			if _, err := leaf.Exec("USE " + db); err != nil {
				t.Fatal(err)
			}
			insert("the server refuses")
			if now := connection(); now != second {
				t.Errorf("connection %v replaced %v within a minute, want no second replacement", now, second)
			}
		})
	}
}
