package segmenttest

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/control"
)

// Row has the columns of a tag's row.
type Row = control.Row

// Memory is a segment.Store in memory, for tests without a database. Tests can make it slow, or make it
// fail. The zero value has no rows. It is safe for concurrent use.
type Memory struct {
	mu       sync.Mutex
	rows     map[string]Row
	delay    time.Duration
	fault    error
	requests []segment.Request
}

// Put adds rows, or replaces rows with the same tags, and returns m.
func (m *Memory) Put(rows ...Row) *Memory {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.rows == nil {
		m.rows = make(map[string]Row)
	}
	for _, r := range rows {
		m.rows[r.Tag] = r
	}
	return m
}

// Row returns the tag's row, or a zero Row if the tag has none.
func (m *Memory) Row(tag string) Row {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.rows[tag]
}

// Delete removes the tag's row.
func (m *Memory) Delete(tag string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.rows, tag)
}

// Fail makes fetches fail with err, until it is called with nil.
func (m *Memory) Fail(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = err
}

// Delay makes each later fetch take d.
func (m *Memory) Delay(d time.Duration) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.delay = d
}

// Requests returns all requests so far, in order, including failed ones.
func (m *Memory) Requests() []segment.Request {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Clone(m.requests)
}

// Fetch implements segment.Store.
func (m *Memory) Fetch(ctx context.Context, q segment.Request) (segment.Range, error) {
	m.mu.Lock()
	m.requests = append(m.requests, q)
	delay := m.delay
	m.mu.Unlock()
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return segment.Range{}, err
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	row, ok := m.rows[q.Tag]
	start := max(row.MaxID, q.Floor)
	switch {
	case m.fault != nil:
		return segment.Range{}, m.fault
	case !ok:
		return segment.Range{}, &segment.UnknownTagError{Tag: q.Tag}
	case row.Step < 1 || row.Step > math.MaxInt32:
		return segment.Range{}, &segment.RowError{Tag: q.Tag, Reason: fmt.Sprintf("step is %d", row.Step), Fix: "put another row"}
	case row.MaxID < 0:
		return segment.Range{}, &segment.RowError{Tag: q.Tag, Reason: fmt.Sprintf("max_id is %d", row.MaxID), Fix: "put another row"}
	case row.MaxID < q.Seen:
		return segment.Range{}, &segment.RolledBackError{Tag: q.Tag, Start: row.MaxID, Seen: q.Seen}
	case q.N == 0 || q.Step > 0 && row.Step > q.Step || q.Raise && row.MaxID >= q.Floor || q.MaxStart > 0 && row.MaxID > q.MaxStart:
		return segment.Range{Start: row.MaxID, End: row.MaxID, Step: row.Step}, nil
	case start > math.MaxInt64-q.N:
		return segment.Range{}, fmt.Errorf("%w: tag %q", idgen.ErrExhausted, q.Tag)
	}
	row.MaxID = start + q.N
	m.rows[q.Tag] = row
	return segment.Range{Start: start, End: row.MaxID, Step: row.Step}, nil
}
