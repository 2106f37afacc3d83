package zookeeper

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/zktest"
)

// BenchmarkAcquire is the time from nothing to a worker id, on a registry that is in use.
func BenchmarkAcquire(b *testing.B) {
	cfg := Config{Servers: []string{zktest.Start(b, zktest.Config{Lines: []string{"maxClientCnxns=200"}}).Addr}}
	inUse(b, cfg, 128)
	var took []time.Duration
	for b.Loop() {
		began := time.Now()
		k := keep(b, cfg, worker.Config{Workers: 128, Lease: 6 * time.Second})
		took = append(took, time.Since(began))
		k.Close()
	}
	quantiles(b, took)
}

// BenchmarkSixtyFour is the same for 64 that begin at once, each with connections of its own.
func BenchmarkSixtyFour(b *testing.B) {
	cfg := Config{Servers: []string{zktest.Start(b, zktest.Config{Lines: []string{"maxClientCnxns=200"}}).Addr}}
	inUse(b, cfg, 1024)
	var took []time.Duration
	for b.Loop() {
		var (
			wg    sync.WaitGroup
			each  [64]time.Duration
			all   [64]*worker.Keeper
			began = time.Now()
		)
		for i := range all {
			wg.Go(func() {
				all[i] = keep(b, cfg, worker.Config{Lease: 6 * time.Second})
				each[i] = time.Since(began)
			})
		}
		wg.Wait()
		took = append(took, each[:]...)
		for _, k := range all {
			wg.Go(func() { k.Close() })
		}
		wg.Wait()
	}
	quantiles(b, took)
}

func quantiles(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	for _, p := range []struct {
		unit string
		at   int
	}{{"ms/p50", len(took) / 2}, {"ms/p99", len(took) * 99 / 100}, {"ms/max", len(took) - 1}} {
		b.ReportMetric(float64(took[p.at].Microseconds())/1000, p.unit)
	}
}
