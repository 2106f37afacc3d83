//go:build storm

package chaos

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos"
)

// writerEnv is the environment variable that makes the test binary run as a writer. It holds the order as JSON.
const writerEnv = "LEAFSQL_CHAOS_WRITER"

// An order is the task of one life of a writer.
type order struct {
	DSN     string
	Process int
	Life    int
	Rows    int
	Batch   int           // rows per statement
	Pause   time.Duration // from one statement of a goroutine to the next
}

// goroutines is the number of goroutines in each writer that insert concurrently.
const goroutines = 2

// source names a source of worker ids like nacos, but with explicit gRPC ports, since
// those of proxies are arbitrary: through(host:port:grpcPort,…).
const source = "through"

func init() { worker.Register(source, openThrough) }

func openThrough(address string, _ worker.Options) (func(context.Context) (worker.Source, error), error) {
	cfg := nacos.Config{Namespace: "chaos", Service: "chaos"}
	for a := range strings.SplitSeq(address, ",") {
		at := strings.LastIndexByte(a, ':')
		host, port, err := net.SplitHostPort(a[:at])
		if err != nil {
			return nil, err
		}
		s := nacos.Server{Host: host}
		if s.Port, err = strconv.Atoi(port); err != nil {
			return nil, err
		}
		if s.GRPCPort, err = strconv.Atoi(a[at+1:]); err != nil {
			return nil, err
		}
		cfg.Servers = append(cfg.Servers, s)
	}
	return func(ctx context.Context) (worker.Source, error) { return nacos.Open(ctx, cfg) }, nil
}

// write runs one life of a writer. It prints a line for each statement: the
// number of acknowledged rows, or a ! and the error.
func write() error {
	var o order
	if err := json.Unmarshal([]byte(os.Getenv(writerEnv)), &o); err != nil {
		return err
	}
	db, err := sql.Open(driver.Name, o.DSN)
	if err != nil {
		return err
	}
	defer db.Close() // gives the worker id back
	db.SetMaxIdleConns(goroutines)
	row := fmt.Sprintf("(%d,%d)", o.Process, o.Life)
	text := "INSERT INTO events (process, life) VALUES " + row + strings.Repeat(","+row, o.Batch-1)
	out := bufio.NewWriter(os.Stdout)
	var (
		mu   sync.Mutex
		wg   sync.WaitGroup
		left atomic.Int64
	)
	left.Store(int64(o.Rows))
	say := func(line string) {
		mu.Lock()
		defer mu.Unlock()
		fmt.Fprintln(out, line)
		out.Flush()
	}
	for range goroutines {
		wg.Go(func() {
			for left.Add(int64(-o.Batch)) > int64(-o.Batch) {
				began := time.Now()
				for {
					ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
					_, err := db.ExecContext(ctx, text)
					cancel()
					if err == nil {
						break
					}
					say("!" + strings.ReplaceAll(err.Error(), "\n", "; "))
					time.Sleep(o.Pause)
				}
				say(strconv.Itoa(o.Batch))
				time.Sleep(o.Pause - time.Since(began))
			}
		})
	}
	wg.Wait()
	return nil
}
