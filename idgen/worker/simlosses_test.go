package worker_test

// newLosses returns a schedule of losses at the worst intervals, which are rare in random
// schedules. The first process holds the slot. It notices
// the first loss only after the second one, or is paused when it has decided to
// put its document back. The second process takes the slot after the first loss.
// After the last loss both are cut off until the ids of the second one begin.
func newLosses(f faults, seed uint64, rng *stream) schedule {
	s := schedule{faults: f, seed: seed, procs: 2 + rng.n(3)/2, slots: 1 + rng.n(8)/7, horizon: 900_000 / scale}
	s.calm = !rng.chance(4)
	within := func(ms int) int64 { return int64(rng.n(ms / scale)) }
	add := func(at int64, kind string, proc int, amount int64) {
		s.actions = append(s.actions, action{at, kind, proc, amount})
	}
	lease := int64(60_000 / scale)
	if f.longLease {
		lease *= 3
	}
	if f.delaysTakes { // the first process's take arrives after the second one's document was lost, and created again by a process that crashed
		again := lease/2 + within(int(lease*scale)*3/2)
		s.slots, s.stall = 1, again-lease/4+within(int(lease*scale)/2)
		add(simEpoch, "recreate", 0, 0)
		add(simEpoch+within(1_000), "start", 0, 0)
		add(simEpoch+within(10_000), "start", 1, 0)
		add(simEpoch+again, "recreate", 0, 0)
		add(simEpoch+again+1, "sleep", 1, max(0, lease*5/4+60_000/scale-again)+within(12_000))
		s.sort()
		return s
	}
	at, slot := simEpoch+within(10_000), int64(rng.n(s.slots))
	add(at, "start", 0, 0)
	first := at + 40_000/scale + within(60_000)
	if f.longLease { // right after a renewal, or shortly before the next
		first += within(60_000)
	}
	if f.takesOverAtOnce { // to a process with a fast clock, a paused holder's bound seems to have passed early
		wakes := at + 70_000/scale + within(30_000)
		add(wakes-30_000/scale-within(30_000), "pause", 0, 0)
		s.actions[len(s.actions)-1].amount = wakes - s.actions[len(s.actions)-1].at
		add(at+1+within(40_000), "start", 1, 0)
		add(wakes-within(10_000), "lose", 0, slot)
		s.sort()
		return s
	}
	second, before, pause, heard := first+within(int(lease*scale)+20_000), within(20_000), rng.chance(2), 40_000
	last := second
	switch rng.n(3) {
	case 0: // a third loss, each soon enough for lost documents to be put back
		second, before, pause, heard = first+30_000/scale+within(8_000), within(3_000), true, 4_000
		last = first + 60_000/scale + within(10_000)
		add(last, "lose", 0, slot)
	case 1: // the holder is paused when it has decided to put its document back
		second, before, pause, heard = first+80_000/scale+within(20_000), lease/12+within(20_000), false, 20_000
		last = second
		s.stall = 60_000/scale + within(60_000)
		if s.procs > 2 {
			add(second+within(60_000), "stop", 0, 0)
			add(second+within(120_000), "start", 2, 0)
		}
	}
	add(first, "lose", 0, slot)
	add(second, "lose", 0, slot)
	if pause {
		add(first-before, "pause", 0, before+second-first+within(4_000))
	}
	add(first+before, "start", 1, 0)
	for p := range 2 {
		if !rng.chance(8) {
			soon := last + within(heard)
			add(soon, "sleep", p, first+lease+60_000/scale-soon+within(12_000))
		}
	}
	for range rng.n(3) {
		add(at+within(800_000), []string{"start", "crash", "stop", "restart"}[rng.n(4)], rng.n(s.procs), 0)
	}
	s.sort()
	return s
}
