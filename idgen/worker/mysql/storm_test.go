package mysql

import (
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

// TestStorm kills the server again and again, and replaces it by one that lacks
// the last seconds.
func TestStorm(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			workertest.Storm(t, startPair(t, kind).fixture(t), 15*time.Second)
		})
	}
}

func BenchmarkWorker(b *testing.B) {
	for _, kind := range kinds {
		b.Run(string(kind), func(b *testing.B) {
			p := startPair(b, kind)
			workertest.Bench(b, p.fixture)
		})
	}
}

func init() { mysql.SetLogger(&mysql.NopLogger{}) } // the tests cut connections
