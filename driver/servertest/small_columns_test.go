package servertest

import (
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestSmallColumnIsUsedUpToItsLastID: whatever the step, a small column suffices for many short-lived processes, and is used up to
// its last id.
func TestSmallColumnIsUsedUpToItsLastID(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			dsn := server.Database(t)
			plain, _ := openOn(t, dsn, "", allocTable, "CREATE TABLE small (id TINYINT UNSIGNED PRIMARY KEY)", "CREATE TABLE together (id TINYINT UNSIGNED PRIMARY KEY)",
				"CREATE TABLE ints (id INT PRIMARY KEY)", "CREATE TABLE wide (id BIGINT PRIMARY KEY, a INT)", row("small", 1, 1000), row("together", 1, 1000), row("ints", 1, 1<<31-1))
			process := func(n int) *sql.DB {
				_, leaf := openOn(t, dsn, fmt.Sprintf("leafTables=small,together,ints,wide:id:segment(together)&connectionAttributes=process:%d", n))
				return leaf
			}
			full := func(err error) bool {
				var refused *driver.RefusedError
				if err != nil && (!errors.As(err, &refused) || refused.Column != "id") {
					t.Fatal(err)
				}
				return err != nil
			}
			rows, processes := 0, 0
			for last := int64(0); last < 255; processes++ {
				leaf := process(0)
				for range 12 {
					if last < 255 {
						last = insertID(t, leaf, "INSERT INTO small () VALUES ()")
						rows++
					}
				}
				leaf.Close()
			}
			t.Logf("small: %d rows in %d processes", rows, processes)
			if _, err := process(0).Exec("INSERT INTO small () VALUES ()"); rows < 150 || !full(err) {
				t.Errorf("INSERT after %d rows: error %v, want a full column after at least 150 rows", rows, err)
			}

			var all sync.WaitGroup
			for n := range 4 {
				leaf := process(n + 1)
				all.Go(func() {
					for {
						if _, err := leaf.Exec("INSERT INTO together () VALUES ()"); full(err) {
							return
						}
					}
				})
			}
			all.Wait()
			var n, most int64
			if err := plain.QueryRow("SELECT COUNT(*), MAX(id) FROM together").Scan(&n, &most); err != nil || n != 255 || most != 255 {
				t.Errorf("together: %d rows, highest id %d, error %v; want 255 and 255", n, most, err)
			}
			if id := insertID(t, process(5), "INSERT INTO wide (a) VALUES (1)"); id < 256 {
				t.Errorf("LastInsertId() of a larger column with the same tag = %d, want more than 255", id)
			}

			for range 30 {
				leaf := process(0)
				insertID(t, leaf, "INSERT INTO ints () VALUES (), ()")
				leaf.Close()
			}
			leaf := process(0)
			mustExec(t, leaf, "INSERT INTO ints VALUES (2147483644)")
			if _, err := leaf.Exec("INSERT INTO ints () VALUES (), (), (), ()"); !full(err) {
				t.Error("INSERT of four rows with three ids remaining: want an error of a full column")
			}
			if id := insertID(t, leaf, "INSERT INTO ints () VALUES (), ()"); id != 2147483645 && id != 2147483646 {
				t.Errorf("LastInsertId() = %d, want 2147483645 or 2147483646", id)
			}
		})
	}
}
