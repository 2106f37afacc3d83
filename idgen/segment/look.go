package segment

import (
	"context"
	"errors"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

var errRestarted = errors.New("the tag's generator was restarted while its row was read")

// ReadRow returns the next unused id and the step of the tag's row, and takes no ids. Each call queries the store.
// The first fetch does not read the row again if ReadRow has read it shortly before. ReadRow returns the errors of
// Next.
func (c *controlled) ReadRow(ctx context.Context) (maxID, step int64, err error) {
	r, err := (*Generator)(c).readRow(ctx)
	return r.Start, r.Step, err
}

// readRow returns the state of the tag's row as an empty Range.
func (g *Generator) readRow(ctx context.Context) (Range, error) {
	g.mu.Lock()
	life := g.restarts
	g.mu.Unlock()
	limit, cancel := g.limitContext(ctx)
	defer cancel()
	r, err := g.load(limit, Request{Tag: g.tag})
	for isNoAnswer(err) {
		r, err = g.load(limit, Request{Tag: g.tag})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.restarts != life: // the row was read before Restart
		return Range{}, &UnavailableError{Tag: g.tag, Cause: errRestarted}
	case g.closed:
		return Range{}, idgen.ErrClosed
	case err == nil:
		g.recordRow(r, time.Now())
		return r, nil
	case limit.Err() != nil:
		return Range{}, g.contextError(ctx.Err())
	case isAnswer(err):
		return Range{}, err
	}
	return Range{}, &UnavailableError{Tag: g.tag, Cause: err}
}

// CountFailure counts a failure to read or add the tag's row as a fetch that failed. Since no fetch follows by itself,
// the failure is not the error of the last fetch, which would last until the next call needs ids.
func (c *controlled) CountFailure() {
	g := (*Generator)(c)
	g.mu.Lock()
	defer g.mu.Unlock()
	g.stats.Failures++
}
