package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// Prepare creates the documents that are missing in a registry, so that the wait for an
// unknown history (see Config.NewRegistry) begins now, and not when the first
// process starts. With Config.NewRegistry it declares that
// no process that uses the registry is running, and no wait is needed. The Workers, Lease and Layout of
// cfg must be those of the processes. The error is an *UnusableError if an operator has to change
// something, such as a clock that is ahead. Other errors are of cfg, of open, or of the registry.
func Prepare(ctx context.Context, open func(context.Context) (Source, error), cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	e, err := openEngine(ctx, open, &cfg, &clock{host: cfg.host})
	if err != nil {
		return err
	}
	defer e.source.close()
	reg, err := e.registry(ctx)
	if err == nil {
		err = e.clockError(ctx)
	}
	for id, failed := reg.id, 0; err == nil; reg, err = e.registry(ctx) {
		done, err := e.prepare(ctx, reg, cfg.NewRegistry && reg.id == id) // only this registry was declared new
		switch failed++; {
		case done:
			return nil
		case err == nil:
			failed = 0
		case failed > 20 || e.host.sleep(ctx, e.pause) != nil: // the registry may be busy with a document
			return fmt.Errorf("leafsql: preparing the registry of worker ids: %w", errprefix.Trim(err))
		}
	}
	return err
}

// openEngine opens a source and returns its engine.
func openEngine(ctx context.Context, open func(context.Context) (Source, error), cfg *Config, c *clock) (*engine, error) {
	src, err := open(ctx)
	if err != nil {
		return nil, err
	}
	e := &engine{
		lengths: cfg.lengths, source: src, slots: shuffled(cfg.Workers, cfg.host.random()), terms: terms(cfg),
		check: cfg.Check, fresh: cfg.NewRegistry, anyClock: cfg.AnyClock, owner: cfg.Owner, host: cfg.host, clock: c, log: cfg.Logger,
	}
	switch {
	case src.fixed != nil:
		err = e.local(*src.fixed, cfg)
	case src.Slots == nil:
		err = errors.New("leafsql: a source of worker ids: it has no Slots; set Source.Slots")
	case cfg.State != "":
		e.log.Warn("leafsql: leafState means nothing to this source of worker ids, whose registry is elsewhere; leave it out", "registry", src.Name)
	}
	if err != nil {
		src.close()
		return nil, err
	}
	return e, nil
}

// terms returns the settings that all processes of a registry must share, as text.
func terms(cfg *Config) string { return fmt.Sprintf("lease %v, layout %s", cfg.Lease, cfg.Layout) }

// prepare creates the documents of the next few slots that have none, or one with an unknown history, so
// that later processes need not wait. All processes
// share this work: the registry's document has the number of slots that are done. prepare reports
// whether all are.
func (e *engine) prepare(ctx context.Context, reg registry, fresh bool) (done bool, err error) {
	if reg.made >= len(e.slots) {
		return true, nil
	}
	upTo := min(reg.made+readAtOnce, len(e.slots))
	batch := make([]int, upTo-reg.made)
	for i := range batch {
		batch[i] = reg.made + i
	}
	rs := e.read(ctx, batch)
	failed := make([]error, len(batch))
	e.host.each(len(batch), func(i int) {
		if rs[i].err == nil {
			failed[i] = e.spare(ctx, reg.id, fresh, rs[i])
		}
	})
	unread := 0
	for i, r := range rs {
		if failed[i] != nil {
			return false, failed[i]
		}
		if r.err != nil {
			unread++ // a single unreadable slot must not stop the others
			err = r.err
		}
	}
	if unread > 1 || unread == len(batch) {
		return false, err
	}
	d := reg.doc
	d.Registry, d.HighWater, d.Owner = reg.id, latest(d.HighWater.Add(tick), e.now()), e.terms+madeMark+strconv.Itoa(upTo)
	_, res, err := e.put(ctx, RegistrySlot, d, reg.ver)
	if errors.Is(err, errContended) { // another process wrote it
		err = nil
	}
	return res == swapped && upTo == len(e.slots), err
}

// spare writes a document into a slot with which it can be taken without waiting, after a quarantine
// that begins now unless the registry is new.
func (e *engine) spare(ctx context.Context, id string, fresh bool, r reading) error {
	if r.ver == "" {
		r = e.create(ctx, r.slot)
	}
	for range 3 { // a put is refused if another process writes at the same time, and by some registries without a reason
		if r.err != nil || !r.doc.Free || !unknown(r.doc, id) {
			return r.err
		}
		d := Doc{Nonce: r.doc.Nonce, HighWater: e.quarantine(e.now()), Free: true, Owner: e.owner, Registry: id} // mutation: prepared
		if fresh {
			d.HighWater = e.now()
		}
		if r.doc.unused() {
			d.Nonce = spareNonce
		} else {
			d.HighWater = latest(d.HighWater, r.doc.HighWater) // mutation: prepared again
		}
		_, res, err := e.put(ctx, r.slot, d, r.ver)
		switch res {
		case swapped:
			return nil
		case unclear:
			return err
		}
		r = e.get(ctx, r.slot)
	}
	return errContended
}
