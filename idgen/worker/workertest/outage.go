package workertest

import (
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// downAtStart starts a process while the registry is away.
func downAtStart(k *kit) {
	k.inUse(among(4))
	p := k.open(0) // a process that has opened the registry before
	k.ok(k.Stop())
	if err := p.acquire(k.within(2*time.Second), among(4)); err == nil {
		k.Error("a worker id from a registry that is away")
	}
	src, err := k.Open(k.within(2 * time.Second)) // opening it now may be an error
	var q *process
	if err == nil {
		q = &process{k: k, slots: src.Slots, src: src}
		defer q.Close()
	}
	k.ok(k.Start())
	if q == nil {
		q = k.open(0)
	}
	k.searches(q)
	k.searches(k.open(0))
}

// searches takes a lease from a registry that is coming back.
func (k *kit) searches(p *process) {
	k.Helper()
	src := p
	var err error
	k.eventually("a worker id after the registry came back", func() bool {
		if err = src.acquire(k.within(patience), among(4)); err != nil {
			k.Log(err)
			src = k.open(0) // the failed process has closed the source
		}
		return err == nil
	})
	src.issue()
	src.keeper.Close()
}

// outlasting returns a Config with n slots and a lease that outlasts an outage.
func (k *kit) outlasting(n int) worker.Config {
	return worker.Config{Workers: n, Lease: max(2*lease, k.Outage)}
}

// downDuringRun issues ids during an outage until the bound, and again after the outage.
func downDuringRun(k *kit) {
	cfg := k.outlasting(4)
	k.inUse(cfg)
	p := k.hold(0, cfg)
	k.ok(k.Stop())
	heard()
	limit := p.limit()
	p.issue()
	time.Sleep(time.Second)
	p.issue()
	if !p.holds() || !p.limit().Equal(limit) {
		k.Errorf("limit %v before, %+v", limit, p.keeper.Status())
	}
	k.ok(k.Start())
	if !k.renewed(p) {
		return
	}
	p.burst()
	q := k.hold(0, cfg)
	if q.worker == p.worker {
		k.Errorf("worker id %d given twice", q.worker)
	}
	q.burst()
	if !k.virtual {
		return
	}
	k.ok(k.Stop()) // longer than a lease
	k.losesWithin(p, 2*time.Minute, p.burst)
	p.burst()
	k.ok(k.Start())
	k.eventually("a worker id after the registry came back", p.holds)
	p.burst()
}
