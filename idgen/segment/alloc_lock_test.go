package segment_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// A row that another session has locked makes a fetch wait, but not longer than its context.
func TestAllocStoreWaitsForALockedRow(t *testing.T) {
	db := pool(t, mysqltest.Database(t), "")
	s := allocStore(t, db, "leaf_alloc")
	if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
		t.Fatal(err)
	}
	fetch(t, s, segment.Request{Tag: "a", N: 100})
	tx := db.MustBegin()
	tx.MustExec("UPDATE leaf_alloc SET max_id = max_id + 100")
	ctx, cancel := context.WithCancel(t.Context())
	type result struct {
		r   segment.Range
		err error
	}
	given, patient := make(chan result, 1), make(chan result, 1)
	go func() { r, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 10}); given <- result{r, err} }()
	go func() { r, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10}); patient <- result{r, err} }()
	cancel()
	if got := <-given; got.err == nil {
		t.Fatalf("got = %+v, want an error", got)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	// The canceled fetch may have taken its range or not.
	if got := <-patient; got.err != nil || got.r.Start != 201 && got.r.Start != 211 {
		t.Fatalf("got = %+v, want no error and (got.r.Start = 201 or got.r.Start = 211)", got)
	}
}

// If the server gives up waiting for a lock, the fetch waits for it again.
func TestAllocStoreRetriesAfterALockTimeout(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db := pool(t, server.Database(t), "innodb_lock_wait_timeout=1")
			s := allocStore(t, db, "waited_for")
			if err := s.Ensure(t.Context(), "a", 1, 10); err != nil {
				t.Fatal(err)
			}
			fetch(t, s, segment.Request{Tag: "a", N: 10})
			tx := db.MustBegin()
			defer tx.Rollback()
			tx.MustExec("UPDATE waited_for SET step = 20")
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			done := make(chan error)
			go func() {
				_, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 20})
				done <- err
			}()
			waits := map[string]bool{} // key: beginning of the wait
			for len(waits) < 2 {
				var began []string
				if err := db.SelectContext(ctx, &began, "SELECT CONCAT(trx_wait_started) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT' AND trx_query LIKE 'UPDATE `waited_for`%'"); err != nil {
					t.Fatal(err)
				}
				for _, at := range began {
					waits[at] = true
				}
				time.Sleep(150 * time.Millisecond) // the server updates the table only if it was not read for 100 ms
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
			if err := <-done; err != nil {
				t.Fatal(err)
			}
		})
	}
}

// A pool without connections and a missing table cause an immediate error.
func TestAllocStoreFailsImmediately(t *testing.T) {
	took := stopwatch.Start(t)
	db := pool(t, "root@tcp(127.0.0.1:1)/shop", "")
	if _, err := segment.NewAllocStore(db, "leaf_alloc").Fetch(t.Context(), segment.Request{Tag: "a", N: 1}); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Fatal(err)
	}
	db = pool(t, mysqltest.Database(t), "")
	if _, err := segment.NewAllocStore(db, "leaf_alloc").Fetch(t.Context(), segment.Request{Tag: "a", N: 1}); err == nil || !strings.Contains(err.Error(), "1146") {
		t.Fatal(err)
	}
	if took() > 4*time.Second { // less than another attempt would take
		t.Fatalf("took() = %v, want at most 4*time.Second", took())
	}
}
