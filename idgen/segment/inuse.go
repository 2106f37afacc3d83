package segment

// DropInUse gives up the ids in memory that rows of a table have: somebody who does not
// know of this generator wrote them, and moved the tag's row afterwards. highest is the
// table's highest key, read before the row was seen above it, and below finds the highest
// one under a limit. It is asked only where ids up to highest are in memory: they may be
// free, and the rows above them have ids that other processes fetched.
//
// Ids that are on their way from the store are given up as far as highest, since which
// ones they are is not known yet. The row is not moved, and ids that calls got before
// stay theirs.
func (g *Generator) DropInUse(highest int64, below func(limit int64) (int64, error)) error {
	g.mu.Lock()
	if g.fetching {
		g.free = max(g.free, highest+1)
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
