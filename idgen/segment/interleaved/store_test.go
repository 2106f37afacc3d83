package interleaved_test

import (
	"errors"
	"fmt"
	"math"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

func TestStore(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			segmenttest.Run(t, func(t *testing.T) segmenttest.Fixture {
				dsns := []string{server.Database(t), server.Database(t), server.Database(t)}
				return segmenttest.Fixture{
					Several: true,
					Open:    func() segment.Store { return open(t, 0, false, dsns...) },
					Put: func(row segment.Row) error {
						return interleave(t, 0, dsns...).Ensure(t.Context(), row.Tag, row.MaxID, row.Step)
					},
					Delete: func(tag string) error {
						for _, db := range databases(t, dsns) {
							db.MustExec("DELETE FROM leaf_alloc WHERE biz_tag = ?", tag)
						}
						return nil
					},
				}
			})
		})
	}
}

// The step is in the rows' descriptions; what cannot be used there is refused.
func TestRows(t *testing.T) {
	ctx := t.Context()
	dsns := three(t)
	dbs := databases(t, dsns)
	s := interleave(t, 1000, dsns...)
	if err := s.Ensure(ctx, "a", 1, 101); !is[*segment.RowError](err) {
		t.Error(err)
	}
	ensure(t, s, "a", 1, 10)
	set := func(query string) {
		t.Helper()
		for _, db := range dbs {
			db.MustExec("UPDATE leaf_alloc SET " + query)
		}
	}
	set("description = REPLACE(description, 'step 10', 'step 20')")
	if r, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 10, Step: 10}); err != nil || r.Step != 20 || r.Start != r.End {
		t.Error(r, err)
	}
	if r, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 20, Step: 20}); err != nil || r.Step != 20 || r.End != r.Start+20 {
		t.Error(r, err)
	}
	if r, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 1000}); !is[*idgen.CountError](err) {
		t.Error(r, err)
	}
	for _, query := range []string{"description = REPLACE(description, 'step 20', 'step 0')", "step = 10", "max_id = 2500 + max_id % 1000", "description = NULL"} {
		before := make([]struct {
			MaxID       int64  `db:"max_id"`
			Description string `db:"description"`
		}, len(dbs))
		for k, db := range dbs {
			if err := db.Get(&before[k], "SELECT max_id, description FROM leaf_alloc"); err != nil {
				t.Fatal(err)
			}
		}
		set(query)
		if r, err := interleave(t, 1000, dsns...).Fetch(ctx, segment.Request{Tag: "a", N: 10}); !is[*segment.RowError](err) {
			t.Errorf("%s: %v, %v", query, r, err)
		}
		for k, db := range dbs {
			db.MustExec("UPDATE leaf_alloc SET max_id = ?, step = 0, description = ?", before[k].MaxID, before[k].Description)
		}
	}
	// All stores go back: who fetched from them refuses that.
	set("max_id = max_id - 15 WHERE max_id % 1000 > 20")
	if r, err := s.Fetch(ctx, segment.Request{Tag: "a", N: 10, Step: 20}); err != nil || r.Start < 1000 {
		t.Error("the store that went back: ", r, err)
	}
	// The end.
	if err := s.Ensure(ctx, "z", math.MaxInt64-500, 10); !errors.Is(err, idgen.ErrExhausted) {
		t.Error(err)
	}
	ensure(t, s, "y", 1, 10)
	if r, err := s.Fetch(ctx, segment.Request{Tag: "y", N: 10, Floor: math.MaxInt64 - 500}); !errors.Is(err, idgen.ErrExhausted) {
		t.Error(r, err)
	}
}

// Ids begin at 1, those of a call are consecutive, and any two members may be away once
// all are in one epoch.
func TestMembersAway(t *testing.T) {
	dsns := three(t)
	dbs := databases(t, dsns)
	s := open(t, 0, false, dsns...)
	for range 2 {
		ensure(t, s, "a", 1, 1000)
	}
	g := segment.New(s, "a", nil)
	defer g.Close()
	next := func(g *segment.Generator, n int, block int64) {
		t.Helper()
		for range 3 {
			if id, err := g.Next(t.Context(), n); err != nil || id/100_000_000 != block {
				t.Fatal(id, err)
			}
		}
	}
	if id, err := g.Next(t.Context(), 3); err != nil || id != 1 {
		t.Fatal(id, err)
	}
	next(g, 5, 0)
	dbs[0].MustExec("RENAME TABLE leaf_alloc TO away")
	other := segment.New(open(t, 0, false, dsns...), "a", nil)
	defer other.Close()
	next(other, 5, 1)
	dbs[1].MustExec("RENAME TABLE leaf_alloc TO away")
	next(g, 2000, 2)
	next(other, 2000, 2)
	dbs[0].MustExec("RENAME TABLE away TO leaf_alloc")
	dbs[2].MustExec("RENAME TABLE leaf_alloc TO away")
	last := segment.New(open(t, 0, false, dsns...), "a", nil)
	defer last.Close()
	next(last, 5, 0)
}

// Stores that were not named like that from the first are refused, and nobody else draws
// from their rows.
func TestOthers(t *testing.T) {
	dsns := three(t)
	dbs := databases(t, dsns)
	ensure(t, interleave(t, 0, dsns...), "a", 1, 1000)
	for name, others := range map[string][]string{
		"order": {dsns[1], dsns[0], dsns[2]},
		"fewer": dsns[:2],
		"more":  append(dsns[:3:3], mysqltest.Database(t)),
		"twice": {dsns[0], dsns[0], dsns[2]},
	} {
		s := interleave(t, 0, others...)
		for range 2 {
			for what, err := range map[string]error{
				"Ensure": s.Ensure(t.Context(), "a", 1, 1000),
				"Fits":   s.Fits(t.Context(), "a"),
				"Fetch":  func() error { _, err := s.Fetch(t.Context(), segment.Request{Tag: "a", N: 10}); return err }(),
			} {
				if !is[*segment.RowError](err) {
					t.Errorf("%s: %s: %v", name, what, err)
				}
			}
		}
	}
	if r, err := segment.NewAllocStore(dbs[1], "leaf_alloc").Fetch(t.Context(), segment.Request{Tag: "a", N: 10}); !is[*segment.RowError](err) {
		t.Error("one of them alone: ", r, err)
	}
	dbs[0].MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('b', 500, 10)") // Leaf's
	s := interleave(t, 0, dsns...)
	if r, err := s.Fetch(t.Context(), segment.Request{Tag: "b", N: 10}); !is[*segment.RowError](err) {
		t.Error("a row of Leaf's: ", r, err)
	}
	if err := s.Ensure(t.Context(), "b", 1, 10); !is[*segment.RowError](err) {
		t.Error("beside a row of Leaf's: ", err)
	}
	if _, err := s.Fetch(t.Context(), segment.Request{Tag: "c", N: 10}); !is[*segment.UnknownTagError](err) || strings.Contains(err.Error(), "INSERT") {
		t.Error("a tag without rows, which no INSERT adds: ", err)
	}
	for _, tag := range []string{"a", "c"} {
		if err := s.Fits(t.Context(), tag); err != nil {
			t.Errorf("the stores as they were named first: %s: %v", tag, err)
		}
	}
}

// A key that comes from elsewhere moves all stores: nobody gives ids up to it any more.
func TestKeys(t *testing.T) {
	dsns := three(t)
	ensure(t, interleave(t, 1000, dsns...), "a", 1, 10)
	var gs []*segment.Generator
	for k := range 3 { // each draws from another store
		order := interleave(t, 1000, dsns...)
		g := segment.New(order, "a", nil)
		defer g.Close()
		gs = append(gs, g)
		_ = k
	}
	highest := int64(0)
	for _, key := range []int64{5, 6, 7, 70, 999, 1000, 1001, 1500, 2999, 3000, 3001, 1_000_000, 1_000_001} {
		g := gs[key%3]
		if err := g.Skip(t.Context(), key); err != nil {
			t.Fatal(key, err)
		}
		highest = max(highest, key)
		for _, fresh := range []*segment.Generator{g, segment.New(interleave(t, 1000, dsns...), "a", nil)} {
			for range 25 {
				if id, err := fresh.Next(t.Context(), 1); err != nil || id <= highest {
					t.Fatalf("after key %d: %d, %v", highest, id, err)
				}
			}
		}
	}
}

// A key that came while the store it belongs to was away is not given out when it is back.
func TestKeyOfAMemberAway(t *testing.T) {
	dsns := three(t)
	dbs := databases(t, dsns)
	ensure(t, interleave(t, 1000, dsns...), "a", 1, 10)
	g := segment.New(open(t, 1000, false, dsns...), "a", nil)
	defer g.Close()
	if id, err := g.Next(t.Context(), 1); err != nil || id != 1 {
		t.Fatal(id, err)
	}
	dbs[0].MustExec("RENAME TABLE leaf_alloc TO away")
	for range 40 { // until ids come from the second store
		if _, err := g.Next(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
	}
	if err := g.Skip(t.Context(), 100); err != nil { // the first store's
		t.Fatal(err)
	}
	dbs[0].MustExec("RENAME TABLE away TO leaf_alloc")
	other := open(t, 1000, false, dsns...)
	for range 20 {
		if r, err := other.Fetch(t.Context(), segment.Request{Tag: "a", N: 10, Step: 10}); err != nil || r.Start <= 100 {
			t.Fatal(r, err)
		}
	}
}

// proxied leads dsns through proxies.
func proxied(t *testing.T, dsns []string) (proxies []*netfault.Proxy) {
	for k, dsn := range dsns {
		cfg, err := mysql.ParseDSN(dsn)
		if err != nil {
			t.Fatal(err)
		}
		proxies = append(proxies, netfault.Start(t, cfg.Addr))
		cfg.Addr = proxies[k].Addr()
		dsns[k] = cfg.FormatDSN()
	}
	return proxies
}

// The rows are read from all stores at the same time, so that silent ones leave the others their time.
func TestTagsAtOnce(t *testing.T) {
	dsns := three(t)
	proxies := proxied(t, dsns)
	s := interleave(t, 0, dsns...)
	ensure(t, s, "a", 1, 10)
	for k, db := range databases(t, dsns) {
		db.MustExec("INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES (?, 1, 0)", fmt.Sprint("in ", k))
	}
	for range 20 { // where the machine is too busy for one
		for _, proxy := range proxies {
			proxy.Filter(nil)
		}
		s.Tags(t.Context()) // connects
		all, over := make(chan struct{}), make(chan struct{})
		var asked atomic.Int32
		for _, proxy := range proxies {
			tell := sync.OnceFunc(func() {
				if asked.Add(1) == int32(len(proxies)) {
					close(all)
				}
			})
			proxy.Filter(func(dir netfault.Direction, _ []byte) netfault.Verdict {
				if dir == netfault.ToServer {
					tell()
					return netfault.Pass
				}
				select {
				case <-all:
				case <-over:
				}
				return netfault.Pass
			})
		}
		rows, err := s.Tags(t.Context())
		close(over)
		if err == nil && len(rows) == 1+len(proxies) {
			return
		}
	}
	t.Error("not all were asked before one had answered")
}

// Where a store falls silent the next one is asked at once, and keys pass within the 5 s that
// any of them has.
func TestSilentMember(t *testing.T) {
	dsns := three(t)
	proxies := proxied(t, dsns)
	s := interleave(t, 100_000, dsns...)
	ensure(t, s, "a", 1, 10)
	g := segment.New(s, "a", nil)
	defer g.Close()
	if _, err := g.Next(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	for k, proxy := range proxies {
		proxy.Drop(netfault.Both)
		took := stopwatch.Start(t)
		id, err := g.Next(t.Context(), 100)
		if err != nil || took() > 5*time.Second {
			t.Error(k, id, err, took())
		}
		took = stopwatch.Start(t)
		if err := g.Skip(t.Context(), id+1_000_000); err != nil || took() > 6*time.Second {
			t.Error(k, err, took())
		}
		proxy.Heal()
	}
}

// TestRowsMadeElsewhere: stores that had no row for a tag are looked at
// again at once, since another process may have made it, for keys to follow as well.
func TestRowsMadeElsewhere(t *testing.T) {
	dsns := three(t)
	late, early := open(t, 0, false, dsns...), interleave(t, 0, dsns...)
	ensure(t, early, "other", 1, 10)
	for _, raise := range []bool{false, true} {
		q := segment.Request{Tag: fmt.Sprintf("t-%v", raise), N: 1, Raise: raise, Floor: 5000}
		var unknown *segment.UnknownTagError
		if _, err := late.Fetch(t.Context(), q); !errors.As(err, &unknown) {
			t.Errorf("raise %v: without a row: %v", raise, err)
		}
		ensure(t, early, q.Tag, 1, 10)
		if _, err := late.Fetch(t.Context(), q); err != nil {
			t.Errorf("raise %v: %v", raise, err)
		}
	}
}
