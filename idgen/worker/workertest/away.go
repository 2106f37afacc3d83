package workertest

import "github.com/leafsql/leafsql/idgen/worker"

// The rules for reads and writes of a registry that goes away, is wiped, restored or taken over, without leases. The slow tests of
// leases in these cases are in outage.go and loss.go.

// away reads and writes a registry that does not answer, and again when it is back with its data.
func away(k *kit) {
	s := k.open(0).slots
	d := doc()
	v := k.set(s, 0, d)
	k.ok(k.Stop())
	if got, v, err := s.Get(k.within(patience/30), 0); err == nil {
		k.Errorf("from a registry that is away: %+v at %q", got, v)
	}
	k.ok(k.Start())
	k.shows(s, 0, d, v)
	k.next(s, 0, v)
}

// forgets reads a wiped registry.
func forgets(k *kit) {
	s := k.open(0).slots
	slots := []int{worker.RegistrySlot, 0, 1}
	for _, slot := range slots {
		k.set(s, slot, doc())
	}
	k.ok(k.Wipe())
	for _, s := range []worker.Slots{s, k.open(0).slots} {
		for _, slot := range slots {
			k.eventually("nothing where all is lost", func() bool {
				d, v, err := s.Get(k.within(patience/6), slot)
				return err == nil && v == "" && d == worker.Doc{}
			})
		}
	}
	k.set(s, 0, doc())
}

// setBack reads a restored registry. Puts at later versions must write nothing.
func setBack(k *kit) {
	s := k.open(0).slots
	d := doc()
	k.set(s, 0, d)
	restore, err := k.Copy()
	k.ok(err)
	later := k.set(s, 0, doc())
	k.ok(restore())
	for _, s := range []worker.Slots{s, k.open(0).slots} {
		k.eventually("what there was", func() bool {
			got, _, err := s.Get(k.within(patience/6), 0)
			return err == nil && got == d
		})
		k.refused(s, 0, later)
	}
}

// tellsServers fails over to a server that lacks the last writes. It must have another identity.
func tellsServers(k *kit) {
	k.inUse(among(1))
	over, err := k.FailOver()
	k.ok(err)
	p := k.open(0)
	k.set(p.slots, 0, doc())
	before, err := p.src.Identity(k.within(patience))
	k.ok(err)
	k.ok(over())
	for _, p := range []*process{p, k.open(0)} {
		k.eventually("the identity of another server", func() bool {
			now, err := p.src.Identity(k.within(patience / 6))
			return err == nil && now != before
		})
	}
}
