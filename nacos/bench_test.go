package nacos

import (
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// BenchmarkAcquire measures the time until a running process has a worker id,
// on a registry that is in use.
func BenchmarkAcquire(b *testing.B) {
	for _, v := range modernServers {
		b.Run(string(v), func(b *testing.B) {
			s := nacostest.Start(b, v, nacostest.Options{})
			defer registryInUse(b, s, "leafsql").Close()
			b.ReportAllocs()
			for b.Loop() {
				k, err := lease(b, specOf(s), nil, worker.Config{})
				if err != nil {
					b.Fatal(err)
				}
				b.StopTimer()
				k.Close()
				b.StartTimer()
			}
		})
	}
}

// BenchmarkAfterKill9 measures the same for a process that starts right after
// another one was killed.
func BenchmarkAfterKill9(b *testing.B) {
	for _, v := range modernServers {
		b.Run(string(v), func(b *testing.B) {
			s := nacostest.Start(b, v, nacostest.Options{})
			defer registryInUse(b, s, "kill9").Close()
			killed := func() {}
			var took []time.Duration
			for b.Loop() {
				open, barrier := newBarrier(b)
				h := startWaiting(b, specOf(s), "kill9", barrier)
				if err := h.running(); err != nil {
					b.Fatal(err)
				}
				killed()
				killed = h.kill9
				released := open()
				_, at, err := h.workerAt()
				if err != nil {
					b.Fatal(err)
				}
				took = append(took, at.Sub(released))
			}
			report(b, took)
		})
	}
}

// BenchmarkRenew measures one renewal. A worker makes one in 10 s.
func BenchmarkRenew(b *testing.B) {
	for _, v := range modernServers {
		b.Run(string(v), func(b *testing.B) {
			s := nacostest.Start(b, v, nacostest.Options{})
			open, err := openDSN(s.Addr(), nil)
			if err != nil {
				b.Fatal(err)
			}
			src, err := open(b.Context())
			if err != nil {
				b.Fatal(err)
			}
			r := src.Slots.(*registry)
			defer src.Close()
			d := doc()
			v, ok, err := r.Put(b.Context(), 0, d, "")
			if !ok {
				b.Fatalf("Put(b.Context(), 0, d, \"\") = %+v, %v, want ok = true", ok, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				d.HighWater = d.HighWater.Add(time.Millisecond)
				if v, ok, err = r.Put(b.Context(), 0, d, v); !ok {
					b.Fatalf("Put(b.Context(), 0, d, v) = %+v, %v, want ok = true", ok, err)
				}
			}
		})
	}
}

// BenchmarkSixtyFourProcesses starts 64 processes, releases them all at once
// when each is running, and measures the time until they have their worker ids.
// The registry is in use.
func BenchmarkSixtyFourProcesses(b *testing.B) {
	for _, v := range modernServers {
		b.Run(string(v), func(b *testing.B) {
			s := nacostest.Start(b, v, nacostest.Options{})
			defer registryInUse(b, s, "crowd").Close()
			var took []time.Duration
			for b.Loop() {
				took = append(took, wave(b, s, "crowd", 64)...)
			}
			report(b, took)
		})
	}
}

// registryInUse marks a registry as one in use, and returns a holder.
func registryInUse(b *testing.B, s *nacostest.Server, service string) *worker.Keeper {
	b.Helper()
	opts := worker.Options{"Service": service}
	open, err := worker.Lookup(specOf(s), opts)
	if err != nil {
		b.Fatal(err)
	}
	leasetest.InUse(b, open, worker.Config{Workers: 1024})
	time.Sleep(time.Minute) // a registry that has just been declared new confirms each take with a second write
	return mustLease(b, specOf(s), opts, worker.Config{Workers: 1024})
}

// wave releases n processes and returns how long each took to get its worker id.
func wave(b *testing.B, s *nacostest.Server, service string, n int) []time.Duration {
	open, barrier := newBarrier(b)
	holders := make([]*holder, n)
	for i := range holders {
		holders[i] = startWaiting(b, specOf(s), service, barrier)
	}
	for _, h := range holders {
		if err := h.running(); err != nil {
			b.Fatal(err)
		}
	}
	released := open()
	took, seen := make([]time.Duration, n), make(map[int]bool)
	for i, h := range holders {
		id, at, err := h.workerAt()
		if err != nil || seen[id] {
			b.Fatalf("worker id %d, given twice: %v, error: %v", id, seen[id], err)
		}
		seen[id] = true
		took[i] = at.Sub(released)
	}
	var wg sync.WaitGroup
	for _, h := range holders {
		wg.Go(func() {
			if err := h.leave(); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	slices.Sort(took)
	b.Logf("%d processes: half after %v, all after %v", n, took[n/2].Round(time.Millisecond), took[n-1].Round(time.Millisecond))
	return took
}

// newBarrier returns a file that reaches its end when open is called; open
// returns the time.
func newBarrier(b *testing.B) (open func() time.Time, barrier *os.File) {
	read, write, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { read.Close(); write.Close() })
	return func() time.Time {
		defer write.Close()
		return time.Now()
	}, read
}

// report reports how long the processes took. The time of an operation is
// mostly that of starting the processes.
func report(b *testing.B, took []time.Duration) {
	slices.Sort(took)
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
	b.ReportMetric(took[len(took)-1].Seconds()*1000, "max-ms")
}
