package segment

import (
	"fmt"
	"slices"

	"github.com/leafsql/leafsql/internal/part"
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

// gaveUp is the error of a call whose context ended with err; nil: it had no deadline.
func (g *Generator) gaveUp(err error) error {
	if err == nil {
		return &UnavailableError{Tag: g.tag, Cause: noAnswerError(g.patience())}
	}
	if g.failure != nil {
		return fmt.Errorf("leafsql: waiting for ids for tag %q: %w; the last fetch failed: %v", g.tag, err, part.Of(g.failure))
	}
	return fmt.Errorf("leafsql: waiting for ids for tag %q: %w", g.tag, err)
}
