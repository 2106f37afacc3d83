package redis

import (
	"testing"

	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

func BenchmarkWorker(b *testing.B) {
	workertest.Registry(func(tb testing.TB) workertest.Fixture {
		return workertest.Fixture{Open: opening(of(redistest.Start(tb, redistest.Config{}).Options()))}
	}).Bench(b)
}
