//go:build storm

package servertest

import (
	"bufio"
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/testutil/idcheck"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

var stormIDs = flag.Int("ids", 1_000_000, "ids of each kind that TestStormKilledProcesses draws")

// Environment of a process of TestStormKilledProcesses.
const (
	envDrawer    = "LEAFSQL_TEST_DRAWER"     // DSN
	envDrawerDir = "LEAFSQL_TEST_DRAWER_DIR" // folder of the ids, with a file for each kind
	envDrawerIDs = "LEAFSQL_TEST_DRAWER_IDS" // ids of each kind to draw
)

const drawers = 8

// drawn are the kinds of ids, which name the files.
var drawn = []string{"segment", "snowflake"}

func init() { roles[envDrawer] = draw }

// draw draws ids of both kinds by 16 goroutines each and writes them to files. It prints a line when it has drawn half of them,
// and at the end.
func draw() error {
	cfg, err := driver.ParseDSN(os.Getenv(envDrawer))
	if err != nil {
		return err
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return err
	}
	defer connector.Close()
	var want int64
	if _, err := fmt.Sscan(os.Getenv(envDrawerIDs), &want); err != nil {
		return err
	}
	var halves atomic.Int32
	var wg sync.WaitGroup
	errs := make(chan error, 32)
	for i, ids := range []idgen.Generator{connector.Segment("orders"), connector.Snowflake()} {
		f, err := os.Create(filepath.Join(os.Getenv(envDrawerDir), drawn[i]))
		if err != nil {
			return err
		}
		defer f.Close()
		var count atomic.Int64
		for g := range 16 {
			wg.Go(func() {
				for k := g; count.Load() < want; k++ {
					n := int64(1 + k%40)
					first, err := ids.Next(context.Background(), int(n))
					if err == nil { // one write for each line: only the last line of a killed process may be incomplete
						_, err = fmt.Fprintf(f, "%d %d\n", first, n)
					}
					if err != nil {
						errs <- err
						return
					}
					if c := count.Add(n); c >= want/2 && c-n < want/2 && halves.Add(1) == int32(len(drawn)) {
						fmt.Println("half")
					}
				}
			})
		}
	}
	wg.Wait()
	close(errs)
	if err := <-errs; err != nil {
		return err
	}
	fmt.Println("done")
	return nil
}

// TestStormKilledProcesses: eight processes draw segments and snowflakes from one server. Each is killed midway and replaced by
// another one. No id comes twice.
func TestStormKilledProcesses(t *testing.T) {
	for _, server := range mysqltest.Targets(t) {
		t.Run(server.Name, func(t *testing.T) {
			database := server.Database(t)
			openOn(t, database, "leafTables=none", allocTable, row("orders", 1, 1000))
			dsn := database + "?leafTables=orders,events:id:snowflake&leafCreate=true&leafNewRegistry=true"
			var collectors [2]idcheck.Collector
			start := func() (*exec.Cmd, *bufio.Scanner, string) {
				dir := t.TempDir()
				cmd := exec.CommandContext(t.Context(), os.Args[0])
				cmd.Env = append(os.Environ(), envDrawer+"="+dsn, envDrawerDir+"="+dir, envDrawerIDs+"="+fmt.Sprint(*stormIDs/drawers))
				cmd.Stderr = os.Stderr
				out, err := cmd.StdoutPipe()
				if err == nil {
					err = cmd.Start()
				}
				if err != nil {
					t.Errorf("start of a process: error %v, want none", err)
				}
				return cmd, bufio.NewScanner(out), dir
			}
			read := func(dir string) {
				for i, kind := range drawn {
					f, err := os.Open(filepath.Join(dir, kind))
					if err == nil {
						err = collectors[i].Recorder().AddLines(f)
						f.Close()
					}
					if err != nil {
						t.Errorf("ids of kind %s: error %v, want none", kind, err)
					}
				}
			}
			var wg sync.WaitGroup
			for range drawers {
				wg.Go(func() {
					killed, lines, dir := start()
					if !lines.Scan() || lines.Text() != "half" {
						t.Errorf("a process printed %q, want half", lines.Text())
					}
					killed.Process.Kill()
					killed.Wait()
					read(dir)
					replacement, lines, dir := start()
					for lines.Scan() {
					}
					if err := replacement.Wait(); err != nil {
						t.Errorf("process that was not killed: error %v, want none", err)
					}
					read(dir)
				})
			}
			wg.Wait()
			for i, kind := range drawn {
				report := collectors[i].Verify(t)
				if report.Issued < int64(*stormIDs) {
					t.Errorf("%d ids of kind %s, want %d", report.Issued, kind, *stormIDs)
				}
				t.Logf("%s: %d ids", kind, report.Issued)
			}
		})
	}
}
