//go:build unix && storm

package clustertest_test

import (
	"database/sql"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// readTable returns the stored rows of a table.
func (r *chaosRun) readTable(name string) (stored storedRows) {
	r.Helper()
	db, err := sql.Open("mysql", r.target.admin("ids"))
	if err != nil {
		r.Fatal(err)
	}
	defer db.Close()
	rows, err := db.QueryContext(r.Context(), "SELECT writer, n, id FROM "+name)
	if err != nil {
		r.Fatal(err)
	}
	defer rows.Close()
	for rows.Next() {
		var writer, n int
		var id int64
		if err := rows.Scan(&writer, &n, &id); err != nil {
			r.Fatal(err)
		}
		if name == "plain" {
			id = int64(n) // has no id of its own
		}
		stored.add(writer, n, id)
	}
	if err := rows.Err(); err != nil {
		r.Fatal(err)
	}
	return stored
}

// finish waits for the remaining rows, ends the writers, compares the stored rows with the acknowledged ones, and returns the rows of the
// table of results.
func (r *chaosRun) finish(kind chaosKind, counts map[string]int) (table []string) {
	r.Helper()
	for deadline := time.Now().Add(*chaosFor); r.rows() < *chaosRows && time.Now().Before(deadline); {
		time.Sleep(100 * time.Millisecond)
	}
	if n := r.rows(); n < *chaosRows {
		r.Errorf("%d rows are inserted, want %d", n, *chaosRows)
	}
	r.endWindow()
	r.end()
	r.running.Wait()
	for _, closeProgram := range r.closers {
		closeProgram()
	}
	for i := range r.tables["plain"].all {
		one := &r.tables["plain"].all[i]
		one.first = int64(one.n)
	}
	results := make(map[string]comparison)
	for name, acknowledged := range r.tables {
		for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(time.Second) { // a node may lag
			results[name] = acknowledged.compare(r.readTable(name))
			if len(results[name].lost) == 0 || kind.loses || time.Now().After(deadline) {
				break
			}
		}
		c := results[name]
		if name != "plain" && (c.ids.Duplicates > 0 || c.ids.Invalid > 0) {
			r.Errorf("%s: %d ids twice, such as %v; %d below 1", name, c.ids.Duplicates, c.ids.Examples, c.ids.Invalid)
		}
		if c.wrong > 0 {
			r.Errorf("%s: %d rows are stored with another id than the acknowledged one", name, c.wrong)
		}
		if !kind.loses && len(c.lost) > 0 {
			r.Errorf("%s: acknowledged rows of the writers %v are lost", name, c.lost)
		}
	}
	twice := results["seg"].ids.Duplicates + results["snow"].ids.Duplicates
	for _, way := range []string{"driver", "proxy"} {
		rows, lost, failed, first := 0, 0, 0, time.Duration(0)
		for _, s := range r.streams {
			if s.way != way {
				continue
			}
			rows, first = rows+int(s.rows.Load()), max(first, s.silence)
			for _, writer := range s.writers {
				lost += results[s.table].lost[writer]
			}
			texts := slices.SortedFunc(maps.Keys(s.errors), func(a, b string) int { return s.errors[b] - s.errors[a] })
			for i, text := range texts {
				failed += s.errors[text]
				if i < 5 {
					r.Logf("%s through %s, %d times: %s", s.table, s.way, s.errors[text], strings.ReplaceAll(text, "\n", "; "))
				}
			}
		}
		line := []string{kind.name, way, fmt.Sprint(rows), fmt.Sprint(twice), fmt.Sprint(lost), "the same", "the same", fmt.Sprint(first.Round(time.Millisecond))}
		if way == "driver" {
			line[5], line[6] = describeFaults(counts), fmt.Sprint(r.outage.Round(time.Millisecond))
		}
		table = append(table, "| "+strings.Join(line, " | ")+" |")
		r.Logf("%s: %d rows, %d statements failed", way, rows, failed)
	}
	lost := 0
	for _, n := range results["plain"].lost {
		lost += n
	}
	r.Logf("plain writer: %d rows, %d lost, %d errors: %v", r.plain.rows.Load(), lost, len(r.plain.errors), r.plain.errors)
	return table
}
