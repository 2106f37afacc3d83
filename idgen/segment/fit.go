package segment

import "slices"

// A prefetch takes at most 1/32 of the ids left in the smallest column. Meanwhile other processes may move the
// row so far that it would be 1/16.
const spareShare = 32

// Fit announces that ids are written to a column that holds none above highest, as well as to the columns of
// earlier calls. While the smallest of these columns has room, a fetch takes the ids that the waiting calls
// want, or 1/32 of that room if it is more: if few ids are left, each call fetches its own, so that none is
// lost. A call for more ids than the largest column has left fails with *FullError. The store enforces
// Request.MaxStart.
func (c *controlled) Fit(highest int64) {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	if i, found := slices.BinarySearch(g.columns, highest); !found {
		g.columns = slices.Insert(g.columns, i, highest)
	}
}

// refuseOversized fails the calls that want more than the largest column has left. If no column limits the ids,
// the store returns the error.
func (g *Generator) refuseOversized() {
	if len(g.columns) == 0 || g.columns[len(g.columns)-1] == maxEnd {
		return
	}
	next, highest := max(g.rowNext, g.floor), g.columns[len(g.columns)-1]
	g.waiters = slices.DeleteFunc(g.waiters, func(w *waiter) bool {
		if !w.finished && w.n > 0 && w.n-1 > highest-next {
			w.finish(&FullError{Tag: g.tag, N: w.n, Next: next, Highest: highest})
		}
		return w.finished
	})
}

// fitRequest reduces a request to what the smallest column with room can spare, but not below the wanted ids.
// It sets N to 0 if no ids are wanted and none can be spared.
func (g *Generator) fitRequest(q *Request, wanted int64) {
	next := max(g.rowNext, q.Floor)
	i, _ := slices.BinarySearch(g.columns, next)
	switch {
	case i == len(g.columns): // no columns, or all are full
		if i > 0 && !q.Raise {
			q.N = 0
		}
		return
	case g.columns[i] == maxEnd:
		return
	case q.Raise:
		wanted = max(wanted, 1)
	}
	smallest, largest := g.columns[i], g.columns[len(g.columns)-1]
	q.Highest = smallest
	wanted = min(wanted, largest-next+1)
	q.N = min(q.N, max(wanted, (smallest-next+1)/spareShare))
	if q.N > wanted {
		q.MaxStart = smallest - spareShare/2*q.N + 1
	} else if largest < maxEnd {
		q.MaxStart = largest - q.N + 1
	}
}
