package driver

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/counters"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/spec"
)

// Stats is what a Connector believes and has done since it was made: counts
// rise, the rest is as it stands now. Reading it asks no server.
type Stats struct {
	Tables []TableStats // that statements named, by name
	Tags   []TagStats   // that ids came from, by name; of all Connectors that share the store
	Worker *WorkerStats // of the worker id for snowflakes; nil: no source is configured
}

// TableStats are of one configured table, or of refused statements whose table
// is not known (Name is "" then): its generator and the highest key that its column
// can hold, the statements that got ids and the ids that they got, and the refused
// statements with the last refusal.
type TableStats = counters.Stats

// TagStats are of one row of leaf_alloc, or of t_sequence.
type TagStats struct {
	Tag      string // or the sequence's name
	Sequence bool
	segment.Stats
}

// WorkerStats are the status of the worker id that snowflakes are made with. Values that are not
// known are zero.
type WorkerStats struct {
	worker.Status
	Source string // leafWorker's name without its address, such as "nacos"; "custom" for a WorkerSource
	Layout snowflake.Layout
}

// statsTimeout bounds the wait for a connection of a pool whose driver is
// wrapped.
const statsTimeout = 5 * time.Second

// StatsOf returns the Stats of a pool that was opened through mysql-leaf: by
// sql.Open, or by sql.OpenDB with a Connector. Through a package that wraps the
// driver (otelsql and the like) it borrows a connection of the pool for a
// moment to find out; it waits 5 s at most for one. The error says that the
// pool is not one of mysql-leaf's, or that none could be had.
func StatsOf(db *sql.DB) (Stats, error) {
	c, err := connectorOf(db)
	if err != nil {
		return Stats{}, err
	}
	return c.Stats(), nil
}

// connectorOf finds the Connector of a pool.
func connectorOf(db *sql.DB) (*Connector, error) {
	if d, ok := db.Driver().(sqlDriver); ok && d.connector != nil {
		return d.connector, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	dc, err := db.Conn(ctx)
	if err != nil {
		return nil, err
	}
	defer dc.Close()
	var found *Connector
	err = dc.Raw(func(inner any) error {
		for inner != nil && found == nil {
			switch c := inner.(type) {
			case *conn:
				found = c.connector
			case interface{ Raw() driver.Conn }: // of otelsql, for one
				inner = c.Raw()
			default:
				inner = nil
			}
		}
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("leafsql: StatsOf: the pool's driver is %T; open it as %q, or ask the Connector", db.Driver(), Name)
	}
	return found, err
}

// Stats returns the Connector's.
func (c *Connector) Stats() Stats {
	c = c.current()
	tags := lo.Map(c.store.Counters(), func(counter *ids.Counter, _ int) TagStats {
		return TagStats{counter.Name, counter.Sequence, counter.Stats()}
	})
	slices.SortFunc(tags, func(a, b TagStats) int { return cmp.Compare(a.Tag, b.Tag) })
	return Stats{Tables: c.tables.Counts.All(), Tags: tags, Worker: c.workerStats()}
}

func (c *Connector) workerStats() *WorkerStats {
	g := c.snowflakes
	if g == nil {
		return nil
	}
	source := "custom"
	if c.cfg.WorkerSource == nil {
		source, _, _ = spec.Parse(cmp.Or(c.cfg.Worker, defaultWorker))
	}
	return &WorkerStats{Status: g.Worker(), Source: source, Layout: g.Layout()}
}
