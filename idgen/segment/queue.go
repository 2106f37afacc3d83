package segment

// The ids in memory are in the segment in use and in the spans queued after it. A span is a number of consecutive
// ids. Callers of the functions in this file hold Generator.mu.

// enqueue appends a span to the queue, without the ids that must not be issued.
func (g *Generator) enqueue(s span) {
	if low := min(max(g.floor, g.fetchFloor), s.end); s.start < low {
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

// take takes n consecutive ids from memory. It uses a later span if necessary.
func (g *Generator) take(n int64) (first int64, ok bool) {
	s := g.cur.Load()
	if first, ok := s.take(n); ok {
		return first, true
	}
	if len(g.queue) == 0 {
		return 0, false
	}
	if next := g.queue[0]; next.start == s.end() && s.size-s.taken()+next.size() >= n {
		// The remaining ids of s adjoin the next span.
		left := s.drain()
		next.start -= left
		g.queue = g.queue[1:]
		if next.size() >= n {
			g.switchTo(s, left, next, n)
			return next.start, true
		}
		g.switchTo(s, left, next, 0) // too few ids: concurrent calls for one id took ids of s
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
		g.switchTo(s, left, next, n)
		return next.start, true
	}
	return 0, false
}

// switchTo replaces s by next, and takes n ids of next. left is the number of ids that were drained from s.
func (g *Generator) switchTo(s *segment, left int64, next span, n int64) {
	g.retire(s, left)
	g.cur.Store(newSegment(next, n))
}

// retire adds the ids of s to the counters. left is the number of ids that were drained from s.
func (g *Generator) retire(s *segment, left int64) {
	g.stats.IDs += s.size - left - s.skipped
	g.stats.Dropped += s.skipped
}

// discardAll discards the ids in memory.
func (g *Generator) discardAll() {
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

// discardUpTo discards the ids in memory up to k, and those that a fetch in progress may return.
//
// The caller must hold g.mu. It guards the fields of g, and ids are moved between the queue and cur only under it, so all
// ids that can still be issued are in these two. Calls without the lock may use a segment that is no longer cur, but no
// ids remain in such a segment.
func (g *Generator) discardUpTo(k int64) {
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
