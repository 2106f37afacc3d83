package servertest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestMixedBinlogHoldsRows: a replica could number the rows of an INSERT …
// SELECT in another order, so a MIXED binary log must not hold its text.
func TestMixedBinlogHoldsRows(t *testing.T) {
	for _, kind := range mysqltest.Kinds() {
		t.Run(string(kind), func(t *testing.T) {
			server := mysqltest.Run(t, mysqltest.Config{Kind: kind, Args: []string{"--log-bin=binlog", "--binlog-format=MIXED", "--server-id=1"}})
			plain, leaf := openOn(t, server.Target().Database(t), "leafTables=t", append([]string{allocTable, row("t", 1000, 1000), tableT}, seedSource(20)...)...)
			if _, err := leaf.Exec("INSERT INTO t (a, b) SELECT a, b FROM src"); err != nil {
				t.Fatal(err)
			}
			if _, err := leaf.Exec("INSERT INTO t (a) VALUES (777)"); err != nil {
				t.Fatal(err)
			}
			var log string // name of the last log
			logs, err := plain.Query("SHOW BINARY LOGS")
			if err != nil {
				t.Fatal(err)
			}
			columns, _ := logs.Columns()
			for places := []any{&log, new(any), new(any)}; logs.Next(); {
				if err := logs.Scan(places[:len(columns)]...); err != nil {
					t.Fatal(err)
				}
			}
			logs.Close()
			rows, text := 0, 0
			events, err := plain.Query("SHOW BINLOG EVENTS IN '" + log + "'")
			if err != nil {
				t.Fatal(err)
			}
			defer events.Close()
			for events.Next() {
				var name, pos, kind, server, end sql.RawBytes
				var info sql.RawBytes
				if err := events.Scan(&name, &pos, &kind, &server, &end, &info); err != nil {
					t.Fatal(err)
				}
				if strings.HasPrefix(strings.ToLower(string(kind)), "write_rows") {
					rows++
				}
				if string(kind) == "Query" && strings.Contains(string(info), "FROM src") {
					text++
				}
			}
			if rows == 0 || text != 0 {
				t.Errorf("binary log has %d row events and %d texts of INSERT … SELECT, want at least 1 and 0", rows, text)
			}
		})
	}
}

// TestTableNamesFollowCaseSetting: table names are compared by the server's setting.
func TestTableNamesFollowCaseSetting(t *testing.T) {
	folding := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.MariaDB, Args: []string{"--lower-case-table-names=1"}})
	_, leaf := openOn(t, folding.Target().Database(t), "leafTables=Orders", allocTable, row("Orders", 5, 10), "CREATE TABLE Orders (ID BIGINT PRIMARY KEY, a INT)")
	for i, text := range []string{"INSERT INTO orders (a) VALUES (1)", "INSERT INTO ORDERS (a) VALUES (1)", "INSERT INTO Orders (A, id) VALUES (1, NULL)"} {
		if id := insertID(t, leaf, text); id != int64(5+i) {
			t.Errorf("%s: LastInsertId() = %d, want %d", text, id, 5+i)
		}
	}
	_, leaf = open(t, "leafTables=Orders", allocTable, row("Orders", 5, 10),
		"CREATE TABLE Orders (ID BIGINT PRIMARY KEY, a INT)", "CREATE TABLE orders (id BIGINT AUTO_INCREMENT PRIMARY KEY, a INT) AUTO_INCREMENT=90")
	if a, b := insertID(t, leaf, "INSERT INTO Orders (a) VALUES (1)"), insertID(t, leaf, "INSERT INTO orders (a) VALUES (1)"); a != 5 || b != 90 {
		t.Errorf("LastInsertId() of Orders and orders = %d and %d, want 5 and 90", a, b)
	}
}

// TestInternalPoolsIgnoreAutocommitOff: the application's setting must not apply to internal pools.
func TestInternalPoolsIgnoreAutocommitOff(t *testing.T) {
	plain, leaf := open(t, "leafTables=t&leafCreate=true&autocommit=0", tableT)
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 1 {
		t.Errorf("LastInsertId() = %d, want 1", id)
	}
	var max, rows int
	if err := plain.QueryRow("SELECT (SELECT max_id FROM leaf_alloc), (SELECT COUNT(*) FROM t)").Scan(&max, &rows); err != nil || max <= 1 || rows != 0 {
		t.Errorf("max_id = %d, %d rows committed, error %v; want more than 1, and 0 rows", max, rows, err)
	}
}

// TestMissingLeafAllocErrorHasHint: the error has a hint.
func TestMissingLeafAllocErrorHasHint(t *testing.T) {
	_, leaf := open(t, "leafTables=t", tableT)
	refused(t, leaf, "add leafCreate=true", "INSERT INTO t (a) VALUES (1)")
}

// TestInsertIntoLockedTableDoesNotBlock: an application that locked the table must not wait for an
// internal query that waits for this lock. Dumps of mysqldump begin with such a lock.
func TestInsertIntoLockedTableDoesNotBlock(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		_, leaf := openOn(t, server.Database(t), "leafTables=t", allocTable, row("t", notByUs, 1000), tableT)
		leaf.SetMaxOpenConns(1)
		if _, err := leaf.Exec("LOCK TABLES t WRITE"); err != nil {
			t.Fatal(err)
		}
		for _, text := range []string{"INSERT INTO t (id, a) VALUES (7, 1)", "INSERT INTO t (a) VALUES (2)"} {
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			_, err := leaf.ExecContext(ctx, text)
			cancel()
			if errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%s: %s waited for the lock of its own session, want no wait", server.Name, text)
			}
		}
		leaf.Exec("UNLOCK TABLES")
	}
}

// TestInsertOnlyAccountWorks: an account that may only insert works, as without leafsql.
func TestInsertOnlyAccountWorks(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		dsn := server.Database(t)
		db := databaseOf(t, dsn)
		user := "u" + db[len(db)-12:]
		plain, _ := openOn(t, dsn, "leafTables=none", allocTable, row("t", notByUs, 1000), tableT,
			"CREATE USER "+user+" IDENTIFIED BY 'pw'", "GRANT INSERT ON "+db+".t TO "+user, "GRANT SELECT, UPDATE ON "+db+".leaf_alloc TO "+user)
		t.Cleanup(func() { plain.Exec("DROP USER " + user) })
		leaf := openLeaf(t, strings.Replace(dsn, "root", user+":pw", 1), "leafTables=t")
		if _, err := leaf.Exec("INSERT INTO t (a) VALUES (1)"); err != nil {
			t.Errorf("%s: error %v, want none", server.Name, err)
		}
	}
}
