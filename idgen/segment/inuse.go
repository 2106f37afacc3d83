package segment

// DropInUse gives up the ids in memory that rows of a table have: somebody who does not
// know of this generator wrote them, and moved the tag's row afterwards. highest is the
// table's highest key, read before the row was seen above it, and below finds the highest
// one under a limit. Ids in memory that lie below highest may still be free, since other
// processes write higher ones: below is asked for each range of them, and only then.
//
// Of a fetch that is under way all ids up to highest are given up, since which ones it
// brings is not known yet. The row is not moved, and ids that calls got before stay theirs.
func (c *controlled) DropInUse(highest int64, below func(limit int64) (int64, error)) error {
	g := (*Generator)(c)
	g.mu.Lock()
	if g.fetching {
		g.least = max(g.least, highest+1)
	}
	s := g.cur.Load()
	held := append([]span{{s.base + s.taken() + 1, s.end()}}, g.queue...)
	g.mu.Unlock()
	for _, h := range held {
		if h.size() == 0 || h.start > highest {
			continue
		}
		k, err := below(h.end)
		if err != nil {
			return err
		}
		if k >= h.start {
			g.mu.Lock()
			g.pass(k)
			g.mu.Unlock()
		}
	}
	return nil
}
