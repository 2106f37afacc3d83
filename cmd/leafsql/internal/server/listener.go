package server

import (
	"bytes"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/net/netutil"
)

// connections counts the open connections.
type connections struct {
	open atomic.Int64
	max  int64
	log  *slog.Logger

	mu         sync.Mutex
	byClient   map[string]int // number of connections by the client's address
	lastWarned int64          // number of open connections in the last warning; 0: no warning since half of them were free
}

func newConnections(most int, log *slog.Logger) *connections {
	return &connections{max: int64(most), log: log, byClient: make(map[string]int)}
}

// scarceFrom returns the number of open connections from which on free connections are scarce. Then answers close their
// connections, so that idle clients do not lock out other clients.
func (c *connections) scarceFrom() int64 { return c.max - max(1, c.max/8) + 1 }

func (c *connections) areScarce() bool { return c.open.Load() >= c.scarceFrom() }

// add adds n, 1 or -1, to a client's connections, and logs when connections become scarce, when none is free,
// and when half of them are free again.
func (c *connections) add(client string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.open.Add(int64(n))
	if c.byClient[client] += n; c.byClient[client] == 0 {
		delete(c.byClient, client)
	}
	switch {
	case open == c.max && c.lastWarned < c.max:
		c.lastWarned = open
		c.log.Warn("leafsql: all connections are in use, and new ones wait", c.logAttrs(open)...)
	case open >= c.scarceFrom() && c.lastWarned == 0:
		c.lastWarned = open
		c.log.Warn("leafsql: few connections are free, so responses close their connections", c.logAttrs(open)...)
	case open <= c.max/2 && c.lastWarned > 0:
		c.lastWarned = 0
		c.log.Info("leafsql: half of the connections are free again", "open", open)
	}
}

// logAttrs returns the attributes of a log line: the number of connections, the client with most of them, and a
// hint.
func (c *connections) logAttrs(open int64) []any {
	client, n := "", 0
	for from, k := range c.byClient {
		if k > n {
			client, n = from, k
		}
	}
	return []any{"open", open, "limit", c.max, "client", client, "client_open", n, "hint", "close idle connections in that client, or raise -max-connections"}
}

// limitListener returns a listener that keeps at most c.most connections open.
func (c *connections) limitListener(l net.Listener) net.Listener {
	return countingListener{netutil.LimitListener(l, int(c.max)), c}
}

type countingListener struct {
	net.Listener
	connections *connections
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	client, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	l.connections.add(client, 1)
	return &countedConn{Conn: c, onClose: sync.OnceFunc(func() { l.connections.add(client, -1) })}, nil
}

// A countedConn changes answers with status 501 and 505 to 400. Without TLS, net/http sends them by itself for an
// unsupported transfer encoding or HTTP version, but alerts and balancers treat a status of 5xx as a fault of this
// server.
type countedConn struct {
	net.Conn
	onClose func()
}

func (c *countedConn) Close() error {
	c.onClose()
	return c.Conn.Close()
}

var (
	notImplemented = []byte("HTTP/1.1 501 ")
	unknownVersion = []byte("HTTP/1.1 505 ")
)

func (c *countedConn) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, notImplemented) || bytes.HasPrefix(p, unknownVersion) {
		_, err := c.Conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"))
		return len(p), err
	}
	return c.Conn.Write(p)
}
