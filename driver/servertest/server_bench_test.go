package servertest

import (
	"database/sql"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// BenchmarkServer writes rows to a real server: with explicit keys and with
// AUTO_INCREMENT through the plain driver, and through mysql-leaf. The three
// alternate within each round, because the server's noise is larger than
// any difference. The ratio is the median of all rounds, with its quartiles.
func BenchmarkServer(b *testing.B) {
	for _, batch := range []int{1, 100} {
		b.Run(fmt.Sprintf("rows=%d", batch), func(b *testing.B) { benchServer(b, batch) })
	}
}

type contender struct {
	name string
	run  func(first int64) error // runs one statement
	took []time.Duration
}

func benchServer(b *testing.B, batch int) {
	dsn := mysqltest.Database(b)
	plain := mustOpen(b, "mysql", dsn)
	leaf := mustOpen(b, driver.Name, dsn+"?leafTables=leaf")
	columns := "id BIGINT NOT NULL %s PRIMARY KEY, a INT, b VARCHAR(30)"
	for _, ddl := range []string{
		allocTable, row("leaf", 1, 1000),
		"CREATE TABLE explicit (" + fmt.Sprintf(columns, "") + ")",
		"CREATE TABLE auto (" + fmt.Sprintf(columns, "AUTO_INCREMENT") + ")",
		"CREATE TABLE leaf (" + fmt.Sprintf(columns, "") + ")",
	} {
		if _, err := plain.Exec(ddl); err != nil {
			b.Fatal(err)
		}
	}
	prepare := func(db *sql.DB, table, columns, values string) *sql.Stmt {
		st, err := db.Prepare("INSERT INTO " + table + " (" + columns + ") VALUES " + values + strings.Repeat(","+values, batch-1))
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { st.Close() })
		return st
	}
	explicit, auto, filled := prepare(plain, "explicit", "a,b,id", "(?,?,?)"), prepare(plain, "auto", "a,b", "(?,?)"), prepare(leaf, "leaf", "a,b", "(?,?)")
	var withoutKey []any
	for i := range batch {
		withoutKey = append(withoutKey, i, "a customer's name")
	}
	withKey := func(first int64) []any {
		args := make([]any, 0, 3*batch)
		for i := range batch {
			args = append(args, i, "a customer's name", first+int64(i))
		}
		return args
	}
	contenders := []*contender{
		{name: "explicit", run: func(first int64) error { _, err := explicit.Exec(withKey(first)...); return err }},
		{name: "auto", run: func(int64) error { _, err := auto.Exec(withoutKey...); return err }},
		{name: "leaf", run: func(int64) error { _, err := filled.Exec(withoutKey...); return err }},
	}
	next, turn := int64(1), 0
	round := func(statements int) {
		turn++
		for i := range contenders {
			c := contenders[(i+turn)%len(contenders)] // rotate, since the order affects the noise
			start := time.Now()
			for i := range statements {
				if err := c.run(next + int64(i*batch)); err != nil {
					b.Fatal(err)
				}
			}
			c.took = append(c.took, time.Since(start)/time.Duration(statements))
		}
		next += int64(statements * batch)
	}
	round(20) // prepares connections and fetches the first segment
	for _, c := range contenders {
		c.took = nil
	}
	for b.Loop() {
		round(20)
	}
	for _, c := range contenders {
		b.ReportMetric(float64(batch)*float64(time.Second)/float64(quantile(c.took, 0.5)), c.name+"-rows/s")
	}
	report := func(name string, base []time.Duration) {
		ratios := make([]float64, len(base))
		for i := range base {
			ratios[i] = float64(base[i]) / float64(contenders[2].took[i])
		}
		b.ReportMetric(quantile(ratios, 0.5), "leaf/"+name)
		b.ReportMetric(quantile(ratios, 0.25), "leaf/"+name+"-q1")
		b.ReportMetric(quantile(ratios, 0.75), "leaf/"+name+"-q3")
	}
	report("explicit", contenders[0].took)
	report("auto", contenders[1].took)
}

func quantile[T float64 | time.Duration](v []T, q float64) T {
	s := slices.Clone(v)
	slices.Sort(s)
	return s[int(q*float64(len(s)-1))]
}

func mustOpen(b testing.TB, name, dsn string) *sql.DB {
	db, err := sql.Open(name, dsn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { db.Close() })
	return db
}
