//go:build unix

package leaftest

import (
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"log"
	"path"
	"strings"
	"testing"
	"time"

	_ "github.com/go-sql-driver/mysql"
	"github.com/go-zookeeper/zk"

	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/zktest"
)

const table = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT NOT NULL, step INT NOT NULL, description VARCHAR(256), update_time TIMESTAMP)"

func TestSegments(t *testing.T) {
	db, err := sql.Open("mysql", mysqltest.Database(t))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	for _, text := range []string{table, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 0, 10)"} {
		if _, err := db.Exec(text); err != nil {
			t.Fatal(err)
		}
	}
	row := func(want int64) {
		t.Helper()
		var maxID int64
		if err := db.QueryRow("SELECT max_id FROM leaf_alloc").Scan(&maxID); err != nil || maxID != want {
			t.Errorf("max_id is %d, %v; want %d", maxID, err, want)
		}
	}
	at := time.Unix(0, 0)
	s := Segments{DB: db, Now: func() time.Time { return at }}
	draw := func(want int64) {
		t.Helper()
		if got, err := s.Next(t.Context(), "orders"); err != nil || got != want {
			t.Fatalf("the id is %d, %v; want %d", got, err, want)
		}
	}
	for id := range int64(2) { // 0 is the first
		draw(id)
	}
	row(10)
	draw(2) // a tenth is used
	row(20)
	for id := int64(3); id < 13; id++ {
		draw(id)
	}
	row(40) // the third one is twice as long

	other := Segments{DB: db}
	if id, err := other.Next(t.Context(), "orders"); err != nil || id != 40 {
		t.Errorf("the first id of another Leaf is %d, %v; want 40", id, err)
	}
	for id := int64(13); id < 20; id++ {
		draw(id)
	}
	at = at.Add(2 * duration)
	for id := int64(20); id <= 23; id++ {
		draw(id)
	}
	row(60) // the other one has moved it to 50; the next range is half as long as the one of 20
	if _, err := s.Next(t.Context(), "unknown"); err == nil {
		t.Error("a tag without a row has ids")
	}
}

func TestSnowflake(t *testing.T) {
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
			t.Fatalf("%s: %q, %v", l.Path, data, err)
		}
		return r, stat.Version
	}

	first := start("10.0.0.7:8080", 0, "")
	if first.Path != "/snowflake/shop/forever/10.0.0.7:8080-0000000000" {
		t.Errorf("the node is %s", first.Path)
	}
	for version := int32(0); version < 3; { // it reports
		var r report
		r, version = read(first)
		if want := (report{"10.0.0.7", "8080", at.UnixMilli()}); r != want {
			t.Fatalf("the node says %v, want %v", r, want)
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
	start("10.0.0.9:8080", 3, "").Stop() // ZooKeeper counted the foreign node too
}
