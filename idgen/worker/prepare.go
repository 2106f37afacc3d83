package worker

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// Prepare creates the documents that are missing in a registry. The delay of the first
// id (see Config.NewRegistry) then begins now, and not when the first
// process starts. With Config.NewRegistry there is no delay: the caller declares that
// no process that uses the registry is running. The Workers, Lease and Layout of
// cfg must be those of the processes. The error is an *UnusableError if an operator has to change
// something, such as a clock that is ahead. Other errors come from cfg, open or the registry.
func Prepare(ctx context.Context, open func(context.Context) (Source, error), cfg Config) error {
	if err := cfg.complete(); err != nil {
		return err
	}
	e, err := openEngine(ctx, open, &cfg, &clock{host: cfg.host})
	if err != nil {
		return err
	}
	defer e.source.close()
	reg, err := e.readRegistry(ctx)
	if err == nil {
		err = e.clockError(ctx)
	}
	for id, failed := reg.id, 0; err == nil; reg, err = e.readRegistry(ctx) {
		done, err := e.prepareNext(ctx, reg, cfg.NewRegistry && reg.id == id, prepareBatch) // only this registry was declared new
		switch failed++; {
		case done:
			return nil
		case err == nil:
			failed = 0
		case failed > 20 || e.host.sleep(ctx, e.minPause) != nil: // the registry may be busy with a document
			return fmt.Errorf("leafsql: prepare the registry of worker ids: %w", errprefix.Trim(err))
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
		timing: cfg.timing, source: src, slots: shuffledSlots(cfg.Workers, cfg.host.random()), terms: leaseTerms(cfg),
		check: cfg.Check, declaredNew: cfg.NewRegistry, anyClock: cfg.AnyClock, owner: cfg.Owner, host: cfg.host, clock: c, log: cfg.Logger,
	}
	switch {
	case src.fixedID != nil:
		err = e.useLocal(*src.fixedID, cfg)
	case src.Slots == nil:
		err = errors.New("leafsql: the source of worker ids has no Slots; set Source.Slots")
	case cfg.State != "":
		e.log.Warn("leafsql: leafState has no effect on this source of worker ids, which has its own registry; leave it out", "registry", src.Name)
	}
	if err != nil {
		src.close()
		return nil, err
	}
	return e, nil
}

// leaseTerms returns the settings that all processes of a registry must share, as text.
func leaseTerms(cfg *Config) string { return fmt.Sprintf("lease %v, layout %s", cfg.Lease, cfg.Layout) }

// prepareBatch is the number of slots that Prepare prepares at once. A process prepares readBatch of them, to add less
// load to a registry in use.
const prepareBatch = 64

// prepareNext prepares the next batchSize slots, so that later processes need not wait. To prepare a slot is to write a
// document with a known history into it, if it has no document, or a free document with an unknown history.
// All processes share this work: the registry's document has the number of prepared slots. If fresh is true, the
// registry was declared new. prepareNext reports whether all slots are prepared.
func (e *engine) prepareNext(ctx context.Context, reg registry, fresh bool, batchSize int) (done bool, err error) {
	if reg.preparedSlots >= len(e.slots) {
		return true, nil
	}
	upTo := min(reg.preparedSlots+batchSize, len(e.slots))
	batch := make([]int, upTo-reg.preparedSlots)
	for i := range batch {
		batch[i] = reg.preparedSlots + i
	}
	rs := e.readAll(ctx, batch)
	failed := make([]error, len(batch))
	e.host.forEach(len(batch), func(i int) {
		if rs[i].err == nil {
			failed[i] = e.prepareSlot(ctx, reg.id, fresh, rs[i])
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
	d.Registry, d.HighWater, d.Owner = reg.id, latest(d.HighWater.Add(tick), e.now()), e.terms+preparedSeparator+strconv.Itoa(upTo)
	_, res, err := e.put(ctx, RegistrySlot, d, reg.ver)
	if errors.Is(err, errContended) { // another process wrote the registry's document
		err = nil
	}
	return res == swapped && upTo == len(e.slots), err
}

// prepareSlot writes a document with a known history into a free slot. A quarantine of the slot begins now: a
// process that takes the slot after it need not wait. If fresh is set, there is no quarantine.
func (e *engine) prepareSlot(ctx context.Context, id string, fresh bool, r reading) error {
	if r.ver == "" {
		r = e.createInitial(ctx, r.slot)
	}
	for range 3 { // a put is refused if another process writes at the same time, and by some registries without a reason
		if r.err != nil || !r.doc.Free || !hasUnknownHistory(r.doc, id) {
			return r.err
		}
		d := Doc{Nonce: r.doc.Nonce, HighWater: e.quarantineEnd(e.now()), Free: true, Owner: e.owner, Registry: id} // mutation: prepared
		if fresh {
			d.HighWater = e.now()
		}
		if r.doc.isUnused() {
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
