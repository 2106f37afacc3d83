package counters

import (
	"cmp"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// Stats are driver.TableStats.
type Stats struct {
	Name       string // db.table
	Generator  string // "segment", "sequence", "snowflake", "uuid7", or the type of a Generator of the caller's
	Tag        string // biz_tag, for segment; the sequence's name
	HighestKey int64  // the highest id that the key column can hold; 0: its type is not one of whole numbers
	Statements int64  // statements that got ids
	IDs        int64  // ids that they got
	Refused    int64  // statements that were not run: refused, or no ids could be had

	LastRefusal string    // why the last of these was not run; "" if there was none
	LastRefused time.Time // when that was
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
