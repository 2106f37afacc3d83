package fleet

import (
	"testing"
	"testing/synctest"
	"time"
)

// run runs a fleet in virtual time and checks that no id was issued twice.
func run(t *testing.T, cfg Config, script func(s *Server)) (s *Server) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		s = NewServer(cfg)
		f := Start(cfg, s, s.Record)
		script(s)
		f.Stop()
		for tag := range f.IDs {
			f.IDs[tag].Verify(t)
		}
	})
	return s
}

// lasts returns a script that waits.
func lasts(d time.Duration) func(*Server) { return func(*Server) { time.Sleep(d) } }

func fleetOf(processes, share, tags int) Config {
	return Config{Processes: processes, Share: share, Tags: tags, Rate: 1, Batch: 1, Within: time.Second, Seed: 1, Costs: Measured}
}

// storeKinds are the kinds of statements at the server of leaf_alloc.
var storeKinds = []Kind{Connect, Refuse, ReadRow, Fetch, ReadWorker, WriteWorker, ReadIdentity}

// TestStartCostsFewStatements: if processes start in the same second, each tag costs one read and at most four fetches in
// the first minute.
func TestStartCostsFewStatements(t *testing.T) {
	s := run(t, fleetOf(50, 1, 10), lasts(time.Minute))
	reads, _ := s.Count(0, time.Minute, ReadRow)
	fetches, _ := s.Count(0, time.Minute, Fetch)
	if reads != 500 || fetches > 4*500 || s.failed > 0 {
		t.Errorf("%d reads, %d fetches and %d failed INSERTs for 500 generators, want 500 reads, at most 2000 fetches and no failure", reads, fetches, s.failed)
	}
}

// TestRefreshesAreSpread: processes that start in the same second do not read their tables again in the same second.
func TestRefreshesAreSpread(t *testing.T) {
	s := run(t, fleetOf(100, 1, 1), lasts(3*time.Minute))
	all, busiest := s.Count(time.Minute, 3*time.Minute, ReadCatalog)
	if all < 2*100 || busiest > 15 {
		t.Errorf("%d refreshes in two minutes, %d of them in one second, want at least 200, and at most 15 in a second", all, busiest)
	}
}

// TestRenewalsAreSpread: processes that take worker ids in the same second do not renew them in the same second later.
func TestRenewalsAreSpread(t *testing.T) {
	cfg := fleetOf(100, 1, 1)
	cfg.Snowflake = true
	s := run(t, cfg, lasts(5*time.Minute))
	all, busiest := s.Count(3*time.Minute, 5*time.Minute, WriteWorker)
	if all < 12*100 || all > 17*100 || busiest > 29 {
		t.Errorf("%d renewals in two minutes, %d of them in one second, want 1200 … 1700, and at most 29 in a second", all, busiest)
	}
}

// TestIdleConnectionsAreClosed: a process that fetches rarely holds no connection to leaf_alloc in between.
func TestIdleConnectionsAreClosed(t *testing.T) {
	cfg := fleetOf(20, 1, 10)
	cfg.Batch = 20
	s := run(t, cfg, lasts(40*time.Minute))
	if s.average[tablesPool] > 8 || s.average[storePool] > 3.2 {
		t.Errorf("average connections of 20 processes = %.1f for tables, %.1f to leaf_alloc, want at most 8 and 3.2", s.average[tablesPool], s.average[storePool])
	}
}

// TestShareEqualsWhole: a fifth of a fleet on a server that is five times slower waits as long as the whole fleet.
func TestShareEqualsWhole(t *testing.T) {
	whole, fifth := run(t, fleetOf(300, 1, 1), lasts(9*time.Second)), run(t, fleetOf(300, 5, 1), lasts(9*time.Second))
	all, _ := whole.Count(0, 9*time.Second, storeKinds...)
	part, _ := fifth.Count(0, 9*time.Second, storeKinds...)
	if ratio := float64(all) / float64(5*part); ratio < 0.95 || ratio > 1.05 {
		t.Errorf("%d statements of the whole fleet, %d of a fifth, want a fifth within 5 %%", all, part)
	}
}

// TestFailOverMovesEachRowOnce: after a fail-over all processes get ids again, and each row is moved by a margin once.
func TestFailOverMovesEachRowOnce(t *testing.T) {
	s := run(t, fleetOf(50, 1, 10), func(s *Server) {
		time.Sleep(3 * time.Second)
		s.FailOver(2 * time.Second)
		time.Sleep(time.Minute)
	})
	if s.jumps != 10 {
		t.Errorf("%d moves by a margin, want one for each of 10 rows", s.jumps)
	}
	for tag, r := range s.rows {
		if r.maxID < 1<<36 {
			t.Errorf("max_id of %s = %d, want it above a margin", tag, r.maxID)
		}
	}
}

// TestServerSlowsDownWithLoad: the costs of a statement rise with the number of statements in progress.
func TestServerSlowsDownWithLoad(t *testing.T) {
	measured := []Costs{{InProgress: 10, Row: 100}, {InProgress: 20, Row: 200}, {InProgress: 40, Row: 800}}
	for n, want := range map[int]time.Duration{0: 100, 10: 100, 15: 150, 20: 200, 30: 500, 40: 800, 99: 800} {
		if got := costsFor(n, measured).Row; got != want {
			t.Errorf("costs with %d statements in progress: Row = %d, want %d", n, got, want)
		}
	}
}
