package zookeeper

import (
	"testing"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper/zktest"
)

func BenchmarkWorker(b *testing.B) {
	workertest.Registry(func(tb testing.TB) workertest.Fixture {
		s := zktest.Start(tb, zktest.Config{Lines: []string{"maxClientCnxns=200"}})
		return workertest.Fixture{Open: opening(Config{Servers: []string{s.Addr}})}
	}).Bench(b)
}
