package server

import (
	"context"
	"errors"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
)

// Look-ups of tags that nobody asked for before: a scan of names that mean
// nothing must not keep the database busy, and a new tag is to be found at once.
const (
	lookups    = 2                    // at a time
	queued     = 256                  // requests that wait for one, at most
	missPause  = 5 * time.Millisecond // before the next, after one that found nothing: 400 a second at most
	longestTag = 128                  // characters that leaf_alloc's column holds
)

// source is what tags needs of a Connector.
type source interface {
	Tag(ctx context.Context, tag string) (segment.Row, error)
	Segment(tag string) idgen.Generator
}

// tags are those that have a row. Nothing is kept of those that have none: a
// new one is there for the first request after it was added, and memory holds
// no more than leaf_alloc does.
type tags struct {
	from    source
	byName  sync.Map // string -> idgen.Generator
	looking chan struct{}
	queue   chan struct{}
}

func newTags(from source) *tags {
	return &tags{from: from, looking: make(chan struct{}, lookups), queue: make(chan struct{}, queued)}
}

func (t *tags) known(tag string) (idgen.Generator, bool) {
	gen, ok := t.byName.Load(tag)
	if !ok {
		return nil, false
	}
	return gen.(idgen.Generator), true
}

// find looks for a tag's row. Its name counts to the letter, as with Java Leaf:
// under the table's collation one row would have very many names.
func (t *tags) find(ctx context.Context, tag string) (idgen.Generator, error) {
	if !wellFormed(tag) {
		return nil, unknown(tag)
	}
	select {
	case t.queue <- struct{}{}:
		defer func() { <-t.queue }()
	default:
		return nil, busy("requests for tags that are not known yet")
	}
	select {
	case t.looking <- struct{}{}:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	done := func() { <-t.looking }
	if gen, ok := t.known(tag); ok {
		done()
		return gen, nil
	}
	row, err := t.from.Tag(ctx, tag)
	_, missing := errors.AsType[*segment.UnknownTagError](err)
	if missing || err == nil && row.Tag != tag {
		time.AfterFunc(missPause, done)
		return nil, unknown(tag)
	}
	defer done()
	if err != nil {
		return nil, err
	}
	gen := t.from.Segment(tag)
	t.byName.Store(tag, gen)
	return gen, nil
}

// wellFormed reports whether a tag could be one.
func wellFormed(tag string) bool {
	if tag == "" || !utf8.ValidString(tag) || utf8.RuneCountInString(tag) > longestTag {
		return false
	}
	for _, r := range tag {
		if unicode.IsControl(r) {
			return false
		}
	}
	return true
}
