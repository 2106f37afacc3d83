package server

import (
	"bytes"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"

	"golang.org/x/net/netutil"
)

// connections are those that are open.
type connections struct {
	open atomic.Int64
	most int64
	log  *slog.Logger

	mu   sync.Mutex
	from map[string]int // by the client's address
	told int64          // the number of open ones that the log knows of: 0, few or most
}

func newConnections(most int, log *slog.Logger) *connections {
	return &connections{most: int64(most), log: log, from: make(map[string]int)}
}

// few is from how many on there are few left. Answers close their connections then, so that
// clients that keep many without using them keep no others out.
func (c *connections) few() int64 { return c.most - max(1, c.most/8) + 1 }

func (c *connections) scarce() bool { return c.open.Load() >= c.few() }

// add counts one more from a client, or with -1 one less, and tells the log when they become
// few, when none is left, and when half of them are there again.
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

// taken says how many there are, who has most of them, and what to do.
func (c *connections) taken(open int64) []any {
	client, n := "", 0
	for from, k := range c.from {
		if k > n {
			client, n = from, k
		}
	}
	return []any{"open", open, "limit", c.most, "most from", client, "of these", n, "way out", "end the connections that a client leaves idle, or raise -max-connections"}
}

// limit accepts no more than there may be at a time.
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

// A countedConn also answers 400 where net/http, without TLS, answers 501 or 505 by
// itself: to a version of HTTP or a transfer encoding that does not exist. An
// answer of 5xx then means that something is wrong here, as alerts and
// balancers take it.
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
