package segment

import (
	"context"
	"fmt"
	"math"

	"github.com/leafsql/leafsql/idgen"
)

// IsFar reports whether a key is so high that skipping to it would use more than half of the ids that are left in a
// column; highest is the highest id of the column. It uses the row's next id as last read by this generator.
func (c *controlled) IsFar(key, highest int64) bool {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	return key-g.rowNext > (highest-g.rowNext)/2
}

// Skip makes the generator issue only ids above k, a key that comes from elsewhere. After Skip has returned nil, this
// generator issues no id up to k. The row's next id is above k, so no later fetch of any process gives ids up to k.
// Ranges that other processes already hold are not affected. Skip does nothing for k below 1.
//
// The store is queried only if k is not below the row's next id as last read by this generator. The request
// is for a range above k that is as long as the row's step (at most 16 ids the first time), so ascending keys cause
// one request for each step. Skip returns the errors of Next, and idgen.ErrExhausted if no id would be left above
// k. After an error, the same ids are issued as without the call.
func (g *Generator) Skip(ctx context.Context, k int64) error {
	if k < 1 {
		return nil
	}
	g.mu.Lock()
	switch {
	case g.closed:
		g.mu.Unlock()
		return idgen.ErrClosed
	case k < g.rowNext:
		g.discardUpTo(k)
		g.mu.Unlock()
		return nil
	case k >= math.MaxInt64-1:
		g.mu.Unlock()
		return fmt.Errorf("%w: tag %q: no ids remain above %d", idgen.ErrExhausted, g.tag, k)
	}
	return g.await(ctx, &waiter{key: k, done: make(chan struct{})})
}
