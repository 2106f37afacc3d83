package worker

import (
	"context"
	"slices"
	"time"
)

// Access to internals for the simulation. It is outside the package because it runs
// snowflake's generators.

// FileSource returns a local file as a source with one slot, the durations of a
// network registry, and no registry document.
func FileSource(dir string, worker int) (Source, error) {
	f, err := openFile(dir, worker)
	if err != nil {
		return Source{}, err
	}
	return Source{Slots: singleSlot{f}, Close: f.Close}, nil
}

// singleSlot adds a registry document in memory to a file, which has none.
type singleSlot struct{ *file }

func (a singleSlot) Get(ctx context.Context, slot int) (Doc, Version, error) {
	if slot == RegistrySlot {
		return Doc{Nonce: "", HighWater: time.UnixMilli(1), Free: true, Owner: "lease 12s, layout " + preparedSeparator + "1"}, "v", nil
	}
	return a.file.Get(ctx, slot)
}

// Host is a simulated machine.
type Host interface {
	Wall() time.Time
	Mono() time.Duration
	Sleep(ctx context.Context, d time.Duration) error
	Start(f func())
	Random() uint64
}

type simulatedHost struct{ h Host }

func (s simulatedHost) wall() time.Time                                  { return s.h.Wall() }
func (s simulatedHost) mono() time.Duration                              { return s.h.Mono() }
func (s simulatedHost) sleep(ctx context.Context, d time.Duration) error { return s.h.Sleep(ctx, d) }
func (s simulatedHost) start(f func())                                   { s.h.Start(f) }
func (s simulatedHost) random() uint64                                   { return s.h.Random() }

func (s simulatedHost) withTimeout(ctx context.Context, _ time.Duration) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}

func (s simulatedHost) forEach(n int, f func(int)) {
	for i := range n {
		f(i)
	}
}

// On returns a Config for a simulated machine, with all durations divided so
// that there are fewer times to put into ids. A hasty Keeper takes over a slot as
// soon as its bound has passed. An early one takes it over when the
// skew has passed too, and takes slots with an unknown history without waiting for their holders.
func (c Config) On(h Host, divided time.Duration, hasty, early bool) Config {
	l := timingFor(c.Lease)
	for _, d := range []*time.Duration{&l.lease, &l.renewEvery, &l.grace, &l.skew, &l.callTimeout, &l.restoreWait, &l.maxAhead, &l.minPause} {
		*d /= divided
	}
	switch {
	case hasty:
		l.grace = 0
	case early:
		l.grace, l.restoreWait = l.skew, 0
	}
	l.renewSpread = 0 // the latest renewals are the most dangerous ones, and the seeds of rare mutations stay valid
	c.host, c.timing = simulatedHost{h}, l
	return c
}

// Terms returns the terms of a Config in the registry's document.
func (c Config) Terms() string { return leaseTerms(&c) }

// Stop makes the keeper return its slot, without waiting for it.
func (k *Keeper) Stop() { k.cancel() }

// CopyOf gives k a copy of o's memory, as if its process were a copy of o's. It returns
// the slot in which both may issue ids, and the time up to which they may; ok is false if o holds
// no slot.
func (k *Keeper) CopyOf(o *Keeper) (slot int, upTo time.Time, ok bool) {
	if o.engine == nil || o.held == nil || o.next.Phase != phaseHolding {
		return 0, upTo, false
	}
	h, issued, mine := *o.held, o.cfg.Issued(), k.cfg.Issued
	h.unconfirmedTimes, h.refusedTimes = slices.Clone(h.unconfirmedTimes), slices.Clone(h.refusedTimes)
	k.cfg.Issued = func() time.Time { return latest(issued, mine()) }
	k.once.Do(func() {
		k.cfg.host.start(func() {
			var err error
			if k.engine, err = openEngine(k.ctx, k.open, &k.cfg, &k.clock); err != nil {
				panic(err)
			}
			k.engine.declaredNew, k.held, h.mayHaveIssued = false, &h, false
			k.next.Ahead = k.engine.maxAhead
			k.holdSlot()
			k.run()
		})
	})
	return h.slot, latest(h.highestSent, h.bound), true
}
