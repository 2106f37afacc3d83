package pool

import (
	"context"
	"database/sql/driver"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// slow is a server that takes a given time for each connection.
type slow struct {
	takes       atomic.Int64 // time for a connection in nanoseconds
	dials, open atomic.Int64
}

func (s *slow) Connect(ctx context.Context) (driver.Conn, error) {
	s.dials.Add(1)
	select {
	case <-time.After(time.Duration(s.takes.Load())):
		s.open.Add(1)
		return &slowConn{failingConn{f: &failing{}}, s}, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}
func (s *slow) Driver() driver.Driver { return nil }

type slowConn struct {
	failingConn
	s *slow
}

func (c *slowConn) Close() error {
	c.s.open.Add(-1)
	return nil
}

// TestLateConnectionIsUsedOrClosed: a connection that is ready too late is used by the next request, is closed
// if there is no request, and does not outlive its pool.
func TestLateConnectionIsUsedOrClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server := new(slow)
		server.takes.Store(int64(12 * time.Second))
		db := Open(server, 2)
		ask := func(within time.Duration) error {
			ctx, cancel := context.WithTimeout(t.Context(), within)
			defer cancel()
			c, err := db.Conn(ctx)
			if err == nil {
				c.Raw(func(any) error { return driver.ErrBadConn })
			}
			return err
		}
		if err := ask(4 * time.Second); !errors.Is(err, context.DeadlineExceeded) {
			t.Error(err)
		}
		time.Sleep(10 * time.Second)
		if err := ask(time.Second); err != nil || server.dials.Load() > 2 {
			t.Error(err, server.dials.Load())
		}
		if err := ask(time.Minute); err != nil || server.dials.Load() > 5 { // one every 5 s
			t.Error(err, server.dials.Load())
		}
		if time.Sleep(time.Minute); server.open.Load() != 0 {
			t.Error(server.open.Load(), "connections are open, for nobody")
		}

		server.takes.Store(int64(time.Hour))
		began := time.Now()
		c, err := db.Conn(context.Background())
		if took := time.Since(began); err != errSilentServer || took != connectTime || server.dials.Load() > 5+13 {
			t.Error(c, err, took, server.dials.Load())
		}
		for range 100 {
			if err := ask(time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Error(err)
			}
		}
		if n := server.dials.Load(); n > 5+13+3*maxDials {
			t.Error(n, "connections were begun")
		}
		server.takes.Store(int64(time.Second))
		ask(500 * time.Millisecond)
		time.Sleep(time.Minute)
		ask(500 * time.Millisecond)
		time.Sleep(time.Second)
		if server.open.Load() != 1 {
			t.Error(server.open.Load(), "connections are kept")
		}
		db.Close()
		synctest.Wait()
		if server.open.Load() != 0 {
			t.Error(server.open.Load(), "connections are open after Close")
		}
	})
}
