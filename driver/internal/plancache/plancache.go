// Package plancache caches values by SQL text, with a limit on the entries and
// on their bytes.
//
//	c := plancache.New[*insert.Plan](4096, 16<<20)
//	if plan, ok := c.Get(text); ok { … }
//	c.Put(text, plan, plan.MemorySize())
//
// It does not depend on the type of the values. If a value depends on more than the text (the database
// in use, the server's version), the caller needs a cache for each combination.
package plancache

import "sync"

// A Cache maps texts to values. It is safe for concurrent use. It holds two
// generations of entries. When the young generation is full, it replaces the old one. If an
// entry of the old generation is used, it becomes young again.
type Cache[V any] struct {
	mu         sync.RWMutex
	young, old map[string]entry[V]
	bytes      int // size of the young generation
	entries    int // maximum entries of a generation
	limit      int // maximum bytes of a generation
}

// overhead is the estimated number of bytes of an entry with a small value, without its text.
const overhead = 512

// An entry is a value and the estimated bytes of it and its text.
type entry[V any] struct {
	value V
	bytes int
}

// New returns a cache that holds at most the given number of entries, and takes at most about the
// given number of bytes. An entry that would take more than a 32nd of these bytes is not cached.
func New[V any](entries, bytes int) *Cache[V] {
	return &Cache[V]{young: make(map[string]entry[V]), entries: max(entries/2, 1), limit: bytes / 2}
}

// Get returns the value of a text, and reports whether the text is cached.
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

// Put caches the value of a text and replaces an earlier value. size estimates the bytes of the value. Texts that
// were not used recently are evicted.
func (c *Cache[V]) Put(text string, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(text, entry[V]{value, len(text) + overhead + size})
}

// put adds an entry to the young generation. c.mu has to be locked.
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
