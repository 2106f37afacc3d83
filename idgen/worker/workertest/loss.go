package workertest

import (
	"context"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// removed loses the document of a running owner. The next process cannot find out whether the worker id is in use, and
// waits for the longest possible lease. Before the removal, another process waits until
// it reads the current document. With Source.Inserts, as on Nacos, a process that read an
// older document and writes after the removal would issue ids with the owner's times.
func removed(k *kit) {
	k.makeInUse(configOf(1))
	other := k.open(0)
	p := k.hold(0, configOf(1))
	p.issueAll()
	k.eventually("the slot as held", func() bool {
		d, _, err := other.Get(k.timeoutContext(5*time.Second), 0)
		return err == nil && !d.Free
	})
	k.must(k.Remove(0))
	k.startAfterLoss(p, worker.Config{Workers: 1, Lease: lease}, time.Now())
}

// startAfterLoss starts a process with a registry that has lost the document of p.
func (k *kit) startAfterLoss(p *process, cfg worker.Config, lost time.Time) {
	k.Helper()
	wait := 3 * time.Second
	if k.virtual {
		wait = 5 * time.Minute
	}
	stop := make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() {
		for tick := time.NewTicker(100 * time.Millisecond); ; {
			select {
			case <-stop:
				tick.Stop()
				return
			case <-tick.C:
				p.issueAll()
			}
		}
	})
	q := k.open(0)
	err := q.acquire(k.timeoutContext(wait), cfg)
	close(stop)
	wg.Wait()
	if took := time.Since(lost); err == nil && took < cfg.Lease+time.Minute-time.Second {
		k.Errorf("a worker id was taken %v after the registry lost its documents, want at least a lease and a minute", took)
	}
	if err == nil {
		q.issueAll()
	}
	k.Logf("a newcomer: %v after %v", err, time.Since(lost).Round(time.Millisecond))
	p.issueAll()
}

// wiped loses all documents of running owners, which continue. No process may take their
// worker ids before their leases have ended, not even a process that read the document as
// free, before the owner took it, and writes after the wipe.
func wiped(k *kit) {
	cfg := k.outlastingConfig(2)
	k.makeInUse(cfg)
	var (
		owner *process
		lost  time.Time
	)
	soon, cancel := context.WithCancel(k.timeoutContext(4 * patience))
	defer cancel()
	writes := func(slot int) {
		owner = k.holdWith(0, cfg, func(p *process) {
			p.src.Last = func(context.Context) (int, bool) { return slot, true }
		})
		owner.issueAll()
		k.must(k.Wipe())
		lost = time.Now()
		time.AfterFunc(time.Second, cancel)
	}
	var (
		late *process
		err  error
	)
	for {
		late = k.open(0)
		late.before = writes
		err = late.acquire(soon, cfg)
		// If the registry may refuse correct writes, all slots may still be held since their creation.
		if owner != nil || !k.Unreliable || soon.Err() != nil {
			break
		}
		time.Sleep(time.Second)
	}
	if owner == nil {
		k.Fatalf("nothing was written: %v, want owner set", err)
	}
	if err == nil {
		k.Error("a worker id was taken right after a wipe, want an error")
		late.issueAll()
	}
	k.startAfterLoss(owner, cfg, lost)
}

// restored resets the registry to an older copy. A running owner continues. If the writers are
// stopped for as long as documented, nothing is issued twice.
func restored(k *kit) {
	cfg := k.outlastingConfig(1)
	k.makeInUse(cfg)
	p := k.hold(0, cfg)
	restore, err := k.Copy()
	k.must(err)
	k.waitRenewed(p)
	p.issueAll()
	k.must(restore())
	k.waitRenewed(p)
	p.issueAll()
	p.crash()
	k.must(restore())
	k.hold(4*cfg.Lease+time.Minute, cfg).issueAll()
}

// failedOver fails over to a server that lacks the last writes, by which processes took worker ids. Such a process
// continues, and no other process gets its worker id before its lease has ended.
func failedOver(k *kit) {
	cfg := k.outlastingConfig(1)
	k.makeInUse(cfg)
	over, err := k.FailOver()
	k.must(err)
	p := k.hold(0, cfg)
	p.issueAll()
	k.must(over())
	k.startAfterLoss(p, cfg, time.Now())
}

// wipedUnderHolders loses all documents of several running owners while a process
// starts. The owners issue ids without a pause, and the new process gets its first id
// as soon as it may.
func wipedUnderHolders(k *kit) {
	cfg := worker.Config{Workers: 8, Lease: time.Minute}
	k.makeInUse(cfg)
	var holders []*process
	for range 6 {
		holders = append(holders, k.hold(0, cfg))
		time.Sleep(1500 * time.Millisecond) // so that the renewals of the owners are at different times
	}
	k.must(k.Wipe())
	began := time.Now()
	q, started := k.open(0), make(chan error, 1)
	q.src.Last = func(context.Context) (int, bool) { return holders[0].worker, true } // the first slot that it reads
	soon := k.timeoutContext(4 * time.Minute)
	go func() { started <- q.acquire(soon, cfg) }()
	for {
		select {
		case err := <-started:
			k.must(err)
			if took := time.Since(began); took > cfg.Lease*5/4+time.Minute+patience/3 {
				k.Errorf("the newcomer's first id came after %v, want at most %v", took, cfg.Lease*5/4+time.Minute+patience/3)
			}
			q.issueAll()
			for _, p := range holders {
				p.issueAll()
			}
			return
		case <-time.After(20 * time.Millisecond):
		}
		for i, p := range holders {
			if p.issue(); !p.holds() || p.keeper.Status().Worker != p.worker {
				k.Fatalf("process %d, %v after the wipe: %+v", i, time.Since(began), p.keeper.Status())
			}
		}
	}
}
