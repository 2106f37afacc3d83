package main

import (
	"context"
	"database/sql"
	"io"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// openAhead opens a pool whose leases and ids are those of a machine with its
// clock ahead. Nothing here can set a clock for one process alone. But a clock
// shows only in two places, and both are shifted: the times in the worker id's
// document, as read and as written, and the times in the ids.
func openAhead(ctx context.Context, dsn string, d time.Duration) (*sql.DB, error) {
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	src, err := worker.OpenSource(ctx, cfg.Worker, cfg.WorkerOptions)
	if err != nil {
		return nil, err
	}
	slots := aheadSlots{src.Slots, d.Milliseconds()}
	held := src.Held
	src.Held = func(ctx context.Context, h worker.Holding) {
		h.Doc = slots.shifted(h.Doc, slots.ms)
		held(ctx, h)
	}
	src.Slots = slots
	if cfg.WorkerLease, err = worker.Acquire(ctx, src, worker.Config{Bound: cfg.Lease}); err != nil {
		return nil, err
	}
	layout := snowflake.Leaf
	layout.Epoch -= slots.ms
	cfg.Worker, cfg.WorkerOptions, cfg.Snowflake = "", nil, layout.String()
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// aheadSlots are slots as seen with a clock that is ahead: to it, their times
// are further back.
type aheadSlots struct {
	worker.Slots
	ms int64
}

func (a aheadSlots) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	d, v, err := a.Slots.Get(ctx, slot)
	return a.shifted(d, -a.ms), v, err
}

func (a aheadSlots) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, worker.Result, error) {
	return a.Slots.Put(ctx, slot, a.shifted(d, a.ms), expected)
}

// shifted leaves documents without a time as they are.
func (a aheadSlots) shifted(d worker.Doc, ms int64) worker.Doc {
	if d.HW != 0 {
		d.HW += ms
	}
	return d
}

// Anchor and Close are the nacos source's, which has both.
func (a aheadSlots) Anchor(ctx context.Context) (string, error) {
	return a.Slots.(worker.Anchorer).Anchor(ctx)
}

func (a aheadSlots) Close() error { return a.Slots.(io.Closer).Close() }
