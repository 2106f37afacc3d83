// Package fleet simulates many processes that insert through leafsql at once, in virtual time: make fleet.
//
// A process is the production code, from database/sql to the internal pools, with generators, leases and the refresh of
// tables. Only the server is a model ([Server]). Its costs are measured on a real one.
//
// A large fleet does not fit into one program: 1,000 processes with 10 tags take 400 MB. So of a large fleet one of
// [Config.Share] processes is simulated, on a server that is so many times slower. Queues then have the same length in
// seconds. TestShareEqualsWhole compares both.
package fleet

import (
	"context"
	"database/sql"
	sqldriver "database/sql/driver"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/mysql"
	"github.com/leafsql/leafsql/testutil/idcheck"
)

// Config describes a fleet and its load.
type Config struct {
	Processes int           // number of processes
	Share     int           // one of so many processes is simulated
	Tags      int           // each process writes so many tables, each with its own tag
	Rate      float64       // rows that each process writes into each table in a second
	Batch     int           // rows of one INSERT
	Within    time.Duration // processes start within this time
	Snowflake bool          // the keys are snowflakes, with worker ids from leaf_worker
	Limit     int           // maximum number of connections to the server of leaf_alloc; 0: no limit
	Seed      uint64
	Costs     []Costs // for ascending numbers of statements in progress
}

// A Fleet is a running fleet.
type Fleet struct {
	Config
	IDs     []idcheck.Collector // ids of each tag
	record  *Record
	ctx     context.Context
	stop    context.CancelFunc
	writers sync.WaitGroup
	mu      sync.Mutex
	pools   []*sql.DB
}

// Start starts the processes of a fleet. connector opens connections to their server. Callers have to stop the fleet.
func Start(cfg Config, connector sqldriver.Connector, record *Record) *Fleet {
	f := &Fleet{Config: cfg, record: record, IDs: make([]idcheck.Collector, cfg.Tags)}
	f.ctx, f.stop = context.WithCancel(context.Background())
	if cfg.Snowflake {
		prepareRegistry(connector)
	}
	for i := range max(cfg.Processes/cfg.Share, 1) {
		random := rand.New(rand.NewPCG(cfg.Seed, uint64(i)))
		f.writers.Go(func() {
			f.sleep(time.Duration(random.Float64() * float64(cfg.Within)))
			f.startProcess(connector, random)
		})
	}
	return f
}

// prepareRegistry does what leafsql init does before the first start.
func prepareRegistry(connector sqldriver.Connector) {
	db := sql.OpenDB(connector)
	defer db.Close()
	open := func(context.Context) (worker.Source, error) { return mysql.Open(db, mysql.Config{}), nil }
	cfg := worker.Config{NewRegistry: true, Layout: layout.String(), Logger: slog.New(slog.DiscardHandler)}
	if err := worker.Prepare(context.Background(), open, cfg); err != nil {
		panic(err)
	}
}

func (f *Fleet) sleep(d time.Duration) {
	select {
	case <-time.After(d):
	case <-f.ctx.Done():
	}
}

// layout begins before the virtual time of package synctest.
var layout, _ = snowflake.ParseLayout("41-10-12@1999-01-01")

// startProcess starts a process with one writer for each table.
func (f *Fleet) startProcess(connector sqldriver.Connector, random *rand.Rand) {
	cfg := driver.NewConfig()
	cfg.MySQL, cfg.Logger = nil, slog.New(slog.DiscardHandler)
	cfg.Tables = []driver.Rule{{Table: "*"}}
	if f.Snowflake {
		cfg.Tables[0].Column, cfg.Tables[0].Kind = "id", driver.Snowflake
		cfg.Snowflake = layout
	}
	c, err := driver.Wrap(connector, cfg)
	if err != nil {
		panic(err)
	}
	db := sql.OpenDB(c)
	db.SetMaxIdleConns(f.Tags)
	f.mu.Lock()
	f.pools = append(f.pools, db)
	f.mu.Unlock()
	for tag := range f.Tags {
		text := fmt.Sprintf("INSERT INTO t%d (a) VALUES (1)%s", tag, strings.Repeat(", (1)", f.Batch-1))
		own := rand.New(rand.NewPCG(random.Uint64(), uint64(tag)))
		f.writers.Go(func() { f.write(db, text, f.IDs[tag].Recorder(), own) })
	}
}

// write inserts rows at random times until the fleet is stopped.
func (f *Fleet) write(db *sql.DB, text string, issued *idcheck.Recorder, random *rand.Rand) {
	pause := float64(f.Batch) / f.Rate * float64(time.Second)
	for f.sleep(time.Duration(random.ExpFloat64() * pause)); f.ctx.Err() == nil; f.sleep(time.Duration(random.ExpFloat64() * pause)) {
		began := time.Now()
		res, err := db.ExecContext(f.ctx, text)
		if f.ctx.Err() != nil {
			return
		}
		f.record.noteInsert(time.Since(began), f.Batch, err)
		if err == nil {
			first, _ := res.LastInsertId()
			issued.Add(first, f.Batch)
		}
	}
}

// Stop stops all processes.
func (f *Fleet) Stop() {
	f.record.finish()
	f.stop()
	f.writers.Wait()
	var closing sync.WaitGroup
	for _, db := range f.pools {
		closing.Go(func() { db.Close() })
	}
	closing.Wait()
}
