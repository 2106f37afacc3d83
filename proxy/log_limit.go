package proxy

import (
	"log/slog"
	"sync/atomic"
	"time"
)

// A lineLimiter limits how often a line is logged that clients can cause: once a minute.
type lineLimiter struct{ next atomic.Int64 }

// logger returns log if a minute has passed since it last did, or else a logger that discards the line.
func (r *lineLimiter) logger(log *slog.Logger) *slog.Logger {
	now, next := time.Now().Unix(), r.next.Load()
	if now >= next && r.next.CompareAndSwap(next, now+60) {
		return log
	}
	return slog.New(slog.DiscardHandler)
}
