package redis

import (
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/testutil/redistest"
)

func BenchmarkStart(b *testing.B) {
	for _, n := range []int{1, 64} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			workertest.BenchmarkStart(b, opening(of(redistest.Start(b, redistest.Config{}).Options())), n)
		})
	}
}
