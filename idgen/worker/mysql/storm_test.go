package mysql

import (
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

func init() { mysql.SetLogger(&mysql.NopLogger{}) } // the tests cut connections

// TestStorm kills the server twice, and replaces it by one that lacks the last
// seconds.
func TestStorm(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f := startPair(t, kind).fixture(t)
			over := func() error { return nil }
			workertest.Storm(t, f, 8, 35*time.Second, f.Stop, f.Start, f.Stop, f.Start, func() (err error) {
				over, err = f.FailOver()
				return err
			}, func() error { return over() })
		})
	}
}

func BenchmarkWorker(b *testing.B) {
	for _, kind := range kinds {
		b.Run(string(kind), func(b *testing.B) { workertest.Bench(b, startPair(b, kind).fixture) })
	}
}
