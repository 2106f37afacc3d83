// Package plancache caches values by a key such as a SQL text, with a limit on the entries and
// on their bytes.
//
//	c := plancache.New[string, *insert.Plan](4096, 16<<20)
//	if plan, ok := c.Get(text); ok { … }
//	c.Put(text, plan, len(text)+plan.MemorySize())
//
// It does not depend on the types of keys and values. If a value depends on more than the key (the database
// in use, the server's version), the caller needs a cache for each combination.
package plancache

import "sync"

// A Cache maps keys to values. It is safe for concurrent use. It holds two
// generations of entries. When the young generation is full, it replaces the old one. If an
// entry of the old generation is used, it becomes young again.
type Cache[K comparable, V any] struct {
	mu         sync.RWMutex
	young, old map[K]entry[V]
	bytes      int // size of the young generation
	entries    int // maximum entries of a generation
	limit      int // maximum bytes of a generation
}

// overhead is the estimated number of bytes of an entry with a small key and a small value.
const overhead = 512

// An entry is a value and the estimated bytes of it and its key.
type entry[V any] struct {
	value V
	bytes int
}

// New returns a cache that holds at most the given number of entries, and takes at most about the
// given number of bytes. An entry that would take more than a 32nd of these bytes is not cached.
func New[K comparable, V any](entries, bytes int) *Cache[K, V] {
	return &Cache[K, V]{young: make(map[K]entry[V]), entries: max(entries/2, 1), limit: bytes / 2}
}

// Fits reports whether an entry is cached if its key and value have the given size in bytes.
func (c *Cache[K, V]) Fits(size int) bool { return overhead+size <= c.limit/16 }

// Get returns the value of a key, and reports whether the key is cached.
func (c *Cache[K, V]) Get(key K) (V, bool) {
	c.mu.RLock()
	e, ok := c.young[key]
	_, isOld := c.old[key]
	c.mu.RUnlock()
	if ok || !isOld { // most queries with changing literals are never put, and need no exclusive lock
		return e.value, ok
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok = c.young[key]; !ok { // otherwise another call has just put it
		if e, ok = c.old[key]; ok {
			c.put(key, e)
		}
	}
	return e.value, ok
}

// Put caches the value of a key and replaces an earlier value. size estimates the bytes of both. Keys that
// were not used recently are evicted.
func (c *Cache[K, V]) Put(key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.put(key, entry[V]{value, overhead + size})
}

// put adds an entry to the young generation. c.mu has to be locked.
func (c *Cache[K, V]) put(key K, e entry[V]) {
	if e.bytes > c.limit/16 {
		return
	}
	more := e.bytes - c.young[key].bytes
	if c.bytes+more > c.limit || more == e.bytes && len(c.young) == c.entries {
		c.old, c.young, c.bytes, more = c.young, make(map[K]entry[V]), 0, e.bytes
	}
	c.bytes += more
	c.young[key] = e
}
