package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leafsql/leafsql/internal/part"
)

// Prepare makes the documents that a registry lacks, so that the wait for an
// unknown history (Config.NewRegistry) begins now, and is over when the first
// processes come later. With Config.NewRegistry it declares, as that does, that
// nobody who uses the registry is running, and there is nothing to wait for. Of
// cfg it needs Workers, Lease and Layout as those processes will have them.
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
		done, err := e.prepare(ctx, reg, cfg.NewRegistry && reg.id == id) // another one was not declared new
		switch failed++; {
		case done:
			return nil
		case err == nil:
			failed = 0
		case failed > 20 || e.host.sleep(ctx, e.pause) != nil: // it may be busy with a document
			return fmt.Errorf("leafsql: preparing the registry of worker ids: %w", part.Of(err))
		}
	}
	return err
}

// openEngine opens a source and makes its engine.
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

// terms are what all processes of a registry have in common.
func terms(cfg *Config) string { return fmt.Sprintf("lease %v, layout %s", cfg.Lease, cfg.Layout) }

// prepare makes the next few slots that have no document, or an unknown one, so
// that processes to come need not wait out an unknown history. All processes
// get on together: the registry's document says how far they are. It reports
// whether nothing is left to be done.
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
			unread++ // one alone may be unreadable, and must not stop the others
			err = r.err
		}
	}
	if unread > 1 || unread == len(batch) {
		return false, err
	}
	d := reg.doc
	d.Registry, d.HighWater, d.Owner = reg.id, latest(d.HighWater.Add(tick), e.now()), e.terms+madeMark+strconv.Itoa(upTo)
	_, res, err := e.put(ctx, RegistrySlot, d, reg.ver)
	if errors.Is(err, errContended) { // others were there
		err = nil
	}
	return res == swapped && upTo == len(e.slots), err
}

// spare makes a slot one that can be taken without waiting, quarantined from
// now on if need be.
func (e *engine) spare(ctx context.Context, id string, fresh bool, r reading) error {
	if r.ver == "" {
		r = e.create(ctx, r.slot)
	}
	for range 3 { // a put is refused where another process was there at the same time, and by some registries without a reason
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
