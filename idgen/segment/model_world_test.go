package segment

import (
	"fmt"
	"sync"
)

// world is the server with its clients.
type world struct {
	model
	mu      sync.Mutex
	servers []*modelServer
	primary int            // index of the server that processes connect to
	jumped  int            // number of moves by a margin
	allowed int            // number of events that can cause one
	margins int            // number of margins drawn
	edited  bool           // a mark was removed by hand
	table   map[int64]bool // keys of the table
	issued  map[int64]bool // ids issued by any process
	passed  int64          // highest key that any process skipped
	foreign map[int64]bool // keys from a client without leafsql
	procs   []*process
	pending []*statement
	wrong   string // the violation, if there is one
}

const modelStep = 2

func newWorld(m model) *world {
	w := &world{model: m, table: map[int64]bool{}, issued: map[int64]bool{}, foreign: map[int64]bool{}}
	w.start0()
	for n := range m.procs {
		w.procs = append(w.procs, w.start(n))
	}
	w.model.procs = 0
	return w
}

// highest returns the highest key below a limit.
func (w *world) highest(limit int64) (highest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.table {
		if k < limit {
			highest = max(highest, k)
		}
	}
	return highest
}

func (w *world) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

func (w *world) skippedBy(p *process, k int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.skipped, w.passed = max(p.skipped, k), max(w.passed, k)
	if row := w.servers[p.at].row; w.rolls == 0 && len(w.servers) == 1 && row.MaxID <= k {
		w.violated("process %d has skipped %d, and the row stands at %d", p.n, k, row.MaxID)
	}
}

func (w *world) issuedTo(p *process, o *op, id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case p.own[id]:
		w.violated("process %d issues %d twice", p.n, id)
	case w.issued[id] && w.rolls == 0:
		w.violated("process %d issues %d, which another one has issued", p.n, id)
	case o.foreign[id]:
		w.violated("process %d issues %d for a pool that was opened when a row had it", p.n, id)
	case id <= o.above:
		w.violated("process %d issues %d after it has skipped %d", p.n, id, o.above)
	}
	p.own[id], w.issued[id] = true, true
}
