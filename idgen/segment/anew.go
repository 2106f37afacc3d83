package segment

import (
	"context"
	"time"
)

// Above returns an id that is above all that this generator knows to be taken: the ends of
// the ranges that it fetched, where the row stood, and the keys that it skipped. A row that
// is added anew may begin there. It waits for the fetch under way, whose range may be one of
// the row that is gone.
func (c *controlled) Above(ctx context.Context) (int64, error) {
	g := (*Generator)(c)
	for {
		g.mu.Lock()
		above, busy := max(g.seen, g.top, g.floor), g.fetching
		g.mu.Unlock()
		if !busy {
			return above, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, g.gaveUp(ctx.Err())
		}
	}
}

// Restart gives up the ids in memory and forgets all that is known of the row, as if the
// generator were new. It is for who knows that the row is gone, and all that had ids from it.
func (c *controlled) Restart() {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.empty()
	g.pace = pace{}
	g.seen, g.top, g.floor, g.least, g.raised = 0, 0, 1, 0, false
	g.life++
}
