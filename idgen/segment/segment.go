package segment

import "sync/atomic"

// span holds the ids [start, end), all of them 1 or more.
type span struct{ start, end int64 }

func (s span) size() int64 { return s.end - s.start }

// segment is a span that is being used up. Only mark, used and skipped change: a new
// span is a new segment, so that no call ever pairs one span's counter with another's
// end.
type segment struct {
	base    int64        // the id before the first one
	size    int64        // number of ids
	mark    atomic.Int64 // ≤ size; calls that take an id past it look after the stock
	skipped int64        // of the ids taken, those that nobody got; under Generator.mu
	_       [96]byte     // the counter keeps its cache lines (fetched in pairs) to itself
	used    atomic.Int64 // ids taken; single calls push it past size when none is left
	_       [120]byte
}

// newSegment returns s with its first n ids taken. Its mark is 0.
func newSegment(s span, n int64) *segment {
	seg := &segment{base: s.start - 1, size: s.size()}
	seg.used.Store(n)
	return seg
}

func (s *segment) end() int64 { return s.base + s.size + 1 }

// take takes n consecutive ids, or none where fewer are left.
func (s *segment) take(n int64) (first int64, ok bool) {
	for {
		used := s.used.Load()
		if used > s.size-n {
			return 0, false
		}
		if s.used.CompareAndSwap(used, used+n) {
			return s.base + used + 1, true
		}
	}
}

// skip takes the ids up to k that are left, for nobody, and says how many.
func (s *segment) skip(k int64) int64 {
	target := min(k-s.base, s.size)
	for {
		used := s.used.Load()
		if used >= target {
			return 0
		}
		if s.used.CompareAndSwap(used, target) {
			s.skipped += target - used
			return target - used
		}
	}
}

func (s *segment) taken() int64 { return min(s.used.Load(), s.size) }

// issued is how many ids somebody got.
func (s *segment) issued() int64 { return s.taken() - s.skipped }

// drain takes all ids that are left, and says how many.
func (s *segment) drain() int64 { return s.size - min(s.used.Swap(s.size), s.size) }
