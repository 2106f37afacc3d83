//go:build unix

package javaleaf

import (
	"context"
	"encoding/json"
	"io"
	"log"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leafsql/leafsql/idgen/worker/zookeeper/zktest"
)

func TestSnowflakeTakesNumbers(t *testing.T) {
	s := zktest.Start(t, zktest.Config{})
	c, _, err := zk.Connect([]string{s.Addr}, 4*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	at := time.Now()
	start := func(addr string, want int, why string) *Leaf {
		t.Helper()
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		l, err := Start(ctx, Config{Name: "shop", Addr: addr, ZooKeeper: []string{s.Addr}, Every: 30 * time.Millisecond, Now: func() time.Time { return at }})
		switch {
		case why != "" && err == nil:
			l.Stop()
			fallthrough
		case why != "" && !strings.Contains(err.Error(), why):
			t.Fatalf("%s starts: %v, want %s", addr, err, why)
		case why == "" && err != nil:
			t.Fatal(err)
		case why == "" && l.Worker != want:
			t.Errorf("%s has worker id %d, want %d", addr, l.Worker, want)
		}
		return l
	}
	read := func(l *Leaf) (r report, version int32) {
		t.Helper()
		data, stat, err := c.Get(l.Path)
		if err != nil || json.Unmarshal(data, &r) != nil {
			t.Fatalf("%s: Get(l.Path) = %q, %v, want json.Unmarshal(data, &r) = nil and no error", l.Path, data, err)
		}
		return r, stat.Version
	}

	first := start("10.0.0.7:8080", 0, "")
	if first.Path != "/snowflake/shop/forever/10.0.0.7:8080-0000000000" {
		t.Errorf("the node is %s, want \"/snowflake/shop/forever/10.0.0.7:8080-0000000000\"", first.Path)
	}
	for version := int32(0); version < 3; { // until it has reported
		var r report
		r, version = read(first)
		if want := (report{"10.0.0.7", "8080", at.UnixMilli()}); r != want {
			t.Fatalf("content of the node = %v, want %v", r, want)
		}
	}
	second := start("10.0.0.8:8080", 1, "")
	second.Stop()
	first.Stop()
	start("10.0.0.8:8080", 1, "").Stop() // its old node

	at = at.Add(-time.Second)
	start("10.0.0.8:8080", 0, "1000 ms ahead")
	at = at.Add(time.Second)

	foreign := path.Join(path.Dir(first.Path), "foreign")
	if _, err := c.Create(foreign, nil, 0, zk.WorldACL(zk.PermAll)); err != nil {
		t.Fatal(err)
	}
	start("10.0.0.9:8080", 0, "can't read")
	if err := c.Delete(foreign, -1); err != nil {
		t.Fatal(err)
	}
	start("10.0.0.9:8080", 3, "").Stop() // ZooKeeper also counted the foreign node
}
