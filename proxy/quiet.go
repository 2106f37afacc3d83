package proxy

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A rarely limits a log line that clients can cause to one a minute.
type rarely struct{ next atomic.Int64 }

// of returns log, or a logger that discards the line.
func (r *rarely) of(log *slog.Logger) *slog.Logger {
	now, next := time.Now().Unix(), r.next.Load()
	if now >= next && r.next.CompareAndSwap(next, now+60) {
		return log
	}
	return slog.New(slog.DiscardHandler)
}
