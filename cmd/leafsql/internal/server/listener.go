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
	most int64
	log  *slog.Logger

	mu   sync.Mutex
	from map[string]int // number of connections by the client's address
	told int64          // number of open connections in the last warning; 0: none since half of them were free
}

func newConnections(most int, log *slog.Logger) *connections {
	return &connections{most: int64(most), log: log, from: make(map[string]int)}
}

// few returns the number of open connections from which on they are scarce. Answers close their connections
// then, so that idle clients do not lock out others.
func (c *connections) few() int64 { return c.most - max(1, c.most/8) + 1 }

func (c *connections) scarce() bool { return c.open.Load() >= c.few() }

// add adds n, 1 or -1, to a client's connections, and logs when connections become scarce, when none is free,
// and when half of them are free again.
func (c *connections) add(client string, n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	open := c.open.Add(int64(n))
	if c.from[client] += n; c.from[client] == 0 {
		delete(c.from, client)
	}
	switch {
	case open == c.most && c.told < c.most:
		c.told = open
		c.log.Warn("leafsql: all connections are taken, and further ones wait", c.taken(open)...)
	case open >= c.few() && c.told == 0:
		c.told = open
		c.log.Warn("leafsql: few connections are left, so answers close theirs", c.taken(open)...)
	case open <= c.most/2 && c.told > 0:
		c.told = 0
		c.log.Info("leafsql: half of the connections are free again", "open", open)
	}
}

// taken returns the attributes of a log line: the number of connections, the client with most of them, and a
// hint.
func (c *connections) taken(open int64) []any {
	client, n := "", 0
	for from, k := range c.from {
		if k > n {
			client, n = from, k
		}
	}
	return []any{"open", open, "limit", c.most, "most from", client, "of these", n, "way out", "end the connections that a client leaves idle, or raise -max-connections"}
}

// limit returns a listener that keeps at most c.most connections open.
func (c *connections) limit(l net.Listener) net.Listener {
	return countingListener{netutil.LimitListener(l, int(c.most)), c}
}

type countingListener struct {
	net.Listener
	all *connections
}

func (l countingListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	client, _, _ := net.SplitHostPort(c.RemoteAddr().String())
	l.all.add(client, 1)
	return &countedConn{Conn: c, gone: sync.OnceFunc(func() { l.all.add(client, -1) })}, nil
}

// A countedConn changes the answers 501 and 505, which net/http sends by itself without TLS for an unsupported
// transfer encoding or version of HTTP, to 400. Alerts and balancers take an answer of 5xx for a fault of this
// server.
type countedConn struct {
	net.Conn
	gone func()
}

func (c *countedConn) Close() error {
	c.gone()
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
