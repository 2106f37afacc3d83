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
// ahead. The demo cannot set a clock for one process alone. But a clock matters
// only in two places, and both are shifted: the times in the worker id's
// document, as read and as written, and the times in the ids.
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

// aheadSlots are slots as seen by a process with a clock that is ahead: for it, their
// times are further in the past. The layout's epoch, which is in the registry's
// own document, is shifted too.
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

// shiftTimes shifts the times of a document, and returns one without a time unchanged.
func shiftTimes(d worker.Doc, by time.Duration) worker.Doc {
	if d.HighWater.UnixMilli() > 0 {
		d.HighWater = d.HighWater.Add(by)
	}
	return d
}
