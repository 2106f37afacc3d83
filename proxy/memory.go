package proxy

import "sync/atomic"

// A budget bounds the bytes that all connections have in buffers and keep as values of prepared statements.
type budget struct {
	used atomic.Int64
	most int64
}

// take reports whether n more bytes are within the budget, and has them from then on. Negative ones it gets back.
func (b *budget) take(n int) bool {
	if b.used.Add(int64(n)) <= b.most || n <= 0 {
		return true
	}
	b.used.Add(-int64(n))
	return false
}
