package tables

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// Stats are what one table was given: driver.TableStats, whose fields it has.
type Stats struct {
	Name       string
	Generator  string
	Tag        string
	HighestKey int64
	Statements int64
	IDs        int64
	Refused    int64

	LastRefusal string
	LastRefused time.Time
}

// Counts are of all tables that statements named: they outlive what is known of a table.
type Counts struct {
	tables sync.Map // name -> *tableCounts
}

type tableCounts struct {
	statements, ids atomic.Int64

	mu    sync.Mutex
	other Stats // all but these two
}

func (t *tableCounts) change(how func(other *Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	how(&t.other)
}

// of finds the counts of a table.
func (c *Counts) of(name string) *tableCounts {
	t, _ := c.tables.LoadOrStore(name, &tableCounts{other: Stats{Name: name}})
	return t.(*tableCounts)
}

// Note counts a statement that was not run because of err.
func (c *Counts) Note(err error) {
	var name, why string
	if refused, ok := errors.AsType[*insert.Refusal](err); ok {
		name, why = refused.On(), refused.Reason
	} else if unfilled, ok := errors.AsType[*FillError](err); ok {
		name, why = unfilled.Table, unfilled.Err.Error()
	} else {
		return
	}
	c.of(name).change(func(s *Stats) {
		s.Refused++
		s.LastRefusal, s.LastRefused = why, time.Now()
	})
}

// All are the counts as they stand, by name.
func (c *Counts) All() (list []Stats) {
	for _, v := range c.tables.Range {
		t := v.(*tableCounts)
		t.change(func(s *Stats) {
			s.Statements, s.IDs = t.statements.Load(), t.ids.Load()
			list = append(list, *s)
		})
	}
	slices.SortFunc(list, func(a, b Stats) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
