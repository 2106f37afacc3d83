package segment

import (
	"context"
	"errors"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

var errRestarted = errors.New("the tag began anew while its row was looked at")

// Look returns how the tag's row stands, as an empty Range, and moves nothing. The store
// is asked anew each time. A generator that was looked at a moment ago does not look by
// itself before its first fetch. Look fails as Next does.
func (g *Generator) Look(ctx context.Context) (Range, error) {
	g.mu.Lock()
	life := g.life
	g.mu.Unlock()
	limit, cancel := g.limit(ctx)
	defer cancel()
	r, err := g.load(limit, Request{Tag: g.tag})
	for silent(err) {
		r, err = g.load(limit, Request{Tag: g.tag})
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case g.life != life: // it stood there before Restart
		return Range{}, &UnavailableError{Tag: g.tag, Cause: errRestarted}
	case g.closed:
		return Range{}, idgen.ErrClosed
	case err == nil:
		g.stands(r, time.Now())
		return r, nil
	case limit.Err() != nil:
		return Range{}, g.gaveUp(ctx.Err())
	case isAnswer(err):
		return Range{}, err
	}
	return Range{}, &UnavailableError{Tag: g.tag, Cause: err}
}
