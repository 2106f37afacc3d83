package ids

import (
	"context"
	"database/sql/driver"
	"errors"
	"log/slog"
	"testing"

	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
)

// nowhere is a connector that always fails.
type nowhere struct{}

func (nowhere) Connect(context.Context) (driver.Conn, error) { return nil, errors.New("nowhere") }
func (nowhere) Driver() driver.Driver                        { return nil }

func open(t *testing.T, cfg StoreConfig) *Store {
	t.Helper()
	cfg.Connector, cfg.Table = nowhere{}, "leaf_alloc"
	cfg.Logger = slog.New(slog.DiscardHandler)
	s, err := OpenStore(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// TestStoresAreShared: configurations with an equal key share one store.
func TestStoresAreShared(t *testing.T) {
	one := StoreConfig{Key: "a"}
	for name, tt := range map[string]struct {
		a, b   StoreConfig
		shared bool
	}{
		"equal":               {one, one, true},
		"another database":    {one, StoreConfig{Key: "b"}, false},
		"an unknown database": {StoreConfig{}, StoreConfig{}, false},
		"a replacement":       {StoreConfig{Key: "a", Replacement: new(segmenttest.Memory)}, StoreConfig{Key: "a", Replacement: new(segmenttest.Memory)}, false},
	} {
		a, b := open(t, tt.a), open(t, tt.b)
		if (a == b) != tt.shared {
			t.Errorf("%s: shared = %v, want %v", name, a == b, tt.shared)
		}
		if rows := a.Counter(Tag{Name: "t"}).Rows; (rows == nil) != (tt.a.Replacement != nil) {
			t.Errorf("%s: Rows = %v, want nil exactly with a replacement", name, rows)
		}
		a.Close()
		b.Close()
	}
	if !stores.empty() {
		t.Error("stores remain after the last Close, want none")
	}
}

// TestGeneratorIsUsableWhileStoreHasUsers: a counter has one generator, which is usable while its store has users.
func TestGeneratorIsUsableWhileStoreHasUsers(t *testing.T) {
	memory := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "t", MaxID: 100, Step: 10})
	s := open(t, StoreConfig{Replacement: memory})
	c := s.Counter(Tag{Name: "t"})
	if s.Alloc != nil || c.Rows != nil {
		t.Errorf("Alloc = %v, Rows = %v; want nil with a replacement", s.Alloc, c.Rows)
	}
	if first, err := c.Next(t.Context(), 3); first != 100 || err != nil || s.Counter(Tag{Name: "t"}) != c {
		t.Errorf("Next() = %d, %v; want 100 of the same counter", first, err)
	}
	if all := s.Counters(); len(all) != 1 || all[0] != c {
		t.Errorf("Counters() = %+v, want one counter", all)
	}
	if err := s.Close(); err != nil {
		t.Errorf("Close() = %v, want nil", err)
	}
	if _, err := c.Next(t.Context(), 1); !errors.Is(err, idgen.ErrClosed) {
		t.Errorf("Next() after Close: error %v, want ErrClosed", err)
	}
}
