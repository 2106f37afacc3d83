package workertest

import (
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// downAtStart starts a process while the registry is away.
func downAtStart(k *kit) {
	k.makeInUse(configOf(4))
	p := k.open(0) // opens the registry before the outage
	k.must(k.Stop())
	if err := p.acquire(k.timeoutContext(2*time.Second), configOf(4)); err == nil {
		k.Error("a worker id was taken from an unavailable registry, want an error")
	}
	src, err := k.Open(k.timeoutContext(2 * time.Second)) // may fail during the outage
	var q *process
	if err == nil {
		q = &process{k: k, slots: src.Slots, src: src}
		defer q.Close()
	}
	k.must(k.Start())
	if q == nil {
		q = k.open(0)
	}
	k.acquireDuringRecovery(q)
	k.acquireDuringRecovery(k.open(0))
}

// acquireDuringRecovery takes a lease from a registry that is starting again.
func (k *kit) acquireDuringRecovery(p *process) {
	k.Helper()
	src := p
	var err error
	k.eventually("a worker id after the registry came back", func() bool {
		if err = src.acquire(k.timeoutContext(patience), configOf(4)); err != nil {
			k.Log(err)
			src = k.open(0) // the failed process has closed the source
		}
		return err == nil
	})
	src.issue()
	src.keeper.Close()
}

// outlastingConfig returns a Config with n slots and a lease that outlasts an outage.
func (k *kit) outlastingConfig(n int) worker.Config {
	return worker.Config{Workers: n, Lease: max(2*lease, k.Outage)}
}

// downDuringRun issues ids during an outage until the lease ends, and again after the outage.
func downDuringRun(k *kit) {
	cfg := k.outlastingConfig(4)
	k.makeInUse(cfg)
	p := k.hold(0, cfg)
	k.must(k.Stop())
	waitForCalls()
	limit := p.limit()
	p.issue()
	time.Sleep(time.Second)
	p.issue()
	if !p.holds() || !p.limit().Equal(limit) {
		k.Errorf("Status() = %+v, want the lease held with the limit %v", p.keeper.Status(), limit)
	}
	k.must(k.Start())
	if !k.waitRenewed(p) {
		return
	}
	p.issueAll()
	q := k.hold(0, cfg)
	if q.worker == p.worker {
		k.Errorf("worker id %d given twice", q.worker)
	}
	q.issueAll()
	if !k.virtual {
		return
	}
	k.must(k.Stop()) // an outage that is longer than the lease
	k.waitLost(p, 2*time.Minute, p.issueAll)
	p.issueAll()
	k.must(k.Start())
	k.eventually("a worker id after the registry came back", p.holds)
	p.issueAll()
}
