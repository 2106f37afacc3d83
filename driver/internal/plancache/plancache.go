// Package plancache keeps what was learned about SQL texts, bounded in entries
// and in bytes.
//
//	c := plancache.New[*insert.Plan](4096, 16<<20)
//	if plan, ok := c.Get(text); ok { … }
//	c.Put(text, plan, plan.Memory())
//
// It does not look into plans. If a plan depends on more than the text (the database
// in use, the server's version), the caller keeps a cache for each of these.
package plancache

import "sync"

// A Cache maps texts to values. It is safe for concurrent use. It holds two
// generations: when the young one is full it becomes the old one, and what of that is
// asked for is young again.
type Cache[V any] struct {
	mu         sync.RWMutex
	young, old map[string]entry[V]
	bytes      int // of the young
	entries    int // at most in a generation
	limit      int // of its bytes
}

// overhead is about how many bytes an entry takes besides its text, with a small value.
const overhead = 512

// An entry is a value and about how many bytes it takes with its text.
type entry[V any] struct {
	value V
	bytes int
}

// New returns a cache of at most entries texts that take at most about bytes
// bytes with their values. A text that would take more than a 32nd of them is not kept.
func New[V any](entries, bytes int) *Cache[V] {
	return &Cache[V]{young: make(map[string]entry[V]), entries: max(entries/2, 1), limit: bytes / 2}
}

// Get returns the value of a text.
func (c *Cache[V]) Get(text string) (V, bool) {
	c.mu.RLock()
	e, ok := c.young[text]
	if ok {
		c.mu.RUnlock()
		return e.value, true
	}
	e, ok = c.old[text]
	c.mu.RUnlock()
	if ok {
		c.mu.Lock()
		defer c.mu.Unlock()
		if newer, ok := c.young[text]; ok {
			return newer.value, true
		}
		c.put(text, e)
	}
	return e.value, ok
}

// Put keeps the value of a text, in place of one it had. size is about how many bytes the value takes. Texts that were not
// asked for lately make room.
func (c *Cache[V]) Put(text string, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(text, entry[V]{value, len(text) + overhead + size})
}

func (c *Cache[V]) put(text string, e entry[V]) {
	if e.bytes > c.limit/16 {
		return
	}
	more := e.bytes - c.young[text].bytes
	if c.bytes+more > c.limit || more == e.bytes && len(c.young) == c.entries {
		c.old, c.young, c.bytes, more = c.young, make(map[string]entry[V]), 0, e.bytes
	}
	c.bytes += more
	c.young[text] = e
}
