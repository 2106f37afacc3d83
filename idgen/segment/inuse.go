package segment

// DropInUse discards the ids in memory that are already keys of a table's rows. A writer without this generator added
// these rows, and the next id in the tag's row was raised above their keys only afterwards. highest is the table's
// highest key, read before the next id was raised. below returns the highest key under a limit. Ids in memory below
// highest may still be unused, since other processes may have written the higher keys. Therefore below is called for the
// ranges in memory that begin at highest or lower.
//
// The ids of a fetch in progress are discarded up to highest, since its range is not known yet. The tag's row is not
// changed, and ids that calls have received stay valid.
func (c *controlled) DropInUse(highest int64, below func(limit int64) (int64, error)) error {
	g := (*Generator)(c)
	g.mu.Lock()
	if g.fetching {
		g.fetchFloor = max(g.fetchFloor, highest+1)
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
			g.discardUpTo(k)
			g.mu.Unlock()
		}
	}
	return nil
}
