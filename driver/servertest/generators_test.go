package servertest

import (
	"bytes"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestRowAtZeroStartsAtOne: Leaf's examples begin with max_id 0, others with 1.
func TestRowAtZeroStartsAtOne(t *testing.T) {
	for _, maxID := range []int{0, 1} {
		_, leaf := open(t, "leafTables=t", allocTable, row("t", maxID, 10), tableT)
		for want := int64(1); want < 30; want++ {
			if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", want); id != want {
				t.Fatalf("row at %d: LastInsertId() = %d, want %d", maxID, id, want)
			}
		}
	}
}

// TestShortProcessUsesFewIDs: a process that inserts one row and ends does not use up a whole step.
func TestShortProcessUsesFewIDs(t *testing.T) {
	dsn := mysqltest.Database(t)
	plain, other := openOn(t, dsn, "leafTables=none", allocTable, row("t", 1, 1000), tableT)
	other.Close() // otherwise it would keep the segment, and share it with the next pools
	for start := range 5 {
		leaf, err := sql.Open(driver.Name, dsn+"?leafTables=t")
		if err != nil {
			t.Fatal(err)
		}
		if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (?)", start); id != int64(16*start)+1 {
			t.Errorf("start %d: LastInsertId() = %d, want %d", start, id, 16*start+1)
		}
		if err := leaf.Close(); err != nil {
			t.Fatal(err)
		}
	}
	var maxID int
	if err := plain.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&maxID); err != nil || maxID != 81 {
		t.Errorf("max_id after 5 starts = %d, error %v; want 81", maxID, err)
	}
}

// TestLoggerReceivesWarningOfUnreachableStore: Config.Logger receives a warning if the store is unreachable.
func TestLoggerReceivesWarningOfUnreachableStore(t *testing.T) {
	dsn := mysqltest.Database(t)
	openOn(t, dsn, "leafTables=none", tableT)
	cfg, err := driver.ParseDSN(dsn + "?leafTables=t")
	if err != nil {
		t.Fatal(err)
	}
	store := new(segmenttest.Memory).Put(segmenttest.Row{Tag: "t", MaxID: 1, Step: 10})
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
			t.Fatalf("log after 30s: %v, want a warning of the unreachable store", heard)
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

// TestConnectorAndTablesShareGenerators: a Connector and its tables use the same generators.
func TestConnectorAndTablesShareGenerators(t *testing.T) {
	dsn := mysqltest.Database(t)
	_, leaf := openOn(t, dsn, "leafTables=t", allocTable, row("t", 100, 1000), row("Other", 5, 1000), tableT)
	cfg, err := driver.ParseDSN(dsn + "?leafTables=t&leafWorker=static(7)&leafNewRegistry=true")
	if err != nil {
		t.Fatal(err)
	}
	c, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if s := c.Stats().Worker; s == nil || s.Phase != "idle" || s.Worker != -1 || s.Source != "static" || s.Layout != snowflake.Leaf {
		t.Errorf("Stats().Worker = %+v, want phase idle of a static source without a worker id", s)
	}
	ctx := t.Context()
	first, err := c.Segment("t").Next(ctx, 2)
	if err != nil || first != 100 {
		t.Fatalf("Next() = %d, %v; want 100", first, err)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 102 {
		t.Errorf("LastInsertId() of the next row = %d, want 102", id)
	}
	id, err := c.Snowflake().Next(ctx, 1)
	if p, bad := snowflake.Leaf.Decompose(id); err != nil || bad != nil || p.Worker != 7 {
		t.Errorf("Next() = %d, %v; want an id of worker 7", id, err)
	}
	if s := c.Stats().Worker; s.Phase != "holding" || s.Err != nil {
		t.Errorf("Stats().Worker = %+v, want phase holding without an error", s)
	}

	rows, err := inspect.Tags(ctx, c)
	if err != nil || len(rows) != 2 || rows[0] != (segmenttest.Row{Tag: "Other", MaxID: 5, Step: 1000}) {
		t.Errorf("Tags() = %+v, %v; want two rows, the first Other at 5", rows, err)
	}
	if r, err := inspect.Tag(ctx, c, "oTHER"); err != nil || r != rows[0] {
		t.Errorf("Tag(oTHER) = %+v, %v; want %+v", r, err, rows[0])
	}
	var unknown *segment.UnknownTagError
	if _, err := inspect.Tag(ctx, c, "nosuch"); !errors.As(err, &unknown) {
		t.Errorf("Tag(nosuch): error %v, want an UnknownTagError", err)
	}
}

func TestSegmentStoreHasNoSnowflakes(t *testing.T) {
	cfg := driver.NewConfig()
	cfg.None, cfg.SegmentStore = true, new(segmenttest.Memory)
	c, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Snowflake() != nil || c.Stats().Worker != nil {
		t.Errorf("Snowflake() = %v, Stats().Worker = %v; want nil", c.Snowflake(), c.Stats().Worker)
	}
}

func TestSnowflakesAscendOnSharedWorkerID(t *testing.T) {
	dsn := mysqltest.Database(t)
	state := strings.ReplaceAll(t.TempDir(), "/", "%2F")
	params := "leafTables=t::snowflake&leafWorker=static(7)&leafNewRegistry=true&leafState=" + state
	_, one := openOn(t, dsn, params, "CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)")
	// A second pool with an equal source shares the worker id. Otherwise the lock
	// of the state directory would refuse it.
	_, two := openOn(t, dsn, params)
	last := int64(0)
	for i, db := range []*sql.DB{one, two, one} {
		id := insertID(t, db, "INSERT INTO t (a) VALUES (1), (2), (3)")
		parts, err := snowflake.Leaf.Decompose(id)
		if err != nil || parts.Worker != 7 || id <= last {
			t.Errorf("LastInsertId() = %d of %+v, error %v; want an id of worker 7 above %d", id, parts, err, last)
		}
		var n int
		if err := db.QueryRow("SELECT COUNT(*) FROM t WHERE id BETWEEN ? AND ?", id, id+2).Scan(&n); err != nil || n != 3 {
			t.Errorf("insert %d: %d rows with consecutive ids, error %v; want 3", i, n, err)
		}
		last = id
	}
	_, small := open(t, params, "CREATE TABLE t (id INT PRIMARY KEY, a INT)")
	refused(t, small, "above the highest value of the column", "INSERT INTO t (a) VALUES (1)")
	refused(t, one, "at most 4096", "INSERT INTO t (a) VALUES (0)"+strings.Repeat(",(0)", 4096))
}

func TestBadSnowflakeOptionsAreRefused(t *testing.T) {
	for params, want := range map[string]string{
		"leafTables=t::snowflake&leafWorker=nosuch(1)":                       `worker source "nosuch" is unknown; registered are env, mysql, ordinal, static`,
		"leafTables=t::snowflake&leafWorker=static(7)&leafSnowflake=1-2":     "1-2",
		"leafTables=t::snowflake&leafWorker=static(7)&leafSnowflake=50-10-4": "50-10-4",
	} {
		_, err := sql.Open(driver.Name, "u@tcp(127.0.0.1:1)/d?"+params)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", params, err, want)
		}
	}
}

// TestStagedSnowflakesFailBeforeRowsAreStored: a staged statement with more rows than a snowflake has ids in a
// millisecond fails before anything is stored.
func TestStagedSnowflakesFailBeforeRowsAreStored(t *testing.T) {
	for i, target := range mysqltest.Targets(t) {
		_, leaf := openOn(t, target.Database(t), fmt.Sprintf("leafTables=t:id:snowflake&leafWorker=static(%d)&leafState=", 21+i)+url.QueryEscape(t.TempDir())+"&leafNewRegistry=true",
			append([]string{"CREATE TABLE t (id BIGINT PRIMARY KEY, a INT)"}, seedSource(4097)...)...)
		if _, err := leaf.Exec("INSERT INTO t (a) SELECT a FROM src LIMIT 4096"); err != nil {
			t.Errorf("%s: INSERT of 4096 rows: error %v, want none", target.Name, err)
		}
		_, err := leaf.Exec("INSERT INTO t (a) SELECT a FROM src")
		var fill *driver.FillError
		if !errors.As(err, &fill) || fill.Rows != 4097 {
			t.Errorf("%s: error %v, want a FillError of 4097 rows", target.Name, err)
		}
		var n int
		if err := leaf.QueryRow("SELECT COUNT(*) FROM t").Scan(&n); err != nil || n != 4096 {
			t.Errorf("%s: %d rows, error %v; want 4096", target.Name, n, err)
		}
		healthyState(t, leaf)
	}
}
