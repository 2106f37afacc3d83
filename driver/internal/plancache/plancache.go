// Package plancache keeps what was learned about SQL texts, bounded in entries
// and in bytes.
//
//	c := plancache.New[*insert.Plan](4096, 16<<20)
//	if plan, ok := c.Get(text); ok { … }
//	c.Put(text, plan)
//
// It knows nothing of plans: whatever else decides one (the database in use,
// the server's version) is for the caller to keep caches apart by.
package plancache

import (
	"hash/maphash"
	"math/bits"
	"sync"
	"sync/atomic"
)

// A Cache maps texts to values. It is safe for concurrent use: hits take no
// lock and write nothing that another hit reads, but once for each entry.
type Cache[V any] struct {
	seed    maphash.Seed
	buckets []atomic.Pointer[entry[V]]

	mu    sync.Mutex
	queue []*entry[V] // oldest first from head on, a ring
	head  int
	n     int
	bytes int
	limit int // of bytes
}

type entry[V any] struct {
	hash  uint64
	text  string
	value V
	used  atomic.Bool // since the entry came to the queue's end
	next  atomic.Pointer[entry[V]]
}

// overhead is what an entry takes beside its text, roughly, with a small plan.
const overhead = 512

// New returns a cache of at most entries texts that take at most about bytes
// bytes. A text that would take more than a 64th of them is not kept.
func New[V any](entries, bytes int) *Cache[V] {
	entries = max(entries, 1)
	return &Cache[V]{
		seed:    maphash.MakeSeed(),
		buckets: make([]atomic.Pointer[entry[V]], 1<<bits.Len(uint(entries-1))),
		queue:   make([]*entry[V], entries),
		limit:   bytes,
	}
}

// Get returns the value of a text.
func (c *Cache[V]) Get(text string) (V, bool) {
	hash := maphash.String(c.seed, text)
	for e := c.bucket(hash).Load(); e != nil; e = e.next.Load() {
		if e.hash == hash && e.text == text {
			if !e.used.Load() {
				e.used.Store(true)
			}
			return e.value, true
		}
	}
	var none V
	return none, false
}

// Put keeps the value of a text, in place of one it had. What was not asked for
// lately makes room.
func (c *Cache[V]) Put(text string, value V) {
	if cost(text) > c.limit/64 {
		return
	}
	e := &entry[V]{hash: maphash.String(c.seed, text), text: text, value: value}
	c.mu.Lock()
	defer c.mu.Unlock()
	at := c.bucket(e.hash)
	for o := at.Load(); o != nil; at, o = &o.next, o.next.Load() {
		if o.hash == e.hash && o.text == text {
			c.replace(o, e)
			e.next.Store(o.next.Load())
			at.Store(e)
			return
		}
	}
	for c.n == len(c.queue) || c.bytes+cost(text) > c.limit {
		c.evict()
	}
	first := c.bucket(e.hash)
	e.next.Store(first.Load())
	first.Store(e)
	c.push(e)
	c.bytes += cost(text)
}

// Clear forgets everything.
func (c *Cache[V]) Clear() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i := range c.buckets {
		c.buckets[i].Store(nil)
	}
	clear(c.queue)
	c.head, c.n, c.bytes = 0, 0, 0
}

func cost(text string) int { return len(text) + overhead }

func (c *Cache[V]) bucket(hash uint64) *atomic.Pointer[entry[V]] {
	return &c.buckets[hash&uint64(len(c.buckets)-1)]
}

func (c *Cache[V]) push(e *entry[V]) {
	c.queue[(c.head+c.n)%len(c.queue)] = e
	c.n++
}

// replace puts e into the queue's place of o.
func (c *Cache[V]) replace(o, e *entry[V]) {
	for i := range c.n {
		if at := (c.head + i) % len(c.queue); c.queue[at] == o {
			c.queue[at] = e
			return
		}
	}
}

// evict drops the oldest entry that was not used, and gives those that were
// another round.
func (c *Cache[V]) evict() {
	for {
		e := c.queue[c.head]
		c.queue[c.head] = nil
		c.head = (c.head + 1) % len(c.queue)
		c.n--
		if e.used.Swap(false) {
			c.push(e)
			continue
		}
		at := c.bucket(e.hash)
		for o := at.Load(); o != e; o = at.Load() {
			at = &o.next
		}
		at.Store(e.next.Load())
		c.bytes -= cost(e.text)
		return
	}
}
