//go:build unix

package clients

import (
	"io"
	"net"
	"testing"
)

// startProxy stands in for the proxy: a relay.
func startProxy(t *testing.T, dsn string) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			s, err := net.Dial("tcp", address(t, dsn))
			if err != nil {
				c.Close()
				continue
			}
			go func() { io.Copy(s, c); s.(*net.TCPConn).CloseWrite() }()
			go func() { io.Copy(c, s); c.Close(); s.Close() }()
		}
	}()
	return l.Addr().String()
}
