package segment

import (
	"slices"
)

// waiter is a call of Next that found no ids, or a call of Skip with a key that is not below the row's next id. first
// and err may be read when done is closed.
type waiter struct {
	n        int64 // number of ids wanted, or 0
	key      int64 // key to be skipped, or 0
	finished bool  // the call is over
	done     chan struct{}
	first    int64
	err      error
}

// finish ends the wait of a call.
func (w *waiter) finish(err error) {
	w.err, w.finished = err, true
	close(w.done)
}

// failWaiters finishes all waiting calls with err.
func (g *Generator) failWaiters(err error) {
	for _, w := range g.waiters {
		if !w.finished {
			w.finish(err)
		}
	}
	g.waiters = nil
}

// hasWaiters reports whether any call waits.
func (g *Generator) hasWaiters() bool {
	return slices.ContainsFunc(g.waiters, func(w *waiter) bool { return !w.finished })
}
