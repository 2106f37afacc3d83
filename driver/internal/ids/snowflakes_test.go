package ids

import (
	"context"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

// TestSnowflakesAreShared: an equal source and layout share one generator with one worker
// id, which the last user gives back.
func TestSnowflakesAreShared(t *testing.T) {
	var opened atomic.Int32
	slots := &workertest.Memory{}
	cfg := SnowflakesConfig{
		Layout: snowflake.Leaf, Source: "a",
		Worker: worker.Config{Lease: time.Minute, NewRegistry: true, Logger: slog.New(slog.DiscardHandler)},
		Open: func(context.Context) (worker.Source, error) {
			opened.Add(1)
			return worker.Source{Slots: slots}, nil
		},
	}
	with := func(change func(*SnowflakesConfig)) *Snowflakes {
		t.Helper()
		c := cfg
		change(&c)
		s, err := OpenSnowflakes(c)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	a := with(func(*SnowflakesConfig) {})
	b := with(func(*SnowflakesConfig) {})
	if a != b {
		t.Error("equal sources have two generators, want one")
	}
	for name, other := range map[string]*Snowflakes{
		"another source":   with(func(c *SnowflakesConfig) { c.Source = "b" }),
		"another layout":   with(func(c *SnowflakesConfig) { c.Layout.Datacenter = 5 }),
		"a source of Go's": with(func(c *SnowflakesConfig) { c.Source = "" }),
	} {
		if other == a {
			t.Errorf("%s: generator is shared, want one of its own", name)
		}
		if err := other.Close(); err != nil || opened.Load() != 0 {
			t.Errorf("%s: error %v, source opened %d times; want none before an id is needed", name, err, opened.Load())
		}
	}
	if _, err := b.Next(t.Context(), 1); err != nil {
		t.Fatal(err)
	}
	a.Close()
	if _, err := b.Next(t.Context(), 1); err != nil || opened.Load() != 1 {
		t.Errorf("Next() after the Close of another user: error %v, source opened %d times; want none and 1", err, opened.Load())
	}
	id := b.Worker().Worker
	b.Close()
	if d, _, err := slots.Get(t.Context(), id); err != nil || !d.Free {
		t.Errorf("slot after the last Close = %+v, error %v; want Free", d, err)
	}
	if !snowflakes.empty() {
		t.Error("generators remain after the last Close, want none")
	}
}

// TestLeafWorkerTablesOfOneStoreAreOneSource: the leaf_worker tables of one leaf_alloc are one source.
func TestLeafWorkerTablesOfOneStoreAreOneSource(t *testing.T) {
	var all []*Snowflakes
	for _, key := range []string{"a", "a", "b", "", ""} {
		store := open(t, StoreConfig{Key: key})
		defer store.Close()
		s, err := OpenSnowflakes(SnowflakesConfig{Layout: snowflake.Leaf, Store: store, Worker: worker.Config{Lease: time.Minute}})
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		all = append(all, s)
	}
	for i, a := range all {
		for j, b := range all[:i] {
			if (a == b) != (i == 1 && j == 0) {
				t.Errorf("sources %d and %d: shared = %v, want %v", i, j, a == b, !(a == b))
			}
		}
	}
}

// TestBadLeaseIsRefused: a bad lease is an error, and no generator remains.
func TestBadLeaseIsRefused(t *testing.T) {
	_, err := OpenSnowflakes(SnowflakesConfig{
		Layout: snowflake.Leaf, Source: "c", Worker: worker.Config{Lease: time.Second},
		Open: func(context.Context) (worker.Source, error) { return worker.Source{}, nil },
	})
	if err == nil || !snowflakes.empty() {
		t.Errorf("error %v, want one, and no generator that remains", err)
	}
}
