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
			t.Errorf("request: error %v, want DeadlineExceeded", err)
		}
		time.Sleep(10 * time.Second)
		if err := ask(time.Second); err != nil || server.dials.Load() > 2 {
			t.Errorf("request after the late connection: error %v, %d dials; want none and at most 2", err, server.dials.Load())
		}
		if err := ask(time.Minute); err != nil || server.dials.Load() > 5 { // one every 5 s
			t.Errorf("request: error %v, %d dials; want none and at most 5", err, server.dials.Load())
		}
		if time.Sleep(time.Minute); server.open.Load() != 0 {
			t.Errorf("%d connections are open without a request, want 0", server.open.Load())
		}

		server.takes.Store(int64(time.Hour))
		began := time.Now()
		c, err := db.Conn(context.Background())
		if took := time.Since(began); err != errSilentServer || took != connectTime || server.dials.Load() > 5+13 {
			t.Errorf("connection %v, error %v after %v, %d dials; want %v after %v, at most 18 dials", c, err, took, server.dials.Load(), errSilentServer, connectTime)
		}
		for range 100 {
			if err := ask(time.Second); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("request: error %v, want DeadlineExceeded", err)
			}
		}
		if n := server.dials.Load(); n > 5+13+3*maxDials {
			t.Errorf("%d dials, want at most %d", n, 5+13+3*maxDials)
		}
		server.takes.Store(int64(time.Second))
		ask(500 * time.Millisecond)
		time.Sleep(time.Minute)
		ask(500 * time.Millisecond)
		time.Sleep(time.Second)
		if server.open.Load() != 1 {
			t.Errorf("%d connections are open, want 1", server.open.Load())
		}
		db.Close()
		synctest.Wait()
		if server.open.Load() != 0 {
			t.Errorf("%d connections are open after Close, want 0", server.open.Load())
		}
	})
}
