package docs

import (
	"database/sql"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"

	_ "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestChangeOfTheSourceIssuesNoIDTwice follows worker-ids.md from one registry of worker ids to another and back. Programs write
// before and after, with the only two worker ids that both registries have. The test omits the wait:
// TestNewRegistryRepeatsNoTime in idgen/worker shows that it is long enough for any clock, and for processes that were
// disconnected.
func TestChangeOfTheSourceIssuesNoIDTwice(t *testing.T) {
	var commands string
	for _, b := range readPage(t, "worker-ids.md").blocks {
		if b.section == "Changing the source of worker ids" && b.lang == "sh" {
			commands += b.code
		}
	}
	kinds := mysqltest.Kinds()
	if testing.Short() {
		kinds = kinds[:1]
	}
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			hosts := serversOf(t, kind)
			runSQL(t, hosts, "DROP DATABASE IF EXISTS shop;\nDROP DATABASE IF EXISTS leaf;\nCREATE DATABASE shop;\nCREATE DATABASE leaf;\n"+
				"CREATE TABLE shop.events (id BIGINT NOT NULL PRIMARY KEY, what VARCHAR(64) NOT NULL);\n")
			former := hosts["db0"].DSN("shop") + "?leafTables=events:id:snowflake&leafSnowflake=41-1-12&leafCreate=true"
			newer := former + "&leafAllocTable=leaf.leaf_alloc"
			waited := filepath.Join(t.TempDir(), "waited")
			if err := os.WriteFile(filepath.Join(filepath.Dir(waited), "sleep"), []byte("#!/bin/sh\necho $1 >"+waited+"\n"), 0o700); err != nil {
				t.Fatal(err)
			}
			operator := shell{hosts: hosts, exports: fmt.Sprintf("export PATH=%s:$PATH NEW_DSN='%s'\n", filepath.Dir(waited), newer)}

			program := events{t: t}
			program.insertEvents(former + "&leafNewRegistry=true")
			operator.run(t, commands)
			if seconds, err := os.ReadFile(waited); err != nil || string(seconds) != "120\n" {
				t.Errorf("the page waits %q seconds (%v), want a lease and 60 s: 120", seconds, err)
			}
			program.insertEvents(newer)
			program.insertEvents(former)
			program.insertEvents(newer)
		})
	}
}

// events is a program that inserts rows one after another.
type events struct {
	t       *testing.T
	highest int64
}

// insertEvents inserts over several connections, ends, and compares the ids with those of the runs before.
func (e *events) insertEvents(dsn string) {
	e.t.Helper()
	db, err := sql.Open("mysql-leaf", dsn)
	if err != nil {
		e.t.Fatal(err)
	}
	var mu sync.Mutex
	var wg sync.WaitGroup
	ids := map[int64]bool{}
	for range 8 {
		wg.Go(func() {
			for range 100 {
				res, err := db.Exec("INSERT INTO events (what) VALUES ('signed in')")
				if err != nil {
					e.t.Error(err)
					return
				}
				id, _ := res.LastInsertId()
				mu.Lock()
				ids[id] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()
	if err := db.Close(); err != nil {
		e.t.Error(err)
	}
	former := e.highest
	for id := range ids {
		if id <= former {
			e.t.Errorf("id %d is not above %d, the highest of the runs before", id, former)
		}
		e.highest = max(e.highest, id)
	}
	if len(ids) != 800 {
		e.t.Errorf("%d ids, want 800", len(ids))
	}
}
