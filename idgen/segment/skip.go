package segment

import (
	"context"
	"fmt"
	"math"

	"github.com/leafsql/leafsql/idgen"
)

// Far reports whether a key would take more than half of the room left in a column that ends at highest, as far as
// this generator has seen the row.
func (c *controlled) Far(key, highest int64) bool {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	return key-g.top > (highest-g.top)/2
}

// Skip moves the generator past k, a key that comes from elsewhere: once it has
// returned nil, this generator issues nothing up to k, and the row stands above k, so
// that no later fetch, of any process, gives ids up to k. Ranges that other processes
// hold already are not touched. A k below 1 is nothing to do.
//
// The store is asked only where k is not below the highest end that is known of the
// row, and then for a range that begins above k, as long as the row's step (of 16 ids
// the first time): keys that ascend ask once a step. Skip fails as Next does, without an
// effect on what is issued, and with idgen.ErrExhausted where no id would be left above k.
func (g *Generator) Skip(ctx context.Context, k int64) error {
	if k < 1 {
		return nil
	}
	g.mu.Lock()
	switch {
	case g.closed:
		g.mu.Unlock()
		return idgen.ErrClosed
	case k < g.top:
		g.pass(k)
		g.mu.Unlock()
		return nil
	case k >= math.MaxInt64-1:
		g.mu.Unlock()
		return fmt.Errorf("%w: tag %q: no id is left above %d", idgen.ErrExhausted, g.tag, k)
	}
	return g.await(ctx, &waiter{key: k, done: make(chan struct{})})
}
