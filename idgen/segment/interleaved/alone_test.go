package interleaved_test

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/interleaved"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/leaftest"
)

// safeBuffer is one that may be written to at the same time.
type safeBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *safeBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *safeBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}

// logged opens stores that tell a log.
func logged(t *testing.T, size int64, dsns ...string) (*interleaved.Store, *safeBuffer) {
	t.Helper()
	var tables []interleaved.Table
	for _, dsn := range dsns {
		tables = append(tables, interleaved.Table{DB: pool(t, dsn), Name: "leaf_alloc"})
	}
	out := new(safeBuffer)
	s := interleaved.New(tables, true, slog.New(slog.NewTextHandler(out, nil)))
	if size > 0 {
		s.SetBlockSize(size)
	}
	t.Cleanup(func() { s.Close() })
	return s, out
}

// repair runs the way out that an error gives.
func repair(t *testing.T, db *sqlx.DB, err error) {
	t.Helper()
	odd, ok := errors.AsType[*segment.RowError](err)
	if !ok {
		t.Fatal(err)
	}
	if _, text, _ := strings.Cut(odd.Fix, ": "); text != "UPDATE `leaf_alloc` SET step = 0 WHERE biz_tag = 'a'" {
		t.Fatal(err)
	} else {
		db.MustExec(text)
	}
}

// rowError is what one store's row says to who asks for it.
func rowError(t *testing.T, s *interleaved.Store, k int) error {
	t.Helper()
	errs, err := s.RowErrors(t.Context(), k)
	if err != nil || len(errs) != 1 {
		t.Fatal(errs, err)
	}
	return errs[0]
}

// A process names the first of three stores alone, and somebody gives that row a step, from
// which a Java Leaf draws then. Ids come from the other stores, and once the row has its
// step 0 again from all of them; none comes twice.
func TestDrawnAlone(t *testing.T) {
	dsns := three(t)
	dbs := databases(t, dsns)
	ensure(t, interleave(t, 0, dsns...), "a", 1, 10)
	var ids idcheck.Collector
	var logs []*safeBuffer
	var stores []*interleaved.Store
	var gs []*segment.Generator
	for range 2 {
		s, out := logged(t, 0, dsns...)
		g := segment.New(s, "a", nil)
		t.Cleanup(func() { g.Close() })
		stores, gs, logs = append(stores, s), append(gs, g), append(logs, out)
	}
	r := ids.Recorder()
	draw := func(n int, block func(int64) bool) {
		t.Helper()
		for range n {
			for _, g := range gs {
				id, err := g.Next(t.Context(), 1)
				if err != nil {
					t.Fatal(err)
				}
				if r.Add(id, 1); !block(id / 100_000_000) {
					t.Fatal(id)
				}
			}
		}
	}
	first, others := func(b int64) bool { return b == 0 }, func(b int64) bool { return b > 0 }
	draw(50, first)

	single := segment.New(segment.NewAllocStore(dbs[0], "leaf_alloc"), "a", nil)
	defer single.Close()
	java := &leaftest.Segments{DB: pool(t, dsns[0]).DB}
	javas := func(n int) {
		t.Helper()
		for range n {
			id, err := java.Next(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			r.Add(id, 1)
		}
	}
	for _, step := range []int{0, 1000} {
		dbs[0].MustExec("UPDATE leaf_alloc SET step = ?", step)
		id, err := single.Next(t.Context(), 1)
		if !is[*segment.RowError](err) || !strings.Contains(err.Error(), "its row is that of store 1 of 3") || !strings.Contains(err.Error(), "name all 3 of them in leafStore") || strings.Contains(err.Error(), "UPDATE") {
			t.Errorf("alone, step %d: %d, %v", step, id, err)
		}
	}
	javas(1500)
	for range 3000 { // what was fetched before
		if draw(1, func(int64) bool { return true }); gs[0].Stats().Current.Start > 100_000_000 && gs[1].Stats().Current.Start > 100_000_000 {
			break
		}
	}
	draw(500, others)
	for i, out := range logs {
		if text := out.String(); strings.Count(text, `"leafsql: a store fails, and ids come from the others" tag=a store=1 of=3`) != 1 || !strings.Contains(text, "SET step = 0") {
			t.Errorf("log %d:\n%s", i, text)
		}
	}
	fresh := interleave(t, 0, dsns...)
	if got, err := fresh.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err != nil || got.Start < 100_000_000 {
		t.Error("a process that starts now: ", got, err)
	} else {
		r.Add(got.Start, int(got.End-got.Start))
	}

	repair(t, dbs[0], rowError(t, fresh, 0))
	again := interleave(t, 0, dsns...)
	back := 0
	for range 100 {
		javas(20) // which goes on by the step that it had
		got, err := again.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10})
		if err != nil {
			t.Fatal(err)
		}
		if r.Add(got.Start, 10); got.Start < 100_000_000 {
			back++
		}
	}
	if back == 0 {
		t.Error("repaired, the store gives no ids")
	}
	for began := time.Now(); ; time.Sleep(100 * time.Millisecond) { // when it is looked at again
		if draw(100, func(int64) bool { return true }); strings.Contains(logs[0].String(), "a store answers again") {
			break
		}
		if time.Since(began) > 10*time.Second {
			t.Fatal(logs[0])
		}
	}
	for _, s := range stores {
		s.Close()
	}
	ids.Verify(t)
}

// Who drew from a row alone took it to a later epoch than the others are in. It is noted by
// them before ids come from the row again, so that its loss makes none come twice.
func TestDrawnAloneIntoALaterEpoch(t *testing.T) {
	for name, idle := range map[string]bool{"by a new process": false, "by one that noticed nothing": true} {
		t.Run(name, func(t *testing.T) {
			for range 20 {
				if drawnIntoALaterEpoch(t, idle) {
					return
				}
			}
			t.Error("the first store never gave ids in time")
		})
	}
}

// drawnIntoALaterEpoch plays that once. It reports false where the first store was too slow, so that
// ids came from the other one, and nothing was noted.
func drawnIntoALaterEpoch(t *testing.T, idle bool) bool {
	dsns := three(t)[:2]
	dbs := databases(t, dsns)
	s := interleave(t, 1000, dsns...)
	ensure(t, s, "a", 1, 10)
	var ids idcheck.Collector
	r := ids.Recorder()
	fetch := func(s *interleaved.Store) segment.Range {
		t.Helper()
		got, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10})
		if err != nil {
			t.Fatal(err)
		}
		r.Add(got.Start, 10)
		return got
	}
	fetch(s)
	dbs[0].MustExec("UPDATE leaf_alloc SET step = 10, max_id = 4100") // the first store's third block
	r.Add(4001, 99)
	err := rowError(t, interleave(t, 1000, dsns...), 0)
	repair(t, dbs[0], err)
	if !idle {
		s = interleave(t, 1000, dsns...)
	}
	if got := fetch(s); got.Start != 4100 {
		return false
	}
	s.Close()
	dbs[0].MustExec("DELETE FROM leaf_alloc")
	s = interleave(t, 1000, dsns...)
	ensure(t, s, "a", 1, 10)
	for range 250 {
		fetch(s)
	}
	ids.Verify(t)
	return true
}

// Nobody can tell whether who drew from a row alone passed the other stores' blocks on the
// way: they give no ids of the epochs that it has left.
func TestDrawnAlonePassesOthers(t *testing.T) {
	for _, n := range []int{2, 3} {
		dsns := three(t)[:n]
		dbs := databases(t, dsns)
		ensure(t, interleave(t, 1000, dsns...), "a", 1, 10)
		fetch := func(s *interleaved.Store) (segment.Range, error) {
			return s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10})
		}
		old := open(t, 1000, false, dsns...)
		dbs[0].MustExec("RENAME TABLE leaf_alloc TO away")
		if got, err := fetch(old); err != nil || got.Start/1000 != 1 {
			t.Fatal(got, err)
		}
		dbs[0].MustExec("RENAME TABLE away TO leaf_alloc")
		dbs[0].MustExec("UPDATE leaf_alloc SET step = 1000, max_id = 500 + 1000 * 3 * ?", n)
		for name, s := range map[string]*interleaved.Store{"new": interleave(t, 1000, dsns...), "old": old} {
			for k := range 3 {
				if k > 0 && name == "old" {
					time.Sleep(1200 * time.Millisecond) // a fetch has the first store looked at
				}
				got, err := fetch(s)
				switch {
				case k < 2 && name == "old":
				case n == 2 && (err == nil || !strings.Contains(err.Error(), "SET step = 0")):
					t.Errorf("%s, without another one: %v, %v", name, got, err)
				case n == 3 && (err != nil || got.Start < 9000):
					t.Errorf("%s: %v, %v", name, got, err)
				}
			}
		}
		repair(t, dbs[0], rowError(t, old, 0))
		if got, err := fetch(interleave(t, 1000, dsns...)); err != nil || got.Start < int64(3000*n) {
			t.Errorf("repaired: %v, %v", got, err)
		}
	}
}

// Rows from which others took ids of the other stores, or of which nobody knows what they
// gave out, stop all.
func TestDrawnAloneBeyondRepair(t *testing.T) {
	for name, set := range map[string]string{
		"in another store's block": "step = 10, max_id = 1500",
		"a new row":                "step = 10, description = CONCAT(SUBSTRING_INDEX(description, ', set ', 1), ', set new')",
	} {
		t.Run(name, func(t *testing.T) {
			dsns := three(t)
			dbs := databases(t, dsns)
			ensure(t, interleave(t, 1000, dsns...), "a", 1, 10)
			dbs[0].MustExec("UPDATE leaf_alloc SET " + set)
			s, out := logged(t, 1000, dsns...)
			if got, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); !is[*segment.RowError](err) || !strings.Contains(err.Error(), "stop all processes") || strings.Contains(err.Error(), "UPDATE") {
				t.Error(got, err)
			}
			if err := rowError(t, s, 0); !strings.Contains(err.Error(), "stop all processes") {
				t.Error(err)
			}
			if s.Close(); out.String() != "" { // no ids come from the others
				t.Error(out)
			}
		})
	}
	// Nor does the SQL for a store that is alone mend a row of several.
	dsns := three(t)
	dbs := databases(t, dsns)
	ensure(t, interleave(t, 1000, dsns...), "a", 1, 10)
	for _, db := range dbs {
		db.MustExec("UPDATE leaf_alloc SET max_id = -5")
	}
	if got, err := interleave(t, 1000, dsns...).Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); !is[*segment.RowError](err) || !strings.Contains(err.Error(), "max_id is -5; delete its row there") {
		t.Error(got, err)
	}
}

// The log says that ids come from the other stores where they do.
func TestLog(t *testing.T) {
	const line = "a store fails, and ids come from the others"
	dsns := three(t)
	dbs := databases(t, dsns)
	ensure(t, interleave(t, 0, dsns...), "a", 1, 10)
	fetch := func(s *interleaved.Store) error {
		_, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10})
		return err
	}
	s, out := logged(t, 0, dsns[0], dsns[2], dsns[1])
	for range 3 {
		if err := fetch(s); !is[*segment.RowError](err) {
			t.Error(err)
		}
	}
	if s.Close(); out.String() != "" {
		t.Errorf("in another order no ids come:\n%s", out)
	}

	s, out = logged(t, 0, dsns...)
	for _, db := range dbs {
		db.MustExec("UPDATE leaf_alloc SET step = 10") // as if it were away
	}
	for range 3 {
		if err := fetch(s); err == nil {
			t.Error("ids come from rows that were drawn from alone")
		}
	}
	if out.String() != "" {
		t.Errorf("without any store:\n%s", out)
	}
	for _, db := range dbs[1:] {
		db.MustExec("UPDATE leaf_alloc SET step = 0")
	}
	for range 3 {
		if err := fetch(s); err != nil {
			t.Error(err)
		}
	}
	if s.Close(); strings.Count(out.String(), line+`" tag=a store=1 of=3`) != 1 || strings.Contains(out.String(), "store=2") {
		t.Errorf("of three, one away:\n%s", out)
	}
}
