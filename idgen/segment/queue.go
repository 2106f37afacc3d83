package segment

// What is in memory is the segment in use and the spans queued behind it. Who calls a
// function of this file holds Generator.mu.

// add puts a span behind the queue, without the ids that are not to be issued.
func (g *Generator) add(s span) {
	if low := min(max(g.floor, g.least), s.end); s.start < low {
		g.stats.Dropped += low - s.start
		s.start = low
	}
	if s.size() <= 0 {
		return
	}
	if last := len(g.queue) - 1; last >= 0 && g.queue[last].end == s.start {
		g.queue[last].end = s.end
	} else {
		g.queue = append(g.queue, s)
	}
}

// take takes n consecutive ids out of what is in memory, moving on to a later span if
// need be.
func (g *Generator) take(n int64) (first int64, ok bool) {
	s := g.cur.Load()
	if first, ok := s.take(n); ok {
		return first, true
	}
	if len(g.queue) == 0 {
		return 0, false
	}
	if next := g.queue[0]; next.start == s.end() && s.size-s.taken()+next.size() >= n {
		// The end of s joins the span behind it.
		left := s.drain()
		next.start -= left
		g.queue = g.queue[1:]
		if next.size() >= n {
			g.use(s, left, next, n)
			return next.start, true
		}
		g.use(s, left, next, 0) // single calls have shortened s meanwhile
		return g.take(n)
	}
	for i, next := range g.queue {
		if next.size() < n {
			continue
		}
		left := s.drain()
		g.stats.Dropped += left
		for _, d := range g.queue[:i] {
			g.stats.Dropped += d.size()
		}
		g.queue = g.queue[i+1:]
		g.use(s, left, next, n)
		return next.start, true
	}
	return 0, false
}

// use replaces s, drained with left ids in it, by next, of which n ids are taken.
func (g *Generator) use(s *segment, left int64, next span, n int64) {
	g.retire(s, left)
	g.cur.Store(newSegment(next, n))
}

// retire counts s, drained with left ids in it.
func (g *Generator) retire(s *segment, left int64) {
	g.stats.IDs += s.size - left - s.skipped
	g.stats.Dropped += s.skipped
}

// empty gives up the ids in memory.
func (g *Generator) empty() {
	s := g.cur.Load()
	left := s.drain()
	g.retire(s, left)
	g.stats.Dropped += left
	for _, d := range g.queue {
		g.stats.Dropped += d.size()
	}
	g.queue = nil
	g.cur.Store(new(segment))
}

// pass gives up the ids in memory up to k, and those that a fetch under way may bring.
//
// It needs g.mu for more than its own fields. Calls without the lock may hold a segment
// that is not cur any more, but that one is drained; all ids that can still be issued
// are in cur and behind it in the queue, and only under g.mu do they move.
func (g *Generator) pass(k int64) {
	if k < g.floor {
		return
	}
	g.floor = k + 1
	gone := g.cur.Load().skip(k)
	kept := g.queue[:0]
	for _, q := range g.queue {
		if n := min(q.end, g.floor) - q.start; n > 0 {
			gone += n
			g.stats.Dropped += n
			q.start += n
		}
		if q.size() > 0 {
			kept = append(kept, q)
		}
	}
	g.queue = kept
	g.pace.skipped += gone
}
