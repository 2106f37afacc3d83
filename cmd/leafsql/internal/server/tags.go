package server

import (
	"context"
	"errors"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/inspect"
)

// Limits of look-ups of tags that were not requested before. A scan of unknown names must not keep the database
// busy, but a new tag must be found at once.
const (
	maxLookups   = 2                    // concurrent look-ups
	maxQueued    = 256                  // maximum number of requests that wait for a look-up
	missPause    = 5 * time.Millisecond // pause after a look-up without a result, so that there are at most 400 such look-ups a second
	maxTagLength = 128                  // longest tag in leaf_alloc's column, in characters
)

// tagCache caches the generators of tags with a row. Tags without a row are not cached: a new tag is found by the
// first request after it was added, and memory contains no more tags than leaf_alloc.
type tagCache struct {
	from    *driver.Connector
	byName  sync.Map // string -> idgen.Generator
	lookups chan struct{}
	queue   chan struct{}
}

func newTagCache(from *driver.Connector) *tagCache {
	return &tagCache{from: from, lookups: make(chan struct{}, maxLookups), queue: make(chan struct{}, maxQueued)}
}

func (t *tagCache) cached(tag string) (idgen.Generator, bool) {
	gen, ok := t.byName.Load(tag)
	if !ok {
		return nil, false
	}
	return gen.(idgen.Generator), true
}

// find looks up a tag's row. Names are compared exactly, as in Java Leaf, since with the table's collation very many
// names would match one row.
func (t *tagCache) find(ctx context.Context, tag string) (idgen.Generator, error) {
	if !isWellFormed(tag) {
		return nil, unknownTag(tag)
	}
	select {
	case t.queue <- struct{}{}:
		defer func() { <-t.queue }()
	default:
		return nil, busyProblem("requests for tags that are not known yet")
	}
	select {
	case t.lookups <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := func() { <-t.lookups }
	if gen, ok := t.cached(tag); ok {
		done()
		return gen, nil
	}
	row, err := inspect.Tag(ctx, t.from, tag)
	_, missing := errors.AsType[*segment.UnknownTagError](err)
	if missing || err == nil && row.Tag != tag {
		time.AfterFunc(missPause, done)
		return nil, unknownTag(tag)
	}
	defer done()
	if err != nil {
		return nil, err
	}
	gen := t.from.Segment(tag)
	t.byName.Store(tag, gen)
	return gen, nil
}

// isWellFormed reports whether a row of leaf_alloc can have this tag.
func isWellFormed(tag string) bool {
	if tag == "" || !utf8.ValidString(tag) || utf8.RuneCountInString(tag) > maxTagLength {
		return false
	}
	for _, r := range tag {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
