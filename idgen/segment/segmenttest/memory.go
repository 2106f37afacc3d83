package segmenttest

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
)

// Memory is a segment.Store in memory, for tests that need no database. It keeps the
// contract, and fails and dawdles on demand.
type Memory struct {
	mu    sync.Mutex
	rows  map[string]segment.Row
	delay time.Duration
	fault error
	asked []int64
}

// NewMemory returns a store that holds rows.
func NewMemory(rows ...segment.Row) *Memory {
	m := &Memory{rows: make(map[string]segment.Row)}
	for _, r := range rows {
		m.rows[r.Tag] = r
	}
	return m
}

// Put adds a row or replaces the tag's.
func (m *Memory) Put(row segment.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[row.Tag] = row
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

// Asked returns the n of each fetch so far, in order, failed ones too.
func (m *Memory) Asked() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]int64(nil), m.asked...)
}

// Fetch implements segment.Store.
func (m *Memory) Fetch(ctx context.Context, tag string, n, seen int64) (segment.Range, error) {
	m.mu.Lock()
	m.asked = append(m.asked, n)
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
	row, ok := m.rows[tag]
	switch n = max(n, row.Step); {
	case m.fault != nil:
		return segment.Range{}, m.fault
	case !ok:
		return segment.Range{}, &segment.UnknownTagError{Tag: tag}
	case row.Step < 1 || row.Step > segment.MaxRowStep:
		return segment.Range{}, &segment.StepError{Tag: tag, Step: row.Step}
	case max(row.MaxID, 0) < seen:
		return segment.Range{}, &segment.RolledBackError{Tag: tag, Start: row.MaxID, Seen: seen}
	case row.MaxID > math.MaxInt64-n:
		return segment.Range{}, fmt.Errorf("%w: tag %q", idgen.ErrExhausted, tag)
	}
	if row.MaxID <= -n {
		return segment.Range{}, &segment.RangeError{Tag: tag, Range: segment.Range{Start: row.MaxID, End: row.MaxID + n}}
	}
	r := segment.Range{Start: row.MaxID, End: row.MaxID + n, Step: row.Step}
	row.MaxID = r.End
	m.rows[tag] = row
	return r, nil
}
