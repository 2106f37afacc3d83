// Package idcheck counts duplicates and gaps among ids issued by many goroutines and processes.
//
//	var c idcheck.Collector
//	for range 64 {
//		r := c.Recorder() // one for each goroutine
//		go func() { ...; r.Add(first, n) }()
//	}
//	...
//	c.Verify(t) // fails on any duplicate
//
// Counting is exact: ids are stored as ranges and sorted, which takes well under a second for some millions. The order
// in which ids were issued is not recorded.
package idcheck

import (
	"bufio"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"sync"
	"testing"
)

// A Collector gathers the ids of its recorders. The zero value is ready to use.
type Collector struct {
	mu        sync.Mutex
	recorders []*Recorder
}

// A Recorder is for one goroutine, so it needs no lock.
type Recorder struct{ spans []span }

// span contains the ids first … last.
type span struct{ first, last int64 }

// Recorder returns a new recorder. Every later Report includes its ids.
func (c *Collector) Recorder() *Recorder {
	r := new(Recorder)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.recorders = append(c.recorders, r)
	return r
}

// Add records n consecutive ids that begin with first. It panics if n is below 1 or the last id is above
// 2^63-1.
func (r *Recorder) Add(first int64, n int) {
	if n < 1 || first > math.MaxInt64-int64(n-1) {
		panic(fmt.Sprintf("idcheck: Add(%d, %d)", first, n))
	}
	s := span{first, first + int64(n-1)}
	if i := len(r.spans) - 1; i >= 0 && s.first > r.spans[i].first && s.first-1 == r.spans[i].last {
		r.spans[i].last = s.last
		return
	}
	r.spans = append(r.spans, s)
}

// AddLines records the ids that a process printed, one or "first n" on each line. It ignores an incomplete last line,
// since the process may have been killed while it wrote. It returns an error for a line without ids, and for a read error.
func (r *Recorder) AddLines(in io.Reader) error {
	for lines := bufio.NewReader(in); ; {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		fields := bytes.Fields(line)
		if len(fields) != 1 && len(fields) != 2 {
			return fmt.Errorf("idcheck: line %q holds no id", line)
		}
		first, err := strconv.ParseInt(string(fields[0]), 10, 64)
		n := 1
		if err == nil && len(fields) == 2 {
			n, err = strconv.Atoi(string(fields[1]))
		}
		if err != nil {
			return fmt.Errorf("idcheck: line %q: %w", line, err)
		}
		if n < 1 || first > math.MaxInt64-int64(n-1) {
			return fmt.Errorf("idcheck: line %q is no range of ids", line)
		}
		r.Add(first, n)
	}
}

// A Report contains the result of a Collector.
type Report struct {
	Issued     int64   // number of recorded ids, repetitions included
	Duplicates int64   // number of repeated ids: Issued minus the number of different ids
	Examples   []int64 // the smallest ids recorded more than once, at most 10
	Invalid    int64   // number of ids below 1
	Min, Max   int64   // 0 if no id was recorded
	Missing    int64   // ids between Min and Max that were not recorded; gaps are normal
}

// Report sorts and counts the ids. No recorder may be in use meanwhile.
func (c *Collector) Report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	var all []span
	for _, r := range c.recorders {
		all = append(all, r.spans...)
	}
	slices.SortFunc(all, func(a, b span) int { return cmp.Compare(a.first, b.first) })
	var rep Report
	for i, s := range all {
		rep.Issued += s.last - s.first + 1
		if s.first < 1 {
			rep.Invalid += min(s.last, 0) - s.first + 1
		}
		if i == 0 {
			rep.Min, rep.Max = s.first, s.last
			continue
		}
		if s.first > rep.Max {
			rep.Missing += s.first - rep.Max - 1
		}
		for id := s.first; id <= min(s.last, rep.Max); id++ {
			if len(rep.Examples) == 10 {
				break
			}
			if !slices.Contains(rep.Examples, id) {
				rep.Examples = append(rep.Examples, id)
			}
		}
		rep.Duplicates += max(0, min(s.last, rep.Max)-s.first+1)
		rep.Max = max(rep.Max, s.last)
	}
	return rep
}

// Verify fails the test if an id was issued twice or is below 1, and returns the report.
func (c *Collector) Verify(t testing.TB) Report {
	t.Helper()
	rep := c.Report()
	if rep.Duplicates > 0 {
		t.Errorf("%d of %d ids were issued before, among them %d", rep.Duplicates, rep.Issued, rep.Examples)
	}
	if rep.Invalid > 0 {
		t.Errorf("%d of %d ids are below 1, the least is %d", rep.Invalid, rep.Issued, rep.Min)
	}
	return rep
}
