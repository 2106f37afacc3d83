package nacos

import (
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
