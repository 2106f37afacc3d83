package segment

import (
	"math/rand/v2"
	"testing"
	"testing/synctest"
)

// walks are longer random schedules of the cases with fail-overs: it takes many actions until a fail-over costs
// an id.
func walk(m model, seed int64, actions int) (wrong string, schedule []action, ids, jumps int) {
	random := rand.New(rand.NewPCG(uint64(seed), 0))
	m.ops, m.cuts, m.restarts = 40, m.cuts+3, m.restarts+3
	if m.failOvers > 0 {
		m.failOvers += 2
	}
	m.limitMoves, m.crashes, m.lateEvents, m.renamed = false, 3*m.crashes, 3*m.lateEvents, !m.ownState && !m.sameName
	w := newWorld(m)
	defer w.end()
	for range actions {
		all := w.actions()
		if len(all) == 0 {
			break
		}
		a := all[random.IntN(len(all))]
		schedule = append(schedule, a)
		if w.apply(a); w.violation != "" {
			break
		}
	}
	return w.violation, schedule, len(w.issued), w.jumped
}

func TestModelWalks(t *testing.T) {
	for name, m := range modelCases {
		if m.failovers == (failovers{}) || *modelCase != "" && *modelCase != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ids, jumps := 0, 0
			for seed := range int64(*modelWalks) {
				synctest.Test(t, func(t *testing.T) {
					wrong, schedule, issued, jumped := walk(m, seed, 150)
					if ids, jumps = ids+issued, jumps+jumped; wrong != "" {
						t.Fatalf("walk %d, after 0 states: %s\n%v", seed, wrong, schedule)
					}
				})
				if t.Failed() {
					return
				}
			}
			t.Logf("%d walks, %d ids, %d moves by a margin", *modelWalks, ids, jumps)
		})
	}
}
