package segment

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A try is one request to the store, with a time limit. A slow store is not unavailable: a reply can take seconds, and a
// new connection needs several replies. After a try without an answer, the next try has twice the time. A call without a
// deadline waits for the time limit of the longest try.

// noAnswerError means that a store has not answered in time.
type noAnswerError time.Duration

func (e noAnswerError) Error() string { return fmt.Sprintf("no answer within %v", time.Duration(e)) }

func isNoAnswer(err error) bool {
	_, ok := errors.AsType[noAnswerError](err)
	return ok
}

// maxWait returns the limit of the longest try.
func (g *Generator) maxWait() time.Duration { return 12 * g.timeout }

// limitContext returns ctx, limited to maxWait if it has no deadline.
func (g *Generator) limitContext(ctx context.Context) (context.Context, context.CancelFunc) {
	if _, limited := ctx.Deadline(); limited {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, g.maxWait())
}

// try sends a request to the store. If the limit of this try has passed, it fails with noAnswerError, which cannot
// be mistaken for the end of the caller's context, and the next try has more time. After an answer, the next limit
// is a multiple of the time that the answer took.
func (g *Generator) try(ctx context.Context, q Request) (Range, error) {
	g.mu.Lock()
	within := g.tryLimit
	g.mu.Unlock()
	one, cancel := context.WithTimeout(ctx, within)
	defer cancel()
	began := time.Now()
	r, err := g.store.Fetch(one, q)
	next := 4 * time.Since(began)
	if err != nil && errors.Is(err, context.DeadlineExceeded) && one.Err() != nil && ctx.Err() == nil {
		next, err = 2*within, noAnswerError(within)
	}
	if err == nil || isNoAnswer(err) {
		g.mu.Lock()
		defer g.mu.Unlock()
		g.tryLimit = min(max(next, g.timeout), g.maxWait())
	}
	return r, err
}
