package proxy

import (
	"context"
	"sync"
	"time"
)

// A fillContext is the context in which package driver fills the statements of a session. It ends with the session, or
// if one wait for ids, or for leafsql's own account, reaches the limit. The client's statements may take any time:
// before each command to the server, reset ends the wait, and after it, Deadline and Done return the values of the next
// wait. A wait begins at the first use of the context, since most commands never wait. A timer for each command, as with
// context.WithTimeout, would cost about 3 µs of the 32 to 70 µs that a command takes, as make bench-proxy shows.
type fillContext struct {
	context.Context // the session's context
	limit           time.Duration

	mu     sync.Mutex
	timed  context.Context // nil between waits
	cancel context.CancelFunc
}

func (c *fillContext) startTimer() context.Context {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed == nil {
		c.timed, c.cancel = context.WithTimeout(c.Context, c.limit)
	}
	return c.timed
}

func (c *fillContext) Deadline() (time.Time, bool) { return c.startTimer().Deadline() }
func (c *fillContext) Done() <-chan struct{}       { return c.startTimer().Done() }
func (c *fillContext) Err() error                  { return c.startTimer().Err() }
func (c *fillContext) Value(key any) any           { return c.startTimer().Value(key) }

// reset ends the current wait and releases its timer.
func (c *fillContext) reset() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.timed != nil {
		c.cancel()
		c.timed = nil
	}
}
