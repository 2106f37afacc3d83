package workertest

import "github.com/leafsql/leafsql/idgen/worker"

// This file tests reads and writes of a registry that stops for a while, is wiped, restored or failed over. The slow tests of
// leases in these cases are in outage.go and loss.go.

// away reads and writes a registry that does not answer, and again when it answers again with its data.
func away(k *kit) {
	s := k.open(0).slots
	d := newDoc()
	v := k.mustSet(s, 0, d)
	k.must(k.Stop())
	if got, v, err := s.Get(k.timeoutContext(patience/30), 0); err == nil {
		k.Errorf("from a registry that is away: %+v at %q, want an error", got, v)
	}
	k.must(k.Start())
	k.wantShown(s, 0, d, v)
	k.mustPut(s, 0, v)
}

// forgets reads a wiped registry.
func forgets(k *kit) {
	s := k.open(0).slots
	slots := []int{worker.RegistrySlot, 0, 1}
	for _, slot := range slots {
		k.mustSet(s, slot, newDoc())
	}
	k.must(k.Wipe())
	for _, s := range []worker.Slots{s, k.open(0).slots} {
		for _, slot := range slots {
			k.eventually("nothing where all is lost", func() bool {
				d, v, err := s.Get(k.timeoutContext(patience/6), slot)
				return err == nil && v == "" && d == worker.Doc{}
			})
		}
	}
	k.mustSet(s, 0, newDoc())
}

// setBack reads a restored registry. Puts at later versions must write nothing.
func setBack(k *kit) {
	s := k.open(0).slots
	d := newDoc()
	k.mustSet(s, 0, d)
	restore, err := k.Copy()
	k.must(err)
	later := k.mustSet(s, 0, newDoc())
	k.must(restore())
	for _, s := range []worker.Slots{s, k.open(0).slots} {
		k.eventually("what there was", func() bool {
			got, _, err := s.Get(k.timeoutContext(patience/6), 0)
			return err == nil && got == d
		})
		k.wantRefused(s, 0, later)
	}
}

// tellsServers tests a fail-over to a server that lacks the last writes. This server must have another identity.
func tellsServers(k *kit) {
	k.makeInUse(configOf(1))
	over, err := k.FailOver()
	k.must(err)
	p := k.open(0)
	k.mustSet(p.slots, 0, newDoc())
	before, err := p.src.Identity(k.timeoutContext(patience))
	k.must(err)
	k.must(over())
	for _, p := range []*process{p, k.open(0)} {
		k.eventually("the identity of another server", func() bool {
			now, err := p.src.Identity(k.timeoutContext(patience / 6))
			return err == nil && now != before
		})
	}
}
