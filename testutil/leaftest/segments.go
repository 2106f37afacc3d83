package leaftest

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"time"
)

// Segments issues ids from leaf_alloc like one Leaf process. It is safe for
// concurrent use.
type Segments struct {
	DB  *sql.DB          // database of leaf_alloc
	Now func() time.Time // clock for the steps; nil: time.Now

	mu   sync.Mutex
	tags map[string]*tag
}

// A tag is the state of a tag in use: a current range and, once a tenth of it is
// used, the next range.
type tag struct {
	ids, next *ids
	ranges    int       // number of fetched ranges
	step      int64     // step of the latest range
	rowStep   int64     // step in leaf_alloc
	fetched   time.Time // time of the latest fetch
}

// ids are the unused ids of a range, [at, end).
type ids struct{ at, end, step int64 }

// Rules for Leaf's steps: they double if a range lasts less than 15 minutes, and halve if it lasts 30 minutes
// or more.
const (
	duration = 15 * time.Minute
	maxStep  = 1_000_000
)

// Next returns the next id of a tag. As in Leaf, the first id is 0 if the row's max_id was 0.
func (s *Segments) Next(ctx context.Context, name string) (int64, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tags == nil {
		s.tags = map[string]*tag{}
	}
	t := s.tags[name]
	if t == nil {
		t = &tag{}
		s.tags[name] = t
	}
	if t.ids == nil {
		if err := s.fetch(ctx, name, t, &t.ids); err != nil {
			return 0, err
		}
	}
	if left := t.ids.end - t.ids.at; t.next == nil && left*10 < t.ids.step*9 {
		if err := s.fetch(ctx, name, t, &t.next); err != nil && left == 0 {
			return 0, err
		}
	}
	if t.ids.at == t.ids.end {
		t.ids, t.next = t.next, nil
	}
	id := t.ids.at
	t.ids.at++
	return id, nil
}

// fetch increases the row's max_id and stores the new range in place. The first two ranges have the row's step.
func (s *Segments) fetch(ctx context.Context, name string, t *tag, place **ids) error {
	now := time.Now
	if s.Now != nil {
		now = s.Now
	}
	step := int64(0)
	if t.ranges >= 2 {
		step = t.step
		switch lasted := now().Sub(t.fetched); {
		case lasted < duration && step*2 <= maxStep:
			step *= 2
		case lasted >= 2*duration && step/2 >= t.rowStep:
			step /= 2
		}
	}
	end, rowStep, err := s.advanceRow(ctx, name, step)
	if err != nil {
		return err
	}
	if step == 0 {
		step = rowStep
	}
	t.ranges, t.step, t.rowStep, t.fetched = t.ranges+1, step, rowStep, now()
	*place = &ids{at: end - step, end: end, step: step}
	return nil
}

// advanceRow increases the row by step, or by the row's step if step is 0, and reads it, in one
// transaction.
func (s *Segments) advanceRow(ctx context.Context, name string, step int64) (maxID, rowStep int64, err error) {
	tx, err := s.DB.BeginTx(ctx, nil)
	if err != nil {
		return 0, 0, fmt.Errorf("leaftest: %w", err)
	}
	defer tx.Rollback()
	if step == 0 {
		_, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + step WHERE biz_tag = ?", name)
	} else {
		_, err = tx.ExecContext(ctx, "UPDATE leaf_alloc SET max_id = max_id + ? WHERE biz_tag = ?", step, name)
	}
	if err == nil {
		err = tx.QueryRowContext(ctx, "SELECT max_id, step FROM leaf_alloc WHERE biz_tag = ?", name).Scan(&maxID, &rowStep)
	}
	if err == nil {
		err = tx.Commit()
	}
	if err != nil {
		return 0, 0, fmt.Errorf("leaftest: tag %s: %w", name, err)
	}
	return maxID, rowStep, nil
}
