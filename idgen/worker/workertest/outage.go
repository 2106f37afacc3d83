package workertest

import (
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// downAtStart starts a process while nobody answers.
func downAtStart(k *kit) {
	k.seed(0, 4)
	p := k.open(0) // a process that opened it before
	k.ok(k.Stop())
	if err := p.acquire(k.within(2*time.Second), among(4)); err == nil {
		k.Error("a lease from a registry that is away")
	}
	src, err := k.Open(k.within(2 * time.Second)) // one that opens it now may be told so
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

// searches takes a lease from a registry that is on its way back.
func (k *kit) searches(p *process) {
	k.Helper()
	src := p
	var err error
	k.eventually("a lease after the registry came back", func() bool {
		if err = src.acquire(k.within(patience), among(4)); err != nil {
			k.Log(err)
			src = k.open(0) // the source was closed by the one that failed
		}
		return err == nil
	})
	src.issue()
	src.lease.Close()
}

// outlasting is a search whose lease outlasts an outage.
func (k *kit) outlasting(n int) worker.Config {
	return worker.Config{Workers: n, Bound: max(2*bound, k.Outage)}
}

// downDuringRun goes on issuing within the bound, and after it.
func downDuringRun(k *kit) {
	k.seed(0, 4)
	cfg := k.outlasting(4)
	p := k.hold(0, cfg)
	k.ok(k.Stop())
	time.Sleep(time.Second) // replies that came before
	limit := p.lease.Limit()
	p.issue()
	time.Sleep(time.Second)
	p.issue()
	if p.lease.Err() != nil || p.lease.Limit() != limit {
		k.Errorf("limit %d, before %d, %v", p.lease.Limit(), limit, p.lease.Err())
	}
	k.ok(k.Start())
	if !k.renewed(p) {
		return
	}
	p.burst()
	q := k.hold(0, cfg)
	if q.lease.Worker() == p.lease.Worker() {
		k.Errorf("worker id %d given twice", q.lease.Worker())
	}
	q.burst()
	if !k.virtual {
		return
	}
	k.ok(k.Stop()) // longer than a bound
	k.endsWithin(p, 2*time.Minute)
	p.burst()
	k.ok(k.Start())
	var wg sync.WaitGroup
	wg.Go(func() {
		s, err := p.lease.Successor(k.within(5 * time.Minute))
		if err != nil {
			k.Error(err)
			return
		}
		p.have(s)
		p.burst()
	})
	wg.Wait()
}
