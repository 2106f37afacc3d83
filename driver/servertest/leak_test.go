package servertest

import (
	"database/sql"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestCloseEndsEverything: no goroutine and no internal connection outlives
// db.Close.
func TestCloseEndsEverything(t *testing.T) {
	dsn := mysqltest.Database(t)
	plain, other := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 2), tableT, "CREATE TABLE s (id BIGINT PRIMARY KEY, a INT)")
	plain.Close()
	other.Close()
	for n, source := range []string{"static(3)&leafState=" + strings.ReplaceAll(t.TempDir(), "/", "%2F"), "mysql()&leafCreate=true"} {
		before := goleak.IgnoreCurrent()
		db, err := sql.Open(driver.Name, dsn+"?leafTables=t,s::snowflake&leafNewRegistry=true&leafWorker="+source)
		if err != nil {
			t.Fatal(err)
		}
		for i := range 5 {
			insertID(t, db, "INSERT INTO t (a) VALUES (?)", 10*n+i)
			insertID(t, db, "INSERT INTO s (a) VALUES (?)", i)
		}
		if err := db.Close(); err != nil {
			t.Fatal(err)
		}
		goleak.VerifyNone(t, before)
	}
}
