package zookeeper

import (
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/testutil/zktest"
)

func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			s := zktest.Start(b, zktest.Config{Lines: []string{"maxClientCnxns=200"}})
			workertest.BenchmarkStart(b, opening(Config{Servers: []string{s.Addr}}), n)
		})
	}
}
