package segment

import "sync/atomic"

// span is a number of consecutive ids, [start, end). They are 1 or higher.
type span struct{ start, end int64 }

func (s span) size() int64 { return s.end - s.start }

// segment is the span from which ids are issued. Only checkAt, used and skipped change. Each span has its own segment,
// so that no call ever combines the counter of one span with the end of another.
type segment struct {
	base    int64        // the id before the first one
	size    int64        // number of ids
	checkAt atomic.Int64 // ≤ size; a call that raises used above it checks whether a fetch is due
	skipped int64        // discarded ids that count as used; guarded by Generator.mu
	_       [96]byte     // used has its own cache lines (which are fetched in pairs)
	used    atomic.Int64 // ids taken; calls for one id raise it above size when no ids remain
	_       [120]byte
}

// newSegment returns s with its first n ids taken. Its checkAt is 0.
func newSegment(s span, n int64) *segment {
	seg := &segment{base: s.start - 1, size: s.size()}
	seg.used.Store(n)
	return seg
}

func (s *segment) end() int64 { return s.base + s.size + 1 }

// take takes n consecutive ids. ok is false if fewer remain.
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

// skip discards the remaining ids up to k, and returns their number.
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

// issued returns the number of ids that callers got.
func (s *segment) issued() int64 { return s.taken() - s.skipped }

// drain takes all remaining ids, and returns their number.
func (s *segment) drain() int64 { return s.size - min(s.used.Swap(s.size), s.size) }
