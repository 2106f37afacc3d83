package worker_test

import "slices"

// simEpoch is the start of schedules, in Unix ms.
const simEpoch = 1_700_000_000_000

// action is an event of a schedule.
type action struct {
	at     int64
	kind   string
	proc   int
	amount int64
}

// schedule holds all events of a world. They are derived from the seed. The events of
// one process do not depend on the actions of another, so that
// actions can be removed one by one.
type schedule struct {
	faults
	seed    uint64
	procs   int
	slots   int
	horizon int64
	stall   int64 // pause of a process between a decision and its request
	calm    bool  // messages arrive, and processes do not pause between two lines
	actions []action
}

func newSchedule(f faults, seed uint64) schedule {
	rng := newStream(seed)
	if f.losses {
		return newLosses(f, seed, rng)
	}
	s := schedule{faults: f, seed: seed, procs: 2 + rng.n(4), slots: 1 << rng.n(3), horizon: (200_000 + int64(rng.n(500_000))) / scale}
	add := func(kind string, proc int, amount int64) {
		s.actions = append(s.actions, action{simEpoch + int64(rng.n(int(s.horizon))), kind, proc, amount})
	}
	for p := range s.procs {
		s.actions = append(s.actions, action{simEpoch + int64(rng.n(30_000/scale)), "start", p, 0})
		for range 1 + rng.n(4) {
			add([]string{"crash", "crash", "stop"}[rng.n(3)], p, 0)
		}
		for range 2 + rng.n(4) {
			add("start", p, 0)
		}
		for range rng.n(4) {
			add("pause", p, int64(rng.n([]int{10_000, 100_000, 300_000}[rng.n(3)]/scale)))
		}
		if f.clocksJump {
			for range rng.n(3) {
				add("jump", p, int64(rng.n(int(2*f.clockError)))-f.clockError)
			}
		}
		for range rng.n(3) {
			add("restart", p, 0)
		}
		if f.clones {
			add("copy", p, 0)
		}
	}
	aways := rng.n(3)
	for range aways {
		add("away", 0, int64(rng.n([]int{15_000, 150_000}[rng.n(2)]/scale)))
	}
	for range rng.n(3) {
		add("refuse", 0, int64(rng.n(20_000/scale)))
	}
	// The worst moments are during a put, at the end of a process's
	// quarantine, and after a pause that was longer than its bound.
	if f.wipes {
		for range 1 + rng.n(4) {
			add([]string{"wipe", "wipe at a take"}[rng.n(2)], 0, 0)
			if near := s.actions[rng.n(len(s.actions))]; near.kind == "pause" {
				s.actions[len(s.actions)-1].at = near.at + near.amount - 1
			}
		}
		for range rng.n(6) {
			add("doze", rng.n(s.procs), int64(rng.n(10)))
		}
	}
	if f.deletes {
		for range 1 + rng.n(4) {
			add([]string{"delete", "delete at a take"}[rng.n(2)], 0, int64(rng.n(s.slots)))
		}
	}
	if f.serverMoves {
		for range 1 + rng.n(2) {
			add("another identity", 0, 0)
		}
	}
	if f.restores {
		age := 200_000 / scale
		if f.restoresRecent {
			age = 5_000 / scale
		}
		for range 1 + rng.n(2) {
			add("restore", 0, int64(rng.n(age)))
		}
	}
	s.sort()
	return s
}

func (s *schedule) sort() {
	slices.SortStableFunc(s.actions, func(a, b action) int { return int(a.at - b.at) })
}
