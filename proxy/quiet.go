package proxy

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A rarely lets a line that clients can cause into the log once a minute at most.
type rarely struct{ next atomic.Int64 }

// of returns the log, or one that drops the line.
func (r *rarely) of(log *slog.Logger) *slog.Logger {
	now, next := time.Now().Unix(), r.next.Load()
	if now >= next && r.next.CompareAndSwap(next, now+60) {
		return log
	}
	return slog.New(slog.DiscardHandler)
}
