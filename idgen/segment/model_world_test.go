package segment

import (
	"fmt"
	"sync"
)

// world is the server with its clients.
type world struct {
	model
	mu             sync.Mutex
	servers        []*modelServer
	primary        int            // index of the server that processes connect to
	jumped         int            // number of moves by a margin
	allowed        int            // number of events that can cause one
	margins        int            // number of margins drawn
	edited         bool           // a mark was removed by hand
	table          map[int64]bool // keys of the table
	issued         map[int64]bool // ids issued by any process
	highestSkipped int64          // highest key that any process skipped
	foreign        map[int64]bool // keys from a client without leafsql
	procs          []*process
	pending        []*statement
	violation      string // the violation, if there is one
}

const modelStep = 2

func newWorld(m model) *world {
	w := &world{model: m, table: map[int64]bool{}, issued: map[int64]bool{}, foreign: map[int64]bool{}}
	w.setUpServers()
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

func (w *world) recordViolation(format string, args ...any) {
	if w.violation == "" {
		w.violation = fmt.Sprintf(format, args...)
	}
}

func (w *world) recordSkip(p *process, k int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.skipped, w.highestSkipped = max(p.skipped, k), max(w.highestSkipped, k)
	if row := w.servers[p.server].row; w.rollbacks == 0 && len(w.servers) == 1 && row.MaxID <= k {
		w.recordViolation("process %d has skipped %d, and the row stands at %d", p.index, k, row.MaxID)
	}
}

func (w *world) recordIssue(p *process, o *insertOp, id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case p.issued[id]:
		w.recordViolation("process %d issues %d twice", p.index, id)
	case w.issued[id] && w.rollbacks == 0:
		w.recordViolation("process %d issues %d, which another one has issued", p.index, id)
	case o.foreign[id]:
		w.recordViolation("process %d issues %d for a pool that was opened when a row had it", p.index, id)
	case id <= o.skippedBefore:
		w.recordViolation("process %d issues %d after it has skipped %d", p.index, id, o.skippedBefore)
	}
	p.issued[id], w.issued[id] = true, true
}
