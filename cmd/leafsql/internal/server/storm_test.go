//go:build storm

package server

import (
	"context"
	"flag"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/stopwatch"
)

var away = flag.Duration("away", 20*time.Second, "how long the database is away in TestStormDatabaseAway")

// TestStormDatabaseAway: 64 clients that continue during an outage get only 503, each in time, and ids soon
// after the outage.
func TestStormDatabaseAway(t *testing.T) {
	for name, outage := range outages {
		t.Run(name, func(t *testing.T) {
			_, dsn := createDatabase(t, 200, "orders", "other")
			proxy, dsn := startNetProxy(t, dsn)
			const limit = time.Second
			s, server := startServer(t, Config{DSN: dsn, Timeout: limit})
			orders := server + "/api/segment/get/orders"
			s.serveFromMemory(t, server, func() error { return outage.begin(proxy) })
			clock := stopwatch.Start(t)
			var longest atomic.Int64
			var refused atomic.Int64
			var over atomic.Bool // the outage is over
			ctx, stop := context.WithCancel(t.Context())
			var wg sync.WaitGroup
			for range 64 {
				wg.Go(func() {
					for ctx.Err() == nil {
						asked := clock()
						a, err := sendRequest(t.Context(), "GET", orders)
						if took := clock() - asked; took.Nanoseconds() > longest.Load() {
							longest.Store(took.Nanoseconds())
						}
						if err != nil || a.code == 200 && !over.Load() {
							t.Errorf("answer = %d %s, %v, want 503 during the outage", a.code, a.body, err)
						}
						if a.code == 503 {
							refused.Add(1)
						}
					}
				})
			}
			time.Sleep(*away)
			over.Store(true)
			back := clock()
			if err := outage.end(proxy); err != nil {
				t.Fatal(err)
			}
			waitFor(t, "ids again", func() bool { return get(t, orders).code == 200 })
			again := clock() - back
			stop()
			wg.Wait()
			t.Logf("away for %v: %d answers 503, the longest after %v (limit %v); ids again after %v", *away, refused.Load(), time.Duration(longest.Load()), limit, again)
			if refused.Load() == 0 || time.Duration(longest.Load()) > limit+5*time.Second || again > 8*time.Second {
				t.Errorf("refused = %d, longest answer %v, ids again after %v, want some refused, at most %v and 8s", refused.Load(), time.Duration(longest.Load()), again, limit+5*time.Second)
			}
		})
	}
}
