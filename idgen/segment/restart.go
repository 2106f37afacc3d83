package segment

import (
	"context"
	"time"
)

// FirstUnused returns an id that is higher than all ids of fetched ranges, all keys passed to Skip, and the row's last
// used id as last read. A row that is added again may begin with it. FirstUnused waits for the fetch in progress, because
// its range may be from the deleted row.
func (c *controlled) FirstUnused(ctx context.Context) (int64, error) {
	g := (*Generator)(c)
	for {
		g.mu.Lock()
		above, busy := max(g.seen, g.rowNext, g.floor), g.fetching
		g.mu.Unlock()
		if !busy {
			return above, nil
		}
		select {
		case <-time.After(time.Millisecond):
		case <-ctx.Done():
			return 0, g.contextError(ctx.Err())
		}
	}
}

// Restart discards the ids in memory and the data that was read from the row, as if the generator were new. Call it
// only if the row and all rows with ids from it have certainly been deleted.
func (c *controlled) Restart() {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.discardAll()
	g.pace = pace{}
	g.seen, g.rowNext, g.floor, g.fetchFloor, g.raised = 0, 0, 1, 0, false
	g.restarts++
}
