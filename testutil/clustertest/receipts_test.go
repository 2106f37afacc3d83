//go:build unix

package clustertest_test

import (
	"sync"
	"time"

	"github.com/leafsql/leafsql/testutil/idcheck"
)

// A receipt is an acknowledged INSERT. Its rows n, n+1, … of a writer have the ids first, first+1, …
type receipt struct {
	writer, n, rows int
	first           int64
}

// receipts are the acknowledged statements of all writers of a table. They are safe for concurrent use.
type receipts struct {
	mu  sync.Mutex
	all []receipt
}

// storedRows has the id of each stored row, by writer and n. It is 0 if there is no such row.
type storedRows [][]int64

func (s *storedRows) add(writer, n int, id int64) {
	for len(*s) <= writer {
		*s = append(*s, nil)
	}
	ids := (*s)[writer]
	for len(ids) <= n {
		ids = append(ids, 0)
	}
	ids[n], (*s)[writer] = id, ids
}

func (s storedRows) id(writer, n int) int64 {
	if writer >= len(s) || n >= len(s[writer]) {
		return 0
	}
	return s[writer][n]
}

// A comparison is the result of comparing stored rows with receipts.
type comparison struct {
	rows  map[int]int // acknowledged rows by writer
	lost  map[int]int // acknowledged rows that are not stored, by writer
	wrong int         // rows that are stored with another id than the acknowledged one
	ids   idcheck.Report
}

// compare compares the stored rows with the receipts. The ids of lost rows count as issued, too.
func (r *receipts) compare(stored storedRows) comparison {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids idcheck.Collector
	c := comparison{rows: make(map[int]int), lost: make(map[int]int)}
	for _, rows := range stored {
		issued := ids.Recorder()
		for _, id := range rows {
			if id != 0 {
				issued.Add(id, 1)
			}
		}
	}
	lost := ids.Recorder()
	for _, one := range r.all {
		c.rows[one.writer] += one.rows
		for i := range one.rows {
			switch want, got := one.first+int64(i), stored.id(one.writer, one.n+i); got {
			case want:
			case 0:
				c.lost[one.writer]++
				lost.Add(want, 1)
			default:
				c.wrong++
				lost.Add(want, 1)
			}
		}
	}
	c.ids = ids.Report()
	return c
}

// outageGap is a pause between successes that counts as an outage of the engine.
const outageGap = 250 * time.Millisecond

// A span is the time between two successes, on a clock that begins with the run.
type span struct{ begin, end time.Duration }

// gaps returns the pauses between successive times, from begin to end, that are longer than limit.
func gaps(times []time.Duration, begin, end, limit time.Duration) (long []span) {
	for _, at := range times {
		if at-begin > limit {
			long = append(long, span{begin, at})
		}
		begin = at
	}
	if end-begin > limit {
		long = append(long, span{begin, end})
	}
	return long
}

// longestSilence returns the longest time without a success of a writer while a plain writer had successes. outages are the
// plain writer's outages, in order.
func longestSilence(silences, outages []span) (longest time.Duration) {
	for _, s := range silences {
		begin := s.begin
		for _, o := range outages {
			if o.end < begin || o.begin > s.end {
				continue
			}
			longest = max(longest, o.begin-begin)
			begin = o.end
		}
		longest = max(longest, s.end-begin)
	}
	return longest
}
