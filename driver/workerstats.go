package driver

import (
	"cmp"
	"time"

	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
)

// WorkerStats are of the worker id that snowflakes are made with. What is not
// known is the zero value.
type WorkerStats struct {
	Phase  string // "idle": no id was wanted yet; "searching", "waiting", "holding", "closed"
	Worker int    // the worker id held, or held last; -1: none yet
	Owner  string // as the registry shows it: host and process id
	Source string // leafWorker's name without its address, such as "nacos"; "" for a WorkerSource
	Layout snowflake.Layout

	Since time.Time // when the worker id was taken
	Start time.Time // the first time that may go into an id
	Limit time.Time // the last; zero while none may

	// ClockOffset is how far this machine's clock is ahead of the registry's;
	// 0 also where the registry shows none.
	ClockOffset time.Duration

	Err  error     // why there is no worker id, or why its last renewal failed
	Next time.Time // when the next search or renewal is
}

func (c *Connector) workerStats() *WorkerStats {
	g := c.ids.snowflakes
	if g == nil {
		return nil
	}
	var source string
	if c.cfg.WorkerSource == nil {
		source, _, _ = worker.ParseSpec(cmp.Or(c.cfg.Worker, defaultWorker))
	}
	s := g.Worker()
	return &WorkerStats{
		Phase: s.Phase.String(), Worker: s.Worker, Owner: s.Owner, Source: source, Layout: g.key.layout,
		Since: s.Since, Start: s.Start, Limit: s.Limit, ClockOffset: s.ClockOffset, Err: s.Err, Next: s.Next,
	}
}
