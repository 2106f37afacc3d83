package workertest

import (
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Storm has 8 processes take worker ids, issue all that they may, and end, crash
// or be cut off for longer than a lease, for so long, while the registry is
// stopped and started again and again. In the end it fails over, if it can, to a
// server that lacks the last seconds, and those that hold worker ids go on.
func Storm(t testing.TB, f Fixture, d time.Duration) {
	t.Helper()
	const (
		processes = 8
		after     = 2 * lease // the fail-over
	)
	k := &kit{TB: t, Fixture: f}
	cfg := among(2 * processes)
	k.inUse(cfg)
	var (
		leases, outages atomic.Int64
		over            = time.Now().Add(d)
		wg              sync.WaitGroup
	)
	for range processes {
		wg.Go(func() {
			for time.Now().Before(over.Add(after)) {
				if k.live(cfg, over.Add(after)) {
					leases.Add(1)
				}
			}
		})
	}
	if f.Stop != nil {
		for nap(2*time.Second, 5*time.Second); time.Now().Before(over); nap(2*time.Second, 5*time.Second) {
			k.ok(f.Stop())
			nap(0, time.Second)
			k.ok(f.Start())
			outages.Add(1)
		}
	}
	if f.FailOver != nil {
		fail, err := f.FailOver()
		k.ok(err)
		nap(3*time.Second, 3*time.Second+1)
		k.ok(fail())
	}
	wg.Wait()
	k.Logf("%d processes, %d leases, %d outages", processes, leases.Load(), outages.Load())
	if leases.Load() < processes {
		k.Errorf("%d leases in %v", leases.Load(), d)
	}
}

// live is the life of a process; it reports whether it had a worker id.
func (k *kit) live(cfg worker.Config, until time.Time) bool {
	p, err := k.tryOpen(0)
	if err != nil {
		nap(100*time.Millisecond, 200*time.Millisecond)
		return false
	}
	defer p.Close()
	if err := p.acquire(k.within(time.Until(until)), cfg); err != nil {
		nap(100*time.Millisecond, 200*time.Millisecond)
		return false
	}
	issue := func(d time.Duration) {
		for end := time.Now().Add(d); time.Now().Before(end) && time.Now().Before(until); nap(0, 40*time.Millisecond) {
			if rand.IntN(4) == 0 {
				p.burst()
			}
			p.issue()
		}
	}
	issue(rand.N(6 * time.Second))
	switch rand.IntN(3) {
	case 0:
		p.crash()
	case 1:
		p.cut.Store(true)
		issue(lease + time.Second)
		p.cut.Store(false)
		issue(2 * time.Second)
	}
	p.keeper.Close()
	return true
}

// nap sleeps for lo … hi.
func nap(lo, hi time.Duration) { time.Sleep(lo + rand.N(hi-lo)) }
