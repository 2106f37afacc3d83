package mysql

import (
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// TestOtherTermsAreRefused: processes with another lease or layout are refused. The steps under the heading that the error names change both for a
// table with ids, and new ids are above the old ones.
func TestOtherTermsAreRefused(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			dsn := server.Database(t)
			db := openPool(t, dsn, "")
			if _, err := db.Exec("CREATE TABLE events (id BIGINT PRIMARY KEY)"); err != nil {
				t.Fatal(err)
			}
			start := func(layout string, cfg worker.Config) *snowflake.Generator {
				l, err := snowflake.ParseLayout(layout)
				if err != nil {
					t.Fatal(err)
				}
				g, err := snowflake.New(l, func(context.Context) (worker.Source, error) { return Open(db, Config{Create: true}), nil }, cfg)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { g.Close() })
				return g
			}
			var ids idcheck.Collector
			r := ids.Recorder()
			fill := func(g *snowflake.Generator) (first, last int64) {
				for range 20 {
					id, err := g.Next(t.Context(), 500)
					if err != nil {
						t.Fatal(err)
					}
					r.Add(id, 500)
					if _, err := db.Exec("INSERT INTO events VALUES (?), (?)", id, id+499); err != nil {
						t.Fatal(err)
					}
					if first == 0 {
						first = id
					}
					last = id + 499
				}
				return first, last
			}

			old := start("41-10-12", worker.Config{NewRegistry: true})
			_, highest := fill(old)
			section := ""
			for layout, cfg := range map[string]worker.Config{"41-12-10": {}, "41-10-12": {Lease: 30 * time.Second}} {
				_, err := start(layout, cfg).Next(t.Context(), 1)
				_, see, _ := strings.Cut(fmt.Sprint(err), "; to change them, see \"")
				heading, rest, _ := strings.Cut(see, "\" in docs/worker-ids.md")
				if _, unusable := errors.AsType[*worker.UnusableError](err); !unusable || !strings.HasPrefix(rest, "; the next attempt") {
					t.Fatalf("layout = %s, cfg = %+v, err = %v, want unusable = true and prefix \"; the next attempt\"", layout, cfg, err)
				}
				section = steps(t, heading)
			}
			sql := regexp.MustCompile("(?s)```sql\n(.*?)```").FindAllStringSubmatch(section, -1)
			if len(sql) != 2 {
				t.Fatalf("the steps have %d blocks of SQL, want 2", len(sql))
			}

			old.Close()
			parts, err := old.Layout().Decompose(highest)
			if err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Until(parts.Time.Truncate(time.Second).Add(time.Second))) // the rest of the wait is for differences of clocks
			if _, err := db.Exec(sql[0][1]); err != nil {
				t.Fatal(err)
			}
			var above bool
			if err := db.QueryRow(sql[1][1]).Scan(&above); err != nil || !above {
				t.Errorf("new ids are above the old ones: %v, %v, want above = true and no error", above, err)
			}
			changed := worker.Config{Lease: 30 * time.Second, NewRegistry: true}
			if first, _ := fill(start("41-12-10", changed)); first <= highest {
				t.Errorf("%d was issued after %d, want first above %v", first, highest, highest)
			}
			ids.Verify(t)
			if _, err := start("41-10-12", worker.Config{}).Next(t.Context(), 1); !strings.Contains(fmt.Sprint(err), "to change them") {
				t.Errorf("the settings of before: %v, want text with \"to change them\"", err)
			}
		})
	}
}

// steps returns the text under a heading of docs/worker-ids.md.
func steps(t *testing.T, heading string) string {
	page, err := os.ReadFile("../../../docs/worker-ids.md")
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(page), "\n## "+heading+"\n")
	if !ok || heading == "" {
		t.Fatalf("docs/worker-ids.md has no heading %q, want ok = true and heading other than \"\"", heading)
	}
	section, _, _ = strings.Cut(section, "\n## ")
	return section
}
