package segment

import "slices"

// spare is which part of what a column has left a range takes that is more than what is
// wanted now. Others may move the row to half of what is left until it would be a sixteenth.
const spare = 32

// Fit says that ids go to a column that holds none above highest, at the same time as to
// the columns that were named before. While the smallest of them has room, a fetch takes
// what the waiting calls want, or 1/32 of that room if it is more: if few are
// left, each call fetches its own, so that none is lost. A call for more than the largest
// has left fails with *FullError. The store keeps Request.MaxStart.
func (c *controlled) Fit(highest int64) {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	if i, found := slices.BinarySearch(g.columns, highest); !found {
		g.columns = slices.Insert(g.columns, i, highest)
	}
}

// refuse fails the calls that want more than the largest column has left. Where ids end the
// store says.
func (g *Generator) refuse() {
	if len(g.columns) == 0 || g.columns[len(g.columns)-1] == maxEnd {
		return
	}
	next, highest := max(g.top, g.floor), g.columns[len(g.columns)-1]
	g.waiters = slices.DeleteFunc(g.waiters, func(w *waiter) bool {
		if !w.gone && w.n > 0 && w.n-1 > highest-next {
			w.finish(&FullError{Tag: g.tag, N: w.n, Next: next, Highest: highest})
		}
		return w.gone
	})
}

// fit makes a request one that the smallest column that has room can spare, for no less
// than is wanted. N is 0 where nothing is wanted, and nothing can be spared.
func (g *Generator) fit(q *Request, wanted int64) {
	next := max(g.top, q.Floor)
	i, _ := slices.BinarySearch(g.columns, next)
	switch {
	case i == len(g.columns): // none of them, or all are full
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
	q.N = min(q.N, max(wanted, (smallest-next+1)/spare))
	if q.N > wanted {
		q.MaxStart = smallest - spare/2*q.N + 1
	} else if largest < maxEnd {
		q.MaxStart = largest - q.N + 1
	}
}
