package nacos

import (
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// BenchmarkAcquire is the time from a process's start to its first id, on a
// registry that is in use. In the crashed case every process before ended
// without giving its worker id back.
func BenchmarkAcquire(b *testing.B) {
	for _, v := range modernServers {
		s := nacostest.Start(b, v, nacostest.Options{})
		for _, name := range []string{"given back", "crashed"} {
			b.Run(string(v)+"/"+name, func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					src, err := openDSN(b.Context(), s.Addr(), nil)
					if err != nil {
						b.Fatal(err)
					}
					l, err := worker.Acquire(b.Context(), src, worker.Config{NewRegistry: true})
					if err != nil {
						b.Fatal(err)
					}
					b.StopTimer()
					if name == "crashed" {
						src.Slots.(*registry).Close()
					}
					l.Close()
					b.StartTimer()
				}
			})
		}
	}
}

// BenchmarkRenew is one renewal, of which a worker makes one in 10 s.
func BenchmarkRenew(b *testing.B) {
	for _, v := range modernServers {
		b.Run(string(v), func(b *testing.B) {
			s := nacostest.Start(b, v, nacostest.Options{})
			src, err := openDSN(b.Context(), s.Addr(), nil)
			if err != nil {
				b.Fatal(err)
			}
			r := src.Slots.(*registry)
			defer r.Close()
			d := worker.Doc{Nonce: "n", HW: time.Now().UnixMilli()}
			v, res, err := r.Put(b.Context(), 0, d, "")
			if res != worker.OK {
				b.Fatal(res, err)
			}
			b.ReportAllocs()
			for b.Loop() {
				d.HW++
				if v, res, err = r.Put(b.Context(), 0, d, v); res != worker.OK {
					b.Fatal(res, err)
				}
			}
		})
	}
}

// BenchmarkSixtyFourProcesses starts 64 processes, lets them go all at once
// when each is running, and takes the time until they have their worker ids.
// The registry is in use: in one case every slot has a document, in the other
// there are only the spare ones that a first worker keeps ready.
func BenchmarkSixtyFourProcesses(b *testing.B) {
	for _, v := range modernServers {
		b.Run(string(v), func(b *testing.B) {
			s := nacostest.Start(b, v, nacostest.Options{})
			for _, documents := range []int{1024, 65} {
				b.Run("documents="+strconv.Itoa(documents), func(b *testing.B) {
					service := "crowd" + strconv.Itoa(documents)
					defer registryInUse(b, s, service, documents).Close()
					var took []time.Duration
					for b.Loop() {
						took = append(took, wave(b, s, service, 64)...)
					}
					slices.Sort(took)
					b.ReportMetric(0, "ns/op") // mostly that of starting processes
					b.ReportMetric(took[len(took)/2].Seconds()*1000, "p50-ms")
					b.ReportMetric(took[len(took)-1].Seconds()*1000, "max-ms")
				})
			}
		})
	}
}

// registryInUse gives so many slots documents of former holders, and one a holder.
func registryInUse(b *testing.B, s *nacostest.Server, service string, documents int) *worker.Lease {
	opts := worker.Options{"Service": service}
	src, err := openDSN(b.Context(), s.Addr(), opts)
	if err != nil {
		b.Fatal(err)
	}
	r := src.Slots.(*registry)
	defer r.Close()
	for _, slot := range rand.Perm(1024)[:documents] {
		d := worker.Doc{Nonce: "before" + strconv.Itoa(slot), HW: time.Now().UnixMilli() - 1000, Free: true}
		if _, res, err := r.Put(b.Context(), slot, d, ""); res == worker.Unknown || err != nil {
			b.Fatal(slot, res, err)
		}
	}
	first, err := worker.Open(b.Context(), spec(s), worker.Config{Options: opts})
	if err != nil {
		b.Fatal(err)
	}
	return first
}

// wave lets n processes go and says how long each took to its worker id.
func wave(b *testing.B, s *nacostest.Server, service string, n int) []time.Duration {
	read, write, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	defer read.Close()
	holders := make([]*holder, n)
	for i := range holders {
		holders[i] = startWaiting(b, spec(s), service, read)
	}
	for _, h := range holders {
		if err := h.running(); err != nil {
			b.Fatal(err)
		}
	}
	released := time.Now()
	write.Close()
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
