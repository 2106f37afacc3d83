package main

import (
	"bufio"
	"context"
	"database/sql"
	"encoding/json"
	"io"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
)

// workerEnv is the environment variable that makes this program a worker.
const workerEnv = "LEAFSQL_QUICKSTART_WORKER"

// goroutines is the number of goroutines that insert in each worker, half of them
// into each shard.
const goroutines = 4

// A task is a line to a worker: insert that many orders with the driver.
type task struct {
	Driver string
	Shards [2]string
	Orders int
}

// A note is a line from a worker.
type note struct {
	Orders  int    // orders inserted since the last note
	Done    bool   // the task is finished
	Fetches int64  // ranges this worker fetched from leaf_alloc since it started
	Error   string // error if the task failed
}

// work runs a worker process: it carries out the tasks from in until there are no more. A worker is like any
// application server; the demo needs several of them, each with its own pools.
func work(in io.Reader, out io.Writer) {
	mysql.SetLogger(&mysql.NopLogger{})
	w := worker{notes: json.NewEncoder(out), pools: map[string]*pool{}}
	for lines := bufio.NewScanner(in); lines.Scan(); {
		var t task
		err := json.Unmarshal(lines.Bytes(), &t)
		if err == nil {
			err = w.carryOut(t)
		}
		if err != nil {
			w.notes.Encode(note{Error: err.Error()})
			os.Exit(1)
		}
	}
}

type worker struct {
	notes *json.Encoder
	pools map[string]*pool
}

// A pool is the pool of a shard, with the only statement that runs on it.
type pool struct {
	db      *sql.DB
	insert  *sql.Stmt
	fetches func() int64
}

func (w *worker) pool(driverName, dsn string) (*pool, error) {
	if p := w.pools[dsn]; p != nil {
		return p, nil
	}
	db, err := sql.Open(driverName, dsn)
	if err != nil {
		return nil, err
	}
	p := &pool{db: db, fetches: func() (n int64) {
		stats, _ := driver.StatsOf(db) // a pool of the plain driver has none
		for _, tag := range stats.Tags {
			n += tag.Fetches
		}
		return n
	}}
	p.db.SetMaxIdleConns(goroutines)
	if p.insert, err = p.db.Prepare("INSERT INTO orders (customer_id, total) VALUES (?, ?)"); err != nil {
		return nil, err
	}
	w.pools[dsn] = p
	return p, nil
}

func (w *worker) carryOut(t task) error {
	var shards [2]*pool
	for i, dsn := range t.Shards {
		var err error
		if shards[i], err = w.pool(t.Driver, dsn); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	var wg sync.WaitGroup
	var started, inserted atomic.Int64
	for g := range goroutines {
		wg.Go(func() {
			for n := started.Add(1); n <= int64(t.Orders) && ctx.Err() == nil; n = started.Add(1) {
				if _, err := shards[g%2].insert.ExecContext(ctx, n, n%1000); err != nil {
					cancel(err)
					return
				}
				inserted.Add(1)
			}
		})
	}
	finished := make(chan struct{})
	go func() { wg.Wait(); close(finished) }()
	tick := time.NewTicker(100 * time.Millisecond)
	defer tick.Stop()
	for told := int64(0); ; {
		n := note{}
		select {
		case <-finished:
			if err := context.Cause(ctx); err != nil {
				return err
			}
			n.Done = true
			// The pools of both shards share the segments of one leaf_alloc, so each counts the fetches of both.
			n.Fetches = max(shards[0].fetches(), shards[1].fetches())
		case <-tick.C:
		}
		now := inserted.Load()
		n.Orders, told = int(now-told), now
		if err := w.notes.Encode(n); err != nil || n.Done {
			return err
		}
	}
}
