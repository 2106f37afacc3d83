package driver

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/counters"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/spec"
)

// Stats is a snapshot of a Connector's counters, which only rise, and of its current
// state. Reading it does not query a server.
type Stats struct {
	Tables []TableStats // tables that statements have named, sorted by name
	Tags   []TagStats   // tags in use, sorted by name; includes other Connectors that share the store
	Worker *WorkerStats // worker id for snowflakes; nil if no snowflakes are configured
}

// TableStats holds statistics of one configured table, or, with an empty Name, of refused
// statements with an unknown table: the generator, the highest key that the column can
// hold, the number of filled statements and their ids, and the number of refused
// statements with the last refusal.
type TableStats = counters.Stats

// TagStats holds statistics of one row of leaf_alloc or t_sequence.
type TagStats struct {
	Tag      string // biz_tag, or name of the sequence
	Sequence bool
	segment.Stats
}

// WorkerStats is the status of the worker id for snowflakes. Unknown values are zero.
type WorkerStats struct {
	worker.Status
	Source string // leafWorker's name without its address, such as "nacos"; "custom" for a WorkerSource
	Layout snowflake.Layout
}

// statsTimeout is the maximum wait for a connection of a pool with a wrapped
// driver.
const statsTimeout = 5 * time.Second

// StatsOf returns the Stats of a pool that uses mysql-leaf, opened by sql.Open, or by
// sql.OpenDB with a Connector. If another package such as otelsql wraps the driver,
// StatsOf briefly takes a connection from the pool, and waits at most 5 s for it. It
// returns an error if the pool does not use mysql-leaf. If the pool provides no connection,
// it returns the pool's error, such as context.DeadlineExceeded.
func StatsOf(db *sql.DB) (Stats, error) {
	c, err := inspectPool(db)
	if err != nil {
		return Stats{}, err
	}
	return c.(*Connector).Stats(), nil
}

// inspectPool implements inspect.Pool.
func inspectPool(db *sql.DB) (driver.Connector, error) {
	ctx, cancel := context.WithTimeout(context.Background(), statsTimeout)
	defer cancel()
	return connectorOf(ctx, db)
}

// storeOf implements inspect.Store.
func storeOf(connector driver.Connector) any { return connector.(*Connector).current().store }

// Ready waits until a pool can insert rows. It opens a connection if none is idle and, if a rule
// of Config.Tables gives its tables snowflakes, waits for a worker id, even if no table matches
// the rule yet. The first INSERT would otherwise lease it. Without such a rule it leases none, even
// for a Connector that has a [Connector.Snowflake]. A program calls Ready before it accepts
// requests, and in its readiness probe, with a context that ends. If a search for a worker id
// fails, Ready waits for the next one. The error is the pool's if the server does not answer, a
// *snowflake.LeaseError at once if its cause is a *worker.UnusableError, which an operator has to
// resolve, or wraps the context's cause together with the reason why there is no worker id yet: the
// *snowflake.LeaseError of the last search, if one has failed. It is safe to call Ready again after
// an error, because the search continues.
func Ready(ctx context.Context, db *sql.DB) error {
	if err := db.PingContext(ctx); err != nil {
		return err
	}
	c, err := connectorOf(ctx, db)
	if err != nil {
		return err
	}
	if !hasSnowflakeTables(c.cfg) {
		return nil
	}
	for {
		status := c.Worker()
		_, err := c.Snowflake().Next(ctx, 1)
		_, failed := errors.AsType[*snowflake.LeaseError](err)
		_, unusable := errors.AsType[*worker.UnusableError](err)
		if !failed || unusable {
			return err
		}
		select {
		case <-status.Changed():
		case <-ctx.Done():
			return fmt.Errorf("leafsql: the pool is not ready: %w: %w", context.Cause(ctx), errprefix.Trim(err))
		}
	}
}

// connectorOf returns the Connector of a pool.
func connectorOf(ctx context.Context, db *sql.DB) (*Connector, error) {
	if d, ok := db.Driver().(sqlDriver); ok && d.connector != nil {
		return d.connector, nil
	}
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
			case interface{ Raw() driver.Conn }: // such as otelsql's
				inner = c.Raw()
			default:
				inner = nil
			}
		}
		return nil
	})
	if err == nil && found == nil {
		err = fmt.Errorf("leafsql: the pool's driver is %T; open it as %q, or use the Connector", db.Driver(), Name)
	}
	return found, err
}

// Stats returns a snapshot of the Connector's statistics.
func (c *Connector) Stats() Stats {
	c = c.current()
	tags := lo.Map(c.store.Counters(), func(counter *ids.Counter, _ int) TagStats {
		return TagStats{counter.Name, counter.Sequence, counter.Stats()}
	})
	slices.SortFunc(tags, func(a, b TagStats) int { return cmp.Compare(a.Tag, b.Tag) })
	return Stats{Tables: c.tables.Counts.Snapshot(), Tags: tags, Worker: c.workerStats()}
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
