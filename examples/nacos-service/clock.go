package main

import (
	"context"
	"database/sql"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// openAhead opens a pool with the leases and ids of a machine with a clock that is
// ahead by d. The demo cannot set the clock of a single process. Instead it shifts
// the times in the two places that depend on the clock: the worker id's document,
// when it is read or written, and the ids.
func openAhead(ctx context.Context, dsn string, d time.Duration) (*sql.DB, error) {
	cfg, err := driver.ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	open, err := worker.Lookup(cfg.Worker, cfg.WorkerOptions)
	if err != nil {
		return nil, err
	}
	layout := snowflake.Leaf
	layout.Epoch -= d.Milliseconds()
	cfg.Snowflake = layout
	cfg.AnyClock = true // with a clock this far ahead, worker ids are normally refused
	cfg.WorkerSource = func(ctx context.Context) (worker.Source, error) {
		src, err := open(ctx)
		if err != nil {
			return worker.Source{}, err
		}
		slots := aheadSlots{src.Slots, d, layout}
		src.Slots = slots
		now, told := src.Time, src.OnChange
		src.Time = func(ctx context.Context) (time.Time, error) {
			t, err := now(ctx)
			return t.Add(-d), err
		}
		src.OnChange = func(ctx context.Context, id int, d worker.Doc, held bool) {
			told(ctx, id, slots.shiftAhead(d), held)
		}
		return src, nil
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return nil, err
	}
	return sql.OpenDB(connector), nil
}

// aheadSlots converts slots for a process with a clock that is ahead: it shifts times
// into the past when they are read, and back when they are written. The layout's
// epoch, which is in the registry's own document, is shifted too.
type aheadSlots struct {
	worker.Slots
	ahead  time.Duration
	layout snowflake.Layout
}

func (a aheadSlots) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	d, v, err := a.Slots.Get(ctx, slot)
	return a.shiftBack(d), v, err
}

func (a aheadSlots) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	return a.Slots.Put(ctx, slot, a.shiftAhead(d), expected)
}

func (a aheadSlots) shiftBack(d worker.Doc) worker.Doc {
	d.Owner = strings.Replace(d.Owner, snowflake.Leaf.String(), a.layout.String(), 1)
	return shiftTimes(d, -a.ahead)
}

func (a aheadSlots) shiftAhead(d worker.Doc) worker.Doc {
	d.Owner = strings.Replace(d.Owner, a.layout.String(), snowflake.Leaf.String(), 1)
	return shiftTimes(d, a.ahead)
}

// shiftTimes shifts the time of a document, and returns a document without a time unchanged.
func shiftTimes(d worker.Doc, by time.Duration) worker.Doc {
	if d.HighWater.UnixMilli() > 0 {
		d.HighWater = d.HighWater.Add(by)
	}
	return d
}
