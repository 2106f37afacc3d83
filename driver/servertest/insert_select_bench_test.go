package servertest

import (
	"database/sql"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// BenchmarkStaged runs statements with rows or keys that only the server has,
// alternately through mysql-leaf and through the plain driver with
// AUTO_INCREMENT. Allocations are the sum of both.
func BenchmarkStaged(b *testing.B) {
	for _, target := range mysqltest.Targets(b) {
		for _, bench := range []struct{ name, text string }{
			{"select", "INSERT INTO t (a, b, c, d) SELECT a, b, c, d FROM s"},
			{"upsert", "INSERT INTO t (a, b, c, d) SELECT a, b, c, d FROM s ON DUPLICATE KEY UPDATE b = VALUES(b)"},
			{"call behind the key", "INSERT INTO t (id, a, b, c, d) VALUES (NULL, LAST_INSERT_ID(), 'x', 2, NULL)"},
			{"no table", "INSERT INTO t (a, b, c, d) SELECT 1, 'x', 2, NULL"},
		} {
			b.Run(target.Name+"/"+bench.name, func(b *testing.B) { benchStaged(b, target, bench.text, 1, false) })
		}
		b.Run(target.Name+"/select in a transaction", func(b *testing.B) {
			benchStaged(b, target, "INSERT INTO t (a, b, c, d) SELECT a, b, c, d FROM s", 1, true)
		})
		b.Run(target.Name+"/rows=1000000", func(b *testing.B) {
			benchStaged(b, target, "INSERT INTO t (a, b, c, d) SELECT a, b, c, d FROM s", 1_000_000, false)
		})
	}
}

func benchStaged(b *testing.B, target mysqltest.Target, text string, rows int, transaction bool) {
	const columns = "a BIGINT, b VARCHAR(40), c DECIMAL(10,2), d DATETIME"
	open := func(name, auto string) (db *sql.DB) {
		dsn := target.Database(b)
		plain, leaf := openOn(b, dsn, "leafTables=t", allocTable, row("t", 1, 1_000_000), "CREATE TABLE t (id BIGINT NOT NULL "+auto+" PRIMARY KEY, "+columns+")",
			"CREATE TABLE s ("+columns+")", "INSERT INTO s VALUES (1, 'a customer of ours', 12.5, '2024-02-29 01:02:03')")
		for n := 1; n < rows; n *= 10 {
			if _, err := plain.Exec("INSERT INTO s SELECT s.* FROM s JOIN (SELECT 1" + strings.Repeat(" UNION ALL SELECT 1", 8) + ") x"); err != nil {
				b.Fatal(err)
			}
		}
		if db = leaf; name == "mysql" {
			db = plain
		}
		db.SetMaxOpenConns(1)
		return db
	}
	sides := []*sql.DB{open("mysql", "AUTO_INCREMENT"), open(driver.Name, "")}
	var took [2][]time.Duration
	run := func(i int) {
		if rows > 1 {
			if _, err := sides[i].Exec("TRUNCATE t"); err != nil {
				b.Fatal(err)
			}
		}
		start := time.Now()
		var err error
		if transaction {
			var tx *sql.Tx
			if tx, err = sides[i].Begin(); err == nil {
				if _, err = tx.Exec(text); err == nil {
					err = tx.Commit()
				}
			}
		} else {
			_, err = sides[i].Exec(text)
		}
		if err != nil {
			b.Fatal(err)
		}
		took[i] = append(took[i], time.Since(start))
	}
	for range 20 / min(rows, 20) {
		run(0)
		run(1)
	}
	took = [2][]time.Duration{}
	b.ReportAllocs()
	for b.Loop() {
		run(0)
		run(1)
	}
	plain, leaf := quantile(took[0], 0.5), quantile(took[1], 0.5)
	b.ReportMetric(float64(plain)/1e6, "plain-ms")
	b.ReportMetric(float64(leaf)/1e6, "leaf-ms")
	b.ReportMetric(float64(leaf)/float64(plain), "leaf/plain")
	var n int
	if err := sides[1].QueryRow("SELECT COUNT(*) - COUNT(DISTINCT id) + SUM(id < 1) FROM t").Scan(&n); err != nil || n != 0 {
		b.Errorf("%d rows without a unique id, error %v; want 0", n, err)
	}
}
