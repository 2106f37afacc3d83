package server

import (
	"bytes"
	"net"

	"golang.org/x/net/netutil"
)

// limit accepts so many connections at a time.
func limit(l net.Listener, connections int) net.Listener {
	return clientFaults{netutil.LimitListener(l, connections)}
}

// clientFaults answers 400 where net/http, without TLS, answers 501 or 505 by
// itself: to a version of HTTP or a transfer encoding that does not exist. An
// answer of 5xx then means that something is wrong here, as alerts and
// balancers take it.
type clientFaults struct{ net.Listener }

func (l clientFaults) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return faultConn{c}, nil
}

type faultConn struct{ net.Conn }

var (
	notImplemented = []byte("HTTP/1.1 501 ")
	unknownVersion = []byte("HTTP/1.1 505 ")
)

func (c faultConn) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, notImplemented) || bytes.HasPrefix(p, unknownVersion) {
		_, err := c.Conn.Write([]byte("HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\nConnection: close\r\n\r\n400 Bad Request"))
		return len(p), err
	}
	return c.Conn.Write(p)
}
