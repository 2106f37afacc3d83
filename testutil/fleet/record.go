package fleet

import (
	"slices"
	"strings"
	"sync"
	"time"
)

// A Kind is a kind of statement that a process sends.
type Kind int

// The kinds of statements.
const (
	Insert       Kind = iota // the application's INSERT, or any other statement on its connections
	Connect                  // opens a connection of an internal pool, with its SET
	Refuse                   // a connection that the server refuses because of its limit
	ReadRow                  // reads a row of leaf_alloc
	Fetch                    // takes a range from a row of leaf_alloc
	ReadWorker               // reads about worker ids
	WriteWorker              // takes or renews a worker id, or prepares a row of leaf_worker
	ReadIdentity             // reads the variables that identify the server
	ReadCatalog              // looks up tables, or reads them again
	ReadKey                  // reads the highest key of a table
	kinds
)

// kindOf returns the kind of a statement.
func kindOf(text string) Kind {
	for _, k := range []struct {
		part string
		kind Kind
	}{
		{"UPDATE `leaf_alloc`", Fetch}, {"FROM `leaf_alloc`", ReadRow}, {"SET NAMES utf8mb4, autocommit", Connect},
		{"UPDATE `leaf_worker`", WriteWorker}, {"INSERT INTO `leaf_worker`", WriteWorker}, {"FROM `leaf_worker`", ReadWorker},
		{"TIMESTAMPDIFF(", ReadWorker}, {"SELECT @@autocommit, ", ReadWorker},
		{"SHOW GLOBAL VARIABLES", ReadIdentity}, {"information_schema.columns", ReadCatalog}, {"SELECT (SELECT MAX(", ReadKey},
	} {
		if strings.Contains(text, k.part) {
			return k.kind
		}
	}
	return Insert
}

// isStore reports whether statements of a kind go to the server of leaf_alloc and leaf_worker.
func (k Kind) isStore() bool { return k >= ReadRow && k <= ReadIdentity }

// A Record counts the statements of a fleet in each second since it was created. It is safe for concurrent use.
type Record struct {
	began time.Time

	mu      sync.Mutex
	counts  [kinds][]int
	open    [2]int           // open connections of the pools for tables and for leaf_alloc
	most    [2]int           // highest values of open
	changed [2]time.Time     // last change of open
	time    [2]time.Duration // sum of the times for which connections were open
	average [2]float64       // average numbers of open connections, set by Fleet.Stop
	waits   []time.Duration  // times for which INSERTs waited for ids, or for an error, if longer than a millisecond
	failed  int              // INSERTs that got no id
	issued  int64            // ids that rows got
}

// NewRecord returns an empty record.
func NewRecord() *Record { return &Record{began: time.Now()} }

// note counts a statement.
func (r *Record) note(k Kind) {
	r.mu.Lock()
	defer r.mu.Unlock()
	second := int(time.Since(r.began) / time.Second)
	for len(r.counts[k]) <= second {
		r.counts[k] = append(r.counts[k], 0)
	}
	r.counts[k][second]++
}

// noteInsert records the outcome of an INSERT of the application.
func (r *Record) noteInsert(took time.Duration, rows int, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		r.failed++
	} else {
		r.issued += int64(rows)
	}
	if took > time.Millisecond {
		r.waits = append(r.waits, took)
	}
}

// The pools of a process.
const (
	noPool     = iota - 1 // the application's, or not known yet
	tablesPool            // for tables
	storePool             // for leaf_alloc and leaf_worker
)

// noteOpen records that the number of open connections of a pool changed by n.
func (r *Record) noteOpen(pool, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.time[pool] += time.Duration(r.open[pool]) * time.Since(r.changed[pool])
	r.changed[pool] = time.Now()
	r.open[pool] += n
	r.most[pool] = max(r.most[pool], r.open[pool])
}

// Open returns the number of open connections to the server of leaf_alloc.
func (r *Record) Open() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.open[storePool]
}

// Count returns the number of statements of some kinds from one time after the start to another, and the number in
// the busiest second.
func (r *Record) Count(from, to time.Duration, of ...Kind) (all, busiest int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for s := int(from / time.Second); s < int(to/time.Second); s++ {
		sum := 0
		for _, k := range of {
			if s < len(r.counts[k]) {
				sum += r.counts[k][s]
			}
		}
		all, busiest = all+sum, max(busiest, sum)
	}
	return all, busiest
}

// Wait returns the wait of the n-th quantile of all INSERTs that waited, such as 1 for the longest wait.
func (r *Record) Wait(quantile float64) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.waits) == 0 {
		return 0
	}
	slices.Sort(r.waits)
	return r.waits[int(quantile*float64(len(r.waits)-1))]
}

// Longest returns the wait of the n-th slowest INSERT, from 1, or 0 if fewer INSERTs waited longer than a millisecond.
func (r *Record) Longest(n int) time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	if n > len(r.waits) {
		return 0
	}
	slices.Sort(r.waits)
	return r.waits[len(r.waits)-n]
}

// finish computes the average numbers of open connections since the start.
func (r *Record) finish() {
	for pool := range r.average {
		r.noteOpen(pool, 0)
		r.average[pool] = float64(r.time[pool]) / float64(time.Since(r.began))
	}
}
