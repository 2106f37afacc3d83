package segment

import (
	"slices"
)

// waiter is a call of Next that found no ids, or one of Skip that found the row below
// its key. first and err belong to the call once done is closed.
type waiter struct {
	n     int64 // ids wanted
	key   int64 // or the key to be passed
	gone  bool  // the call is over
	done  chan struct{}
	first int64
	err   error
}

// finish ends a call's wait.
func (w *waiter) finish(err error) {
	w.err, w.gone = err, true
	close(w.done)
}

// fail gives err to who waits.
func (g *Generator) fail(err error) {
	for _, w := range g.waiters {
		if !w.gone {
			w.finish(err)
		}
	}
	g.waiters = nil
}

// awaited reports whether anybody waits.
func (g *Generator) awaited() bool {
	return slices.ContainsFunc(g.waiters, func(w *waiter) bool { return !w.gone })
}
