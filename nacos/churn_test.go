package nacos

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// ids counts timestamps that were issued twice under one worker id.
type ids struct {
	mu   sync.Mutex
	upTo map[int][]span
	dups int
}

type span struct{ first, last int64 }

func (i *ids) issued(id int, s span) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, o := range i.upTo[id] {
		if s.first <= o.last && o.first <= s.last {
			i.dups++
		}
	}
	i.upTo[id] = append(i.upTo[id], s)
}

// TestChurn has processes come, go and crash while everything goes wrong.
func TestChurn(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := mustOpenFake(t, fakeConfig(s))
	if _, err := r.Anchor(t.Context()); err != nil {
		t.Fatal(err)
	}
	for slot := range 512 {
		d := doc()
		d.Free = true
		if _, res, err := r.Put(t.Context(), slot, d, ""); res != worker.OK {
			t.Fatal(res, err)
		}
	}
	s.Fault(func(f *fakenacos.Faults) {
		*f = fakenacos.Faults{ReadLag: 30 * time.Millisecond, LoseReplies: 10, RefuseRight: 10, ServeRefused: true}
	})
	seen := ids{upTo: make(map[int][]span)}
	var lives, crashes atomic.Int64
	end := time.Now().Add(8 * time.Second)
	var wg sync.WaitGroup
	for p := range 12 {
		wg.Go(func() {
			for life := 0; time.Now().Before(end); life++ {
				src, err := Open(within30s(t), fakeConfig(s))
				if err != nil {
					t.Error(err)
					return
				}
				l, err := worker.Acquire(within30s(t), src, worker.Config{Workers: 512, Bound: 6 * time.Second})
				if err != nil {
					t.Log(err)
					continue // a registry this bad may give up
				}
				var last atomic.Int64
				last.Store(l.Start() - 1)
				if err := l.Bind(last.Load); err != nil {
					t.Error(err)
				}
				for range 5 {
					last.Store(min(l.Now(), l.Limit()))
					if last.Load() > l.Limit() { // it ended meanwhile
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if issued := (span{l.Start(), last.Load()}); issued.last >= issued.first {
					seen.issued(l.Worker(), issued)
				}
				lives.Add(1)
				if (p+life)%4 == 0 { // nobody is told that it went
					src.Slots.(*registry).Close()
					crashes.Add(1)
				}
				l.Close()
			}
		})
	}
	for time.Now().Before(end) {
		time.Sleep(300 * time.Millisecond)
		s.Break()
	}
	wg.Wait()
	t.Logf("%d leases, %d not given back", lives.Load(), crashes.Load())
	if seen.dups > 0 || lives.Load() < 20 {
		t.Errorf("%d leases, %d overlap in time with another of their worker id", lives.Load(), seen.dups)
	}
}
