package proxy

import (
	"context"
	"sync"
	"time"
)

// A fillContext is the context of one command, with the time limit for its ids. The time begins at the first use,
// since most commands never wait. A timer for each command, as with context.WithTimeout, would cost about 3 µs of
// the 32 to 70 µs that a command takes, as make bench-proxy shows.
type fillContext struct {
	context.Context // the session's context
	limit           time.Duration

	once   sync.Once
	timed  context.Context
	cancel context.CancelFunc
}

// newFillContext returns the context of a command. The caller has to call stop.
func (s *session) newFillContext() *fillContext {
	return &fillContext{Context: s.ctx, limit: s.proxy.cfg.FillTimeout}
}

func (b *fillContext) startTimer() context.Context {
	b.once.Do(func() { b.timed, b.cancel = context.WithTimeout(b.Context, b.limit) })
	return b.timed
}

func (b *fillContext) Deadline() (time.Time, bool) { return b.startTimer().Deadline() }
func (b *fillContext) Done() <-chan struct{}       { return b.startTimer().Done() }
func (b *fillContext) Err() error                  { return b.startTimer().Err() }
func (b *fillContext) Value(key any) any           { return b.startTimer().Value(key) }

// stop releases the timer after the command has been served.
func (b *fillContext) stop() {
	b.once.Do(func() { b.timed, b.cancel = b.Context, func() {} })
	b.cancel()
}
