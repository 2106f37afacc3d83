//go:build storm

package nacos14

import (
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// TestStormRace: 16 instances start at once, and their registrations arrive
// late, so that ids are verified before all instances with the same id show.
func TestStormRace(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.SameID, f.Unregistered, f.ListLag = 2, 8, 20*time.Millisecond })
	var (
		mu   sync.Mutex
		seen = make(map[int]bool)
		wg   sync.WaitGroup
	)
	for range 16 {
		l := quickAt(t, slowed(t, s, "/ns/instance", func() { time.Sleep(rand.N(1500 * time.Millisecond)) }))
		wg.Go(func() {
			id, k := leased(untilUnique(t), t, l.source())
			t.Cleanup(func() { k.Close() })
			mu.Lock()
			defer mu.Unlock()
			if seen[id] {
				t.Errorf("worker id %d given twice", id)
			}
			seen[id] = true
		})
	}
	wg.Wait()
}
