package workertest

import (
	"context"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// Storm runs processes that start, issue ids, crash, end and start again for the duration d, while the functions in
// disturb are called in turn, one every d/20. No time may be issued twice with one worker id.
//
// After the registry has lost documents, worker ids can be used only after a lease and a minute. A storm has to last longer
// than that.
func (f Fixture) Storm(t *testing.T, processes int, d time.Duration, disturb ...func() error) {
	k := &kit{TB: t, Fixture: f}
	cfg := worker.Config{Workers: 2 * processes, Lease: shortestLease}
	k.makeInUse(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), d)
	defer cancel()
	var (
		wg           sync.WaitGroup
		lives, taken atomic.Int64
	)
	for range processes {
		wg.Go(func() {
			for ctx.Err() == nil {
				lives.Add(1)
				if k.runLife(ctx, cfg) {
					taken.Add(1)
				}
			}
		})
	}
	pause := time.NewTicker(d / 20)
	defer pause.Stop()
	for i := 0; ctx.Err() == nil; i++ {
		select {
		case <-pause.C:
			if i < len(disturb) {
				if err := disturb[i](); err != nil {
					cancel()
					wg.Wait()
					t.Fatal(err)
				}
			}
		case <-ctx.Done():
		}
	}
	wg.Wait()
	issued := time.Duration(0)
	for _, spans := range k.ledger.all {
		for _, s := range spans {
			issued += s.to.Sub(s.from)
		}
	}
	t.Logf("%d lives, %d of them with a worker id; %d worker ids issued %v", lives.Load(), taken.Load(), len(k.ledger.all), issued.Round(time.Second))
	if issued < d {
		t.Errorf("%d processes issued ids for %v in %v, want at least %v", processes, issued, d, d)
	}
}

// shortestLease is the shortest lease, so that many leases end in a storm.
const shortestLease = 6 * time.Second

// runLife runs one process: it takes a worker id, issues ids for some seconds, and ends in one of several ways.
func (k *kit) runLife(ctx context.Context, cfg worker.Config) (held bool) {
	p, err := k.tryOpen(0)
	if err != nil {
		time.Sleep(100 * time.Millisecond)
		return false
	}
	defer p.Close()
	if p.acquire(ctx, cfg) != nil {
		time.Sleep(100 * time.Millisecond)
		return false
	}
	for until := time.Now().Add(shortestLease + rand.N(4*shortestLease)); ctx.Err() == nil && time.Now().Before(until); time.Sleep(50 * time.Millisecond) {
		p.issue()
		if rand.IntN(20) == 0 {
			p.issueAll()
		}
	}
	if rand.IntN(2) == 0 {
		p.crash()
	} else {
		p.keeper.Close()
	}
	return true
}

// LostReply writes the registry's own document while the network loses the registry's replies. The put must not be
// acknowledged or reported as not written, and reads must show the document afterwards.
func (open Registry) LostReply(t *testing.T, lose, heal func()) {
	k := &kit{TB: t, Fixture: open(t)}
	s := k.open(0).slots
	v := k.mustSet(s, worker.RegistrySlot, newDoc())
	d := newDoc()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	lose()
	_, ok, err := s.Put(ctx, worker.RegistrySlot, d, v)
	heal()
	if ok || !isUnclear(err) {
		t.Errorf("reply lost: Put() = %t, %v, want false and an error after which the write may exist", ok, err)
	}
	k.eventually("what was written", func() bool {
		got, _, err := s.Get(k.timeoutContext(5*time.Second), worker.RegistrySlot)
		return err == nil && got == d
	})
	k.wantRefused(s, worker.RegistrySlot, v)
}
