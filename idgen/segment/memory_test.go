package segment

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen"
)

// memory is a store in memory that keeps the contract, with faults on demand.
type memory struct {
	mu    sync.Mutex
	rows  map[string]*Row
	delay time.Duration // of each fetch
	fault error         // what fetches fail with
	calls []int64       // the n of each fetch
	fetch func(ctx context.Context, tag string, n, seen int64) (Range, error)
}

func newMemory(rows ...Row) *memory {
	m := &memory{rows: make(map[string]*Row)}
	for _, r := range rows {
		m.put(r)
	}
	return m
}

func (m *memory) put(r Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.rows[r.Tag] = &r
}

func (m *memory) setFault(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.fault = err
}

func (m *memory) asked() []int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return append([]int64(nil), m.calls...)
}

func (m *memory) Fetch(ctx context.Context, tag string, n, seen int64) (Range, error) {
	m.mu.Lock()
	m.calls = append(m.calls, n)
	delay, fetch := m.delay, m.fetch
	m.mu.Unlock()
	if fetch != nil {
		return fetch(ctx, tag, n, seen)
	}
	if delay > 0 {
		t := time.NewTimer(delay)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	if err := ctx.Err(); err != nil {
		return Range{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.fault != nil {
		return Range{}, m.fault
	}
	row, ok := m.rows[tag]
	if !ok {
		return Range{}, &UnknownTagError{Tag: tag}
	}
	if row.Step < 1 || row.Step > MaxRowStep {
		return Range{}, &StepError{Tag: tag, Step: row.Step}
	}
	if max(row.MaxID, 0) < seen {
		return Range{}, &RolledBackError{Tag: tag, Start: row.MaxID, Seen: seen}
	}
	n = max(n, row.Step)
	if row.MaxID > math.MaxInt64-n {
		return Range{}, fmt.Errorf("%w: %s", idgen.ErrExhausted, tag)
	}
	row.MaxID += n
	return Range{Start: row.MaxID - n, End: row.MaxID, Step: row.Step}, nil
}
