package proxy

import "sync/atomic"

// A budget limits the bytes that all connections have in buffers and in values of prepared statements.
type budget struct {
	used  atomic.Int64
	limit int64
}

// reserve takes n more bytes, and reports whether they are within the budget. A negative n returns bytes.
func (b *budget) reserve(n int) bool {
	if b.used.Add(int64(n)) <= b.limit || n <= 0 {
		return true
	}
	b.used.Add(-int64(n))
	return false
}
