//go:build unix

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/internal/version"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestDecodePrintsTheParts(t *testing.T) {
	// An id from Twitter's documentation.
	out := mustRun(t, exitOK, "decode", "1541815603606036480")
	if !strings.Contains(out, "2022-06-28T16:07:40.105Z     378         0") {
		t.Errorf("output = %s\nwant %q", out, "2022-06-28T16:07:40.105Z     378         0")
	}
	out = mustRun(t, exitOK, "decode", "-layout", "41-5+5-12@1420070400000", "175928847299117063") // an id of Discord
	if !strings.Contains(out, "2016-04-30T11:18:25.796Z            1       0         7") {
		t.Errorf("output = %s\nwant %q", out, "2016-04-30T11:18:25.796Z            1       0         7")
	}
	type id struct {
		ID               string // many JSON parsers would round a number of this size
		Worker, Sequence int
	}
	want := []id{{"1541815603606036480", 378, 0}, {"4096", 1, 0}}
	if got := runJSON[[]id](t, exitOK, "decode", "1541815603606036480", "4096"); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	cmd := leafsqlCommand(t, "decode", "-", "-json") // a flag after the ids
	cmd.Stdin = strings.NewReader("1541815603606036480\n4096\n")
	piped, err := cmd.Output()
	var got []id
	if err == nil {
		err = json.Unmarshal(piped, &got)
	}
	if err != nil || !slices.Equal(got, want) {
		t.Errorf("decode of the standard input: %v, want %+v in\n%s", err, want, piped)
	}
	for _, bad := range []string{"", "x", "0", "-layout 1-2-3 7", "4096 -- -json", "-- 4096 -json", "9223372036854775808"} {
		if status, _, errs := runLeafsql(t.Context(), append([]string{"decode"}, strings.Fields(bad)...)...); status != exitFailure || !strings.HasPrefix(errs, "leafsql: ") {
			t.Errorf("decode %q: status %d, error %q, want %d and an error of leafsql", bad, status, errs, exitFailure)
		}
	}
}

func TestVersionIsPrinted(t *testing.T) {
	out := mustRun(t, exitOK, "version")
	if !strings.HasPrefix(out, "leafsql "+version.Current()+", go1.") || strings.Count(out, "\n") != 1 {
		t.Error(out)
	}
	for _, flag := range []string{"-version", "--version"} {
		if again := mustRun(t, exitOK, flag); again != out {
			t.Errorf("leafsql %s = %q, want %q", flag, again, out)
		}
	}
	if got := runJSON[struct{ Version string }](t, exitOK, "version", "-json"); got.Version != version.Current() {
		t.Errorf("%+v", got)
	}
}

// TestTagsWatchShowsMovingRows: a watch shows the average rate of each tag since it began, 0 for a tag that did not move, and
// ends without an error when it is interrupted.
func TestTagsWatchShowsMovingRows(t *testing.T) {
	dsn := mysqltest.Database(t)
	db := open(t, dsn, "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) PRIMARY KEY, max_id BIGINT, step INT)", "INSERT INTO leaf_alloc VALUES ('orders', 12001, 1000), ('users', 5, 10)")
	if out := mustRun(t, exitOK, "tags", "-dsn", dsn); !strings.Contains(out, "orders   12,001  1,000  -") {
		t.Errorf("output = %s\nwant %q", out, "orders   12,001  1,000  -")
	}
	ctx, interrupt := context.WithCancel(t.Context())
	defer interrupt()
	r, w := io.Pipe()
	ended := make(chan int)
	go func() {
		ended <- run(ctx, &screen.Screen{Out: w, Err: w}, []string{"tags", "-watch", "-every", "10ms", "-json", "-dsn", dsn})
		w.Close()
	}()
	looks := json.NewDecoder(r)
	for looked := 0; looked < 5; looked++ {
		var tags []check.Tag
		if err := looks.Decode(&tags); err != nil {
			t.Fatal(err)
		}
		switch {
		case len(tags) != 2:
			t.Fatalf("tags = %+v, want two", tags)
		case looked == 0:
			if tags[0].Rate != nil || tags[1].Rate != nil {
				t.Fatalf("first reading: tags = %+v, want no rates", tags)
			}
			exec(t, db, "UPDATE leaf_alloc SET max_id = max_id + 1000 WHERE biz_tag = 'orders'")
			looks.Decode(&tags) // may have been read before the UPDATE
		case tags[0].Rate == nil || *tags[0].Rate <= 0 || tags[1].Rate == nil || *tags[1].Rate != 0:
			t.Fatalf("reading %d: tags = %+v, want a rate of orders since the first reading, and 0 of users", looked, tags)
		}
	}
	interrupt()
	go io.Copy(io.Discard, r)
	if status := <-ended; status != exitOK {
		t.Errorf("status of an interrupted watch = %d, want %d", status, exitOK)
	}
}

// TestBenchRemovesItsTables: a bench removes its tables, and uses no tag.
func TestBenchRemovesItsTables(t *testing.T) {
	runOnServers(t, func(t *testing.T, target mysqltest.Target, dsn string) {
		db := open(t, dsn, allocTable, "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)")
		figures := runJSON[[]benchResult](t, exitOK, "bench", "-for", "50ms", "-clients", "2", "-dsn", dsn)
		if len(figures) != 2 || figures[0].Rows == 0 || figures[1].Rows == 0 || figures[1].Keys != "leaf_alloc" {
			t.Errorf("results of bench = %+v, want two with rows, the second with keys of leaf_alloc", figures)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"); n != 1 {
			t.Errorf("tables after bench = %d, want those before it", n)
		}
		if n := queryNumber(t, db, "SELECT MAX(max_id) FROM leaf_alloc"); n != 1 {
			t.Errorf("max_id = %d, want 1", n)
		}
		exec(t, db, "CREATE TABLE "+benchCounted+" (n INT)")
		if status, _, errs := runLeafsql(t.Context(), "bench", "-dsn", dsn); status != exitFailure || !strings.Contains(errs, "already exists") || !strings.Contains(errs, "DROP TABLE IF EXISTS "+benchFilled+", "+benchCounted+", "+benchAlloc) {
			t.Errorf("bench with a table of that name: status %d, error %q, want %d and the DROP TABLE", status, errs, exitFailure)
		}
		if n := queryNumber(t, db, "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE()"); n != 2 {
			t.Errorf("tables after bench = %d, want those before it", n)
		}
	})
}

// fullDisk is a file on a full disk.
type fullDisk struct{}

func (fullDisk) Write([]byte) (int, error) { return 0, syscall.ENOSPC }

// TestLostOutputIsAnError: the exit code of a report that could not be written is not 0 or 1.
func TestLostOutputIsAnError(t *testing.T) {
	dsn := mysqltest.Database(t)
	open(t, dsn, allocTable)
	for _, args := range []string{"check", "check -json", "tags", "init -json", "decode 4096", "help"} {
		var errs bytes.Buffer
		words := strings.Fields(args)
		if words[0] != "decode" && words[0] != "help" {
			words = append(words, "-dsn", dsn)
		}
		if words[0] == "init" {
			words[len(words)-1] += "?leafTables=none"
		}
		status := run(t.Context(), &screen.Screen{Out: fullDisk{}, Err: &errs}, words)
		if words[0] != "help" && (status != exitFailure || !strings.HasPrefix(errs.String(), "leafsql: "+words[0]+": write the output: ")) {
			t.Errorf("leafsql %s: status %d, error %q, want %d and \"write the output\"", args, status, errs.String(), exitFailure)
		}
	}
}

// TestMistypedStepListsSteps: a mistyped step is answered with the list of steps, and not with the next step.
func TestMistypedStepListsSteps(t *testing.T) {
	status, _, errs := runLeafsql(t.Context(), "migrate", "orders", "-dsn", "app@tcp(127.0.0.1:1)/shop", "-do", "swich")
	if status != exitFailure || !strings.Contains(errs, `unknown step "swich"; the steps are widen, switch, drop and unguard`) {
		t.Errorf("unknown step: status %d, error %q, want %d and the list of steps", status, errs, exitFailure)
	}
}

// TestSameShardTwiceIsRefused: a database under two names is refused, since it would be counted and changed twice.
func TestSameShardTwiceIsRefused(t *testing.T) {
	dsn := mysqltest.Database(t)
	for _, args := range []string{"check", "init", "tags", "migrate -do switch"} {
		words := append(strings.Fields(args), "-dsn", dsn, "-shard", dsn+"?leafTables=none")
		if strings.HasPrefix(args, "migrate") {
			words = append(words, "orders")
		}
		if status, _, errs := runLeafsql(t.Context(), words...); status != exitFailure || !strings.Contains(errs, "name each database once") {
			t.Errorf("leafsql %s: status %d, error %q, want %d and \"name each database once\"", args, status, errs, exitFailure)
		}
	}
}
