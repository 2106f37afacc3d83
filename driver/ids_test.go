package driver_test

import (
	"errors"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/segmenttest"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestIDsWithoutSQL: a Connector's generators are those of its tables.
func TestIDsWithoutSQL(t *testing.T) {
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
		t.Errorf("worker: %+v", s)
	}
	ctx := t.Context()
	first, err := c.Segment("t").Next(ctx, 2)
	if err != nil || first != 100 {
		t.Fatalf("%d, %v", first, err)
	}
	if id := insertID(t, leaf, "INSERT INTO t (a) VALUES (1)"); id != 102 {
		t.Errorf("the next row has id %d", id)
	}
	id, err := c.Snowflake().Next(ctx, 1)
	if p, bad := snowflake.Leaf.Decompose(id); err != nil || bad != nil || p.Worker != 7 {
		t.Errorf("snowflake %d: %v", id, err)
	}
	if s := c.Stats().Worker; s.Phase != "holding" || s.Err != nil {
		t.Errorf("worker: %+v", s)
	}

	rows, err := c.Tags(ctx)
	if err != nil || len(rows) != 2 || rows[0] != (segment.Row{Tag: "Other", MaxID: 5, Step: 1000}) {
		t.Errorf("%+v, %v", rows, err)
	}
	if r, err := c.Tag(ctx, "oTHER"); err != nil || r != rows[0] {
		t.Errorf("%+v, %v", r, err)
	}
	var unknown *segment.UnknownTagError
	if _, err := c.Tag(ctx, "nosuch"); !errors.As(err, &unknown) {
		t.Error(err)
	}
}

func TestIDsOfAnotherStore(t *testing.T) {
	cfg := driver.NewConfig()
	cfg.Auto, cfg.SegmentStore = false, segmenttest.NewMemory()
	c, err := driver.NewConnector(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if c.Snowflake() != nil || c.Stats().Worker != nil {
		t.Error("there are snowflakes")
	}
	var config *driver.ConfigError
	if _, err := c.Tags(t.Context()); !errors.As(err, &config) {
		t.Error(err)
	}
	if _, err := c.Tag(t.Context(), "t"); !errors.As(err, &config) {
		t.Error(err)
	}
}
