package ids

import (
	"testing"

	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// TestDropMakesStoresReadRowsAgain: after a drop, the stores on the dropped tables read their rows again, and the counters of a dropped
// database start again.
func TestDropMakesStoresReadRowsAgain(t *testing.T) {
	const one, both = "one", "both"
	for _, tt := range []struct {
		server, db, table string
		dropped           bool
		seen, again       bool
	}{
		{"s", "shop", "leaf_alloc", false, true, false},
		{"s", "SHOP", "Leaf_Alloc", false, true, false}, // may be the same table
		{"s", "", "leaf_alloc", false, true, false},
		{"s", "shop", SequenceTable, false, true, false},
		{"s", "shop", "orders", false, false, false},
		{"s", "crm", "leaf_alloc", false, false, false},
		{"other", "shop", "leaf_alloc", false, false, false},
		{"s", "shop", "", false, true, false},
		{"s", "shop", "", true, true, true},
		{"s", "crm", "", true, false, false},
	} {
		memory := new(segmenttest.Memory).Put(segmenttest.Row{Tag: one, MaxID: 1, Step: 10}, segmenttest.Row{Tag: both, MaxID: 1, Step: 10})
		s := open(t, StoreConfig{Replacement: memory, Home: Home{Server: "s", DB: "shop", Table: "leaf_alloc"}})
		s.Counter(Tag{Name: one}).AddDatabase("s", "shop")
		s.Counter(Tag{Name: both}).AddDatabase("s", "shop")
		s.Counter(Tag{Name: both}).AddDatabase("s", "crm")
		for _, tag := range []string{one, both} {
			if _, err := s.Counter(Tag{Name: tag}).Next(t.Context(), 7); err != nil {
				t.Fatal(err)
			}
			memory.Put(segmenttest.Row{Tag: tag, MaxID: 1000, Step: 10})
		}
		before := s.Epoch.Load()
		NoteDropped(tt.server, tt.db, tt.table, tt.dropped)
		if seen := s.Epoch.Load() != before; seen != tt.seen {
			t.Errorf("%+v: new epoch %v, want %v", tt, seen, tt.seen)
		}
		for tag, again := range map[string]bool{one: tt.again, both: false} {
			id, err := s.Counter(Tag{Name: tag}).Next(t.Context(), 1)
			if err != nil || (id != 8) != again {
				t.Errorf("%+v, tag %s: Next() = %d, %v; want a new start %v, otherwise 8", tt, tag, id, err, again)
			}
		}
		s.Close()
	}
}

// TestFirstUnfetchedIncludesOtherStores: FirstUnfetched includes ranges that other stores on the same table have fetched.
func TestFirstUnfetchedIncludesOtherStores(t *testing.T) {
	home := Home{Server: "s", DB: "shop", Table: "leaf_alloc"}
	away := home
	away.Server = "other"
	var all []*Store
	for i, h := range []Home{home, home, away, {}} {
		s := open(t, StoreConfig{Replacement: new(segmenttest.Memory).Put(segmenttest.Row{Tag: "t", MaxID: int64(1000 * (i + 1)), Step: 10}), Home: h})
		defer s.Close()
		if _, err := s.Counter(Tag{Name: "t"}).Next(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		all = append(all, s)
	}
	for i, want := range []int64{2010, 2010, 3010, 4010} {
		if above, err := all[i].Counter(Tag{Name: "t"}).FirstUnfetched(t.Context()); above != want || err != nil {
			t.Errorf("store %d: FirstUnfetched() = %d, %v; want %d", i, above, err, want)
		}
	}
}
