package driver_test

import (
	"bytes"
	"database/sql"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestRowAtZero: Leaf's own examples begin with max_id 0, others with 1.
func TestRowAtZero(t *testing.T) {
	for _, maxID := range []int{0, 1} {
		_, leaf := open(t, "leafTables=t", allocTable, row("t", maxID, 10), tableT)
		for want := int64(1); want < 30; want++ {
			if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", want); id != want {
				t.Fatalf("a row at %d: id %d instead of %d", maxID, id, want)
			}
		}
	}
}

// TestOneRowBurnsLittle: a process that inserts a row and ends wastes no step.
func TestOneRowBurnsLittle(t *testing.T) {
	dsn := mysqltest.Database(t)
	plain, other := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 1000), tableT)
	other.Close() // or it would keep the segment that it shares with the next ones
	for start := range 5 {
		leaf, err := sql.Open(driver.Name, dsn+"?leafTables=t")
		if err != nil {
			t.Fatal(err)
		}
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", start); id != int64(16*start)+1 {
			t.Errorf("start %d: id %d", start, id)
		}
		if err := leaf.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var maxID int
	if err := plain.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&maxID); err != nil || maxID != 81 {
		t.Errorf("5 starts moved the row to %d, %v", maxID, err)
	}
}

// TestLoggerOfSegments: Config.Logger hears of a store that is away.
func TestLoggerOfSegments(t *testing.T) {
	dsn := mysqltest.Database(t)
	openOn(t, dsn, "leafTables=none", tableT)
	cfg, err := driver.ParseDSN(dsn + "?leafTables=t")
	if err != nil {
		t.Fatal(err)
	}
	store := segmenttest.NewMemory(segment.Row{Tag: "t", MaxID: 1, Step: 10})
	heard := &logBuffer{}
	cfg.SegmentStore, cfg.Logger = store, slog.New(slog.NewTextHandler(heard, nil))
	c, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	leaf := sql.OpenDB(c)
	defer leaf.Close()
	insertID(t, leaf, "INSERT INTO t (a) VALUES (1)")
	store.Fail(errors.New("the store is down"))
	insertID(t, leaf, "INSERT INTO t (a) VALUES (2), (3), (4), (5), (6)")
	for begin := time.Now(); !strings.Contains(heard.String(), "the store is down"); time.Sleep(time.Millisecond) {
		if time.Since(begin) > 30*time.Second {
			t.Fatal("the log holds ", heard)
		}
	}
}

type logBuffer struct {
	mu  sync.Mutex
	buf bytes.Buffer
}

func (b *logBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.Write(p)
}

func (b *logBuffer) String() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.buf.String()
}
