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

// Stats is driver.TableStats.
type Stats struct {
	Name       string // db.table
	Generator  string // "segment", "sequence", "snowflake", "uuid7", or the type of the caller's Generator
	Tag        string // biz_tag of a segment, or the sequence's name
	HighestKey int64  // the highest id that the key column can hold; 0 if its type is not an integer type
	Statements int64  // statements that got ids
	IDs        int64  // ids of these statements
	Refused    int64  // statements that were not run: refused, or without ids after an error

	LastRefusal string    // reason for the last statement that was not run, and what to do; "" if there was none
	LastRefused time.Time // time of this statement
}

// Counts holds the counts of all tables that statements named. They are kept when the schema forgets a table. A Counts
// is safe for concurrent use.
type Counts struct {
	tables sync.Map // name -> *tableCounts
}

type tableCounts struct {
	statements, ids atomic.Int64

	mu    sync.Mutex
	other Stats // all fields except Statements and IDs
}

// update calls how with the lock held.
func (t *tableCounts) update(how func(other *Stats)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	how(&t.other)
}

// forTable returns the counts of a table, and creates them on the first call.
func (c *Counts) forTable(name string) *tableCounts {
	t, _ := c.tables.LoadOrStore(name, &tableCounts{other: Stats{Name: name}})
	return t.(*tableCounts)
}

// CountRefusal counts a statement that was not run because of err. It ignores errors other than an *insert.Refusal or a *FillError.
func (c *Counts) CountRefusal(err error) {
	var name, why string
	if refused, ok := errors.AsType[*insert.Refusal](err); ok {
		name, why = refused.TableText(), refused.Reason
		if refused.Fix != "" {
			why += "; " + refused.Fix
		}
	} else if unfilled, ok := errors.AsType[*FillError](err); ok {
		name, why = unfilled.Table, unfilled.Err.Error()
	} else {
		return
	}
	c.forTable(name).update(func(s *Stats) {
		s.Refused++
		s.LastRefusal, s.LastRefused = why, time.Now()
	})
}

// Snapshot returns the current counts, sorted by name.
func (c *Counts) Snapshot() (list []Stats) {
	for _, v := range c.tables.Range {
		t := v.(*tableCounts)
		t.update(func(s *Stats) {
			s.Statements, s.IDs = t.statements.Load(), t.ids.Load()
			list = append(list, *s)
		})
	}
	slices.SortFunc(list, func(a, b Stats) int { return cmp.Compare(a.Name, b.Name) })
	return list
}
