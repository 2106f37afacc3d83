package docs

import (
	"context"
	"database/sql"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
)

// startWriter starts a program that writes through an address until the end. It shares its ranges with no other
// program.
func (r *runBook) startWriter(addr string) {
	r.t.Helper()
	r.apps++
	dsn := fmt.Sprintf("app:secret@tcp(%s)/shop?leafTables=orders,events:id:snowflake&timeout=2s&readTimeout=20s&connectionAttributes=app:%d", addr, r.apps)
	db, err := sql.Open("mysql-leaf", dsn)
	if err != nil {
		r.t.Fatal(err)
	}
	events, early := r.events.Recorder(), r.apps <= 3 // those that start after the fail-over wait for a worker id
	r.run.Go(func() {
		defer db.Close()
		defer func() {
			stats, err := driver.StatsOf(db)
			if err != nil {
				r.t.Error(err)
			}
			for _, tag := range stats.Tags {
				r.jumps.Add(tag.Jumps)
			}
		}()
		for n := 0; r.ctx.Err() == nil; n++ {
			ctx, cancel := context.WithTimeout(r.ctx, 20*time.Second)
			res, err := db.ExecContext(ctx, "INSERT INTO orders (customer, total) VALUES (?, ?)", addr, n)
			if err == nil {
				id, _ := res.LastInsertId()
				r.orders.add(id)
			} else if r.ctx.Err() == nil {
				r.orders.fail(err)
				time.Sleep(20 * time.Millisecond)
			}
			if early && n%10 == 0 {
				if res, err := db.ExecContext(ctx, "INSERT INTO events (what) VALUES ('order')"); err == nil {
					id, _ := res.LastInsertId()
					events.Add(id, 1)
				}
			}
			cancel()
			time.Sleep(5 * time.Millisecond)
		}
	})
}

// shopOrders are the ids of orders that were acknowledged.
type shopOrders struct {
	mu       sync.Mutex
	ids      map[int64]bool
	twice    []int64
	highest  int64
	failures int
	failed   map[string]int
	n        atomic.Int64
}

func (o *shopOrders) add(id int64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.ids == nil {
		o.ids = map[int64]bool{}
	}
	if o.ids[id] {
		o.twice = append(o.twice, id)
	}
	o.ids[id] = true
	o.highest = max(o.highest, id)
	o.n.Add(1)
}

func (o *shopOrders) fail(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.failed == nil {
		o.failed = map[string]int{}
	}
	o.failures++
	o.failed[err.Error()]++
}

func (o *shopOrders) count() int64 { return o.n.Load() }

func (o *shopOrders) awaitCount(t *testing.T, n int64) {
	t.Helper()
	o.await(t, func() bool { return o.count() >= n })
}

// awaitAbove waits for an id above a number.
func (o *shopOrders) awaitAbove(t *testing.T, n int64) {
	t.Helper()
	o.await(t, func() bool {
		o.mu.Lock()
		defer o.mu.Unlock()
		return o.highest > n
	})
}

func (o *shopOrders) await(t *testing.T, reached func() bool) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); !reached(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			o.mu.Lock()
			defer o.mu.Unlock()
			t.Fatalf("%d orders after a minute, the highest id is %d; errors: %v", o.count(), o.highest, o.failed)
		}
	}
}
