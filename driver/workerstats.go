package driver

import (
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// WorkerStats are of the worker id that snowflakes are made with. What is not
// known is the zero value.
type WorkerStats struct {
	Phase  string // "idle": no id was wanted yet; "searching"; "holding"
	Worker int    // the worker id held; -1: none, or not known
	Source string // leafWorker's name without its address, such as "nacos"
	Layout snowflake.Layout

	Since time.Time // when the worker id was taken
	Limit time.Time // the last time that may go into an id

	// ClockOffset is how far this machine's clock is ahead of the registry's;
	// 0 also where the registry shows none.
	ClockOffset time.Duration

	Err error // why there is no worker id, or why its last renewal failed
}

func (c *Connector) workerStats() *WorkerStats {
	s := c.ids.snowflakes
	if s == nil {
		return nil
	}
	stats := &WorkerStats{Phase: "idle", Worker: -1, Layout: s.key.layout}
	stats.Source, _, _ = worker.ParseSpec(c.cfg.Worker)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.gen.Load() != nil:
		stats.Phase = "holding"
	case s.search != nil || s.err != nil:
		stats.Phase, stats.Err = "searching", s.err
	}
	return stats
}
