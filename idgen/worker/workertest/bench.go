package workertest

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Bench measures a registry that is in use: the time from the start to a worker
// id, for one process and for 64 processes that start together, and the time of a renewal, which a
// process makes every 10 s. It calls open once for each of the three measurements.
func (open Registry) Bench(b *testing.B) {
	cfg := worker.Config{Workers: 1024, Lease: time.Minute}
	wave := func(b *testing.B, n int) {
		k := &kit{TB: b, Fixture: open(b)}
		k.makeInUse(cfg)
		b.ReportAllocs()
		var took []time.Duration
		for b.Loop() {
			took = append(took, k.startWave(n, cfg)...)
		}
		slices.Sort(took)
		b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
		b.ReportMetric(took[len(took)-1].Seconds()*1000, "max-ms")
	}
	b.Run("Acquire", func(b *testing.B) { wave(b, 1) })
	b.Run("SixtyFourAtOnce", func(b *testing.B) { wave(b, 64) })
	b.Run("Renew", func(b *testing.B) {
		k := &kit{TB: b, Fixture: open(b)}
		p := k.open(0)
		d := newDoc()
		v := k.mustSet(p.slots, 0, d)
		b.ReportAllocs()
		for b.Loop() {
			d.HighWater = d.HighWater.Add(time.Millisecond)
			var (
				ok  bool
				err error
			)
			if v, ok, err = p.slots.Put(b.Context(), 0, d, v); !ok {
				b.Fatal(err)
			}
		}
	})
}

// startWave starts n processes together and returns the time that each took to get a worker
// id.
func (k *kit) startWave(n int, cfg worker.Config) []time.Duration {
	k.Helper()
	var (
		took  = make([]time.Duration, n)
		procs = make([]*process, n)
		wg    sync.WaitGroup
		ctx   = k.timeoutContext(patience)
		began = time.Now()
	)
	for i := range n {
		wg.Go(func() {
			p, err := k.tryOpen(0)
			if err == nil {
				err = p.acquire(ctx, cfg)
			}
			took[i], procs[i] = time.Since(began), p
			if err != nil {
				k.Error(err)
			}
		})
	}
	wg.Wait()
	if k.Failed() {
		k.FailNow()
	}
	seen := make(map[int]bool)
	for _, p := range procs {
		if seen[p.worker] {
			k.Errorf("worker id %d given twice", p.worker)
		}
		seen[p.worker] = true
	}
	for _, p := range procs {
		wg.Go(func() { p.keeper.Close(); p.Close() })
	}
	wg.Wait()
	return took
}
