package segment

import "slices"

// A fetch in advance takes at most 1/32 of the ids left in the smallest column. It takes at most 1/16 of them if other
// processes fetch ids in the meantime.
const spareShare = 32

// Fit announces a column that the ids are written to, in addition to the columns of earlier calls. highest is the
// highest id that the column can hold. The room of a column is the number of unused ids up to its highest id. While the
// smallest column has room, a fetch takes at most 1/32 of this room, or the ids that the waiting calls want if they are
// more. If few ids are left, each call therefore fetches only its own ids, and no id is lost. A call for more ids than
// the largest column has left fails with *FullError. The store enforces the limits by Request.MaxStart.
func (c *controlled) Fit(highest int64) {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	if i, found := slices.BinarySearch(g.columns, highest); !found {
		g.columns = slices.Insert(g.columns, i, highest)
	}
}

// refuseOversized fails the calls that want more ids than the largest column has left. If no column limits the ids,
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

// fitRequest reduces a request to 1/32 of the room in the smallest column that has room, but not below the wanted
// ids. It sets N to 0 if no ids are wanted and the room is too small.
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
