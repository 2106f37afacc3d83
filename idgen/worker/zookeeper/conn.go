package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-zookeeper/zk"
)

// servers opens connections to the ensemble, one at a time. An interrupted connection is not used again: a client that
// reconnects by itself would send queued requests late, and would never accept a server that was wiped or restored.
type servers struct {
	cfg Config

	mu      sync.Mutex
	inUse   *conn // current connection; nil: none was opened yet, or giveUp has closed it
	closed  bool
	closing sync.WaitGroup // connections that are being closed
}

// conn is one connection and its state.
type conn struct {
	*zk.Conn
	ready  chan struct{} // closed when it has a session
	since  time.Time     // start of the session; set before ready is closed
	giveUp func()        // closes the connection, so that servers opens another one; may be called several times

	mu     sync.Mutex
	epoch  string // epoch of the registry, "" if unknown
	leaves *javaLeaves
}

// sessionTimeout is the timeout of sessions. Nothing depends on it.
const sessionTimeout = 10 * time.Second

var (
	errClosed      = errors.New("leafsql: the ZooKeeper source of worker ids was closed")
	errInterrupted = errors.New("the connection was interrupted")
)

// connection returns a connection that has a session.
func (s *servers) connection(ctx context.Context) (*conn, error) {
	c, err := s.current()
	if err != nil {
		return nil, err
	}
	select {
	case <-c.ready:
		return c, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("leafsql: %s: cannot connect: %w", s.cfg, context.Cause(ctx))
	}
}

func (s *servers) current() (*conn, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return nil, errClosed
	case s.inUse != nil:
		return s.inUse, nil
	}
	c, r := &conn{ready: make(chan struct{})}, &rotation{}
	ready := make(chan struct{}) // closed when c.giveUp is set
	defer close(ready)
	had := false
	var err error
	c.Conn, _, err = zk.Connect(s.cfg.Servers, sessionTimeout, zk.WithHostProvider(r), zk.WithDialer(r.dial), zk.WithLogger(log.New(io.Discard, "", 0)), zk.WithEventCallback(func(e zk.Event) {
		switch {
		case e.Type != zk.EventSession:
		case e.State == zk.StateHasSession && !had:
			had = true
			go func() { <-ready; s.login(c) }()
		case e.State == zk.StateDisconnected && had:
			r.interrupted.Store(true)
			go func() { <-ready; c.giveUp() }()
		}
	}))
	if err != nil {
		return nil, fmt.Errorf("leafsql: %s: %w", s.cfg, err)
	}
	c.giveUp = sync.OnceFunc(func() {
		s.mu.Lock()
		if s.inUse == c {
			s.inUse = nil
		}
		s.closing.Add(1)
		s.mu.Unlock()
		go func() { defer s.closing.Done(); c.Close() }()
	})
	s.inUse = c
	return c, nil
}

// rotation cycles through the servers, beginning with a random one. Host names are resolved when a connection is opened: the
// client's own provider would resolve all of them first, without a timeout. If many clients connect together, a
// server drops some connections, but accepts them soon afterwards. The first retries are therefore quick.
type rotation struct {
	servers      []string
	tried        int
	attemptTimer *time.Timer // ends an attempt without a session
	interrupted  atomic.Bool // the connection was interrupted, and the client must not reconnect
}

// shortRounds is the number of rounds with a short timeout.
const shortRounds = 3

func (r *rotation) Init(servers []string) error { r.servers = servers; return nil }
func (r *rotation) Len() int                    { return len(r.servers) }
func (r *rotation) Connected()                  { r.attemptTimer.Stop() }

// Next returns the next server, and whether the client has to wait a second first.
func (r *rotation) Next() (server string, again bool) {
	server = r.servers[r.tried%len(r.servers)]
	begins := r.tried%len(r.servers) == 0
	r.tried++
	return server, begins && r.round() >= shortRounds
}

func (r *rotation) round() int { return (r.tried - 1) / len(r.servers) }

// dial opens a connection, and starts attemptTimer. Without this timer, the client would wait for over a minute for a server that
// accepts the connection but creates no session, such as a starting or frozen server.
func (r *rotation) dial(network, address string, _ time.Duration) (net.Conn, error) {
	patience, most := 3*time.Second, 3*time.Second
	if r.round() < shortRounds {
		patience, most = 300*time.Millisecond, time.Second
	}
	var c net.Conn
	err := errInterrupted
	if !r.interrupted.Load() {
		c, err = net.DialTimeout(network, address, patience)
	}
	if err == nil {
		r.attemptTimer = time.AfterFunc(most, func() { c.Close() })
	}
	if err != nil && r.round() < shortRounds {
		time.Sleep(20 * time.Millisecond) // the connection was refused at once
	}
	return c, err
}

// login authenticates a new connection and marks it as usable.
func (s *servers) login(c *conn) {
	if s.cfg.Username != "" {
		if err := c.AddAuth("digest", []byte(s.cfg.Username+":"+s.cfg.Password)); err != nil {
			c.giveUp()
			return
		}
	}
	c.since = time.Now()
	close(c.ready)
}

// close ends all connections.
func (s *servers) close() error {
	s.mu.Lock()
	s.closed = true
	c := s.inUse
	s.mu.Unlock()
	if c != nil {
		c.giveUp()
	}
	s.closing.Wait()
	return nil
}

// call runs a call of the client, which has no context. If ctx ends first, call ends the connection, so that queued requests
// are not sent later.
func call[T any](ctx context.Context, c *conn, f func() (T, error)) (T, error) {
	type answer struct {
		v   T
		err error
	}
	answered := make(chan answer, 1)
	go func() {
		v, err := f()
		answered <- answer{v, err}
	}()
	select {
	case a := <-answered:
		return a.v, a.err
	case <-ctx.Done():
		c.giveUp()
		var none T
		return none, context.Cause(ctx)
	}
}

// multi executes all operations or none.
func multi(ctx context.Context, c *conn, ops ...any) ([]zk.MultiResponse, error) {
	return call(ctx, c, func() ([]zk.MultiResponse, error) {
		res, err := c.Multi(ops...)
		if err != nil {
			return nil, err
		}
		for _, r := range res {
			for _, why := range []error{zk.ErrBadVersion, zk.ErrNoNode, zk.ErrNodeExists, zk.ErrNoAuth, zk.ErrNotEmpty} {
				if errors.Is(r.Error, why) {
					return nil, why
				}
			}
		}
		for _, r := range res {
			if r.Error != nil {
				return nil, r.Error
			}
		}
		return res, nil
	})
}
