//go:build storm

package nacos

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// TestStormKitOnTheFake runs each part on a separate server, for two kinds of
// server at a time: calls have half a second.
func TestStormKitOnTheFake(t *testing.T) {
	const lag = 100 * time.Millisecond
	var wg sync.WaitGroup
	turn := make(chan struct{}, 2)
	for name, faults := range map[string]fakenacos.Faults{
		"Good":        {},
		"Stale":       {ReadLag: lag, StaleReads: 4, AllCreators: true},
		"Refusing":    {RefuseRight: 4},
		"Losing":      {LoseReplies: 10},
		"ShowingLies": {RefuseRight: 10, ServeRefused: true, ReadLag: lag},
		"All":         {RefuseRight: 10, ServeRefused: true, ReadLag: lag, StaleReads: 10, LoseReplies: 20, AllCreators: true},
	} {
		wg.Go(func() {
			turn <- struct{}{}
			defer func() { <-turn }()
			t.Run(name, func(t *testing.T) {
				workertest.Registry(func(t testing.TB) workertest.Fixture { return onFake(t, faults) }).RunApart(t)
			})
		})
	}
	wg.Wait()
}

// testKit runs each part with a separate service, and so separate documents.
func testKit(t *testing.T, s *nacostest.Server) {
	var services atomic.Int64
	workertest.Registry(func(t testing.TB) workertest.Fixture {
		return disturbed(t, s, fmt.Sprintf("kit%d", services.Add(1)))
	}).Run(t)
}

// disturbed returns a fixture that kills, wipes and restores the server.
func disturbed(t testing.TB, s *nacostest.Server, service string) workertest.Fixture {
	f := onServer(s, service)
	stop := func() error { s.Kill9(); return nil }
	start := func() error { return s.Relaunch(t.Context()) }
	f.Outage, f.Stop, f.Start = time.Minute, stop, start
	f.Wipe = func() error {
		s.Kill9()
		s.Wipe(t)
		return start()
	}
	if s.Version == nacostest.V3 { // a server's files are restored in the same way for both versions
		f.Copy = func() (func() error, error) {
			dir := s.Snapshot(t)
			return func() error {
				s.Kill9()
				s.Restore(t, dir)
				return start()
			}, nil
		}
	}
	return f
}

// ids counts timestamps that were issued twice with one worker id.
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

// fakeKeeper is a keeper on a fake, with its source.
type fakeKeeper struct {
	*worker.Keeper
	src worker.Source
}

// keepFake returns a keeper that holds a worker id, or nil if none was available.
func keepFake(t *testing.T, s *fakenacos.Server, cfg worker.Config) *fakeKeeper {
	src, err := Open(within30s(t), fakeConfig(s))
	if err != nil {
		if isFinal(err) {
			t.Error(err)
		}
		return nil
	}
	k, err := worker.Keep(func(context.Context) (worker.Source, error) { return src, nil }, cfg)
	if err != nil {
		t.Fatal(err)
	}
	for ctx := within30s(t); ctx.Err() == nil; {
		s, err := k.Wait(ctx)
		if err == nil {
			return &fakeKeeper{k, src}
		}
		if s == nil {
			t.Log(err)
			break
		}
		select {
		case <-s.Changed():
		case <-ctx.Done():
		}
	}
	k.Close()
	return nil
}

// TestStormChurn: processes start, end and crash while the server has every fault.
func TestStormChurn(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	cfg := worker.Config{Workers: 512, Lease: 6 * time.Second}
	leasetest.InUse(t, func(ctx context.Context) (worker.Source, error) { return Open(ctx, fakeConfig(s)) }, cfg)
	s.Fault(func(f *fakenacos.Faults) {
		*f = fakenacos.Faults{ReadLag: 30 * time.Millisecond, LoseReplies: 10, RefuseRight: 10, ServeRefused: true}
	})
	seen := ids{upTo: make(map[int][]span)}
	var lives, crashes atomic.Int64
	const enough = 20 // processes, which take longer on a busy machine
	began := time.Now()
	goesOn := func() bool {
		t := time.Since(began)
		return t < 8*time.Second || t < patience && lives.Load() < enough
	}
	var wg sync.WaitGroup
	for p := range 12 {
		wg.Go(func() {
			for life := 0; goesOn(); life++ {
				var last atomic.Int64
				cfg := cfg
				cfg.Issued = func() time.Time { return time.UnixMilli(last.Load()) }
				k := keepFake(t, s, cfg)
				if k == nil {
					continue // a registry with so many faults may fail for a while
				}
				st := k.Status()
				last.Store(st.Start.UnixMilli() - 1)
				for range 5 {
					now := k.UnixMilli()
					if st := k.Status(); st.Phase != "holding" || now > st.Limit.UnixMilli() {
						break
					}
					last.Store(now)
					if st := k.Status(); st.Phase != "holding" || now > st.Limit.UnixMilli() {
						break // the lease ended meanwhile
					}
					time.Sleep(10 * time.Millisecond)
				}
				if issued := (span{st.Start.UnixMilli(), last.Load()}); issued.last >= issued.first {
					seen.issued(st.Worker, issued)
				}
				lives.Add(1)
				if (p+life)%4 == 0 { // a crash, without a release
					k.src.Close()
					crashes.Add(1)
				}
				k.Close()
			}
		})
	}
	for goesOn() {
		time.Sleep(300 * time.Millisecond)
		s.Break()
	}
	wg.Wait()
	t.Logf("%d leases, %d not given back", lives.Load(), crashes.Load())
	if seen.dups > 0 || lives.Load() < enough {
		t.Errorf("%d leases, %d overlap in time with another of their worker id, want seen.dups = 0 and lives.Load() at least %v", lives.Load(), seen.dups, enough)
	}
}
