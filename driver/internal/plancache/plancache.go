// Package plancache keeps what was learned about SQL texts, bounded in entries
// and in bytes.
//
//	c := plancache.New[*insert.Plan](4096, 16<<20)
//	if plan, ok := c.Get(text); ok { … }
//	c.Put(text, plan)
//
// It knows nothing of plans. If a plan depends on more than the text (the database
// in use, the server's version), the caller keeps a cache for each of these.
package plancache

import "sync"

// A Cache maps texts to values. It is safe for concurrent use. It holds two
// generations: when the young one is full it becomes the old one, and what of that is
// asked for is young again.
type Cache[V any] struct {
	mu         sync.RWMutex
	young, old map[string]V
	bytes      int // of the young
	entries    int // at most in a generation
	limit      int // of its bytes
}

// overhead is what an entry takes beside its text, roughly, with a small plan.
const overhead = 512

// New returns a cache of at most entries texts that take at most about bytes
// bytes. A text that would take more than a 64th of them is not kept.
func New[V any](entries, bytes int) *Cache[V] {
	return &Cache[V]{young: make(map[string]V), entries: max(entries/2, 1), limit: bytes / 2}
}

// Get returns the value of a text.
func (c *Cache[V]) Get(text string) (V, bool) {
	c.mu.RLock()
	v, ok := c.young[text]
	if ok {
		c.mu.RUnlock()
		return v, true
	}
	v, ok = c.old[text]
	c.mu.RUnlock()
	if ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		if newer, ok := c.young[text]; ok {
			return newer, true
		}
		c.put(text, v)
	}
	return v, ok
}

// Put keeps the value of a text, in place of one it had. What was not asked for
// lately makes room.
func (c *Cache[V]) Put(text string, value V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(text, value)
}

func (c *Cache[V]) put(text string, value V) {
	cost := len(text) + overhead
	if cost > c.limit/32 {
		return
	}
	if _, ok := c.young[text]; !ok {
		if len(c.young) == c.entries || c.bytes+cost > c.limit {
			c.old, c.young, c.bytes = c.young, make(map[string]V), 0
		}
		c.bytes += cost
	}
	c.young[text] = value
}
