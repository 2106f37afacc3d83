package proxytest

import (
	"io"
	"net"
	"sync"
	"testing"

	"github.com/go-sql-driver/mysql"
)

// Start starts a proxy before the server of a DSN, with the tables that it names, and returns its address. It ends with the test.
func Start(t testing.TB, dsn string) (addr string) {
	t.Helper()
	cfg, err := mysql.ParseDSN(dsn)
	if err != nil {
		t.Fatal(err)
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var all sync.WaitGroup
	t.Cleanup(func() { l.Close(); all.Wait() })
	all.Go(func() {
		for {
			a, err := l.Accept()
			if err != nil {
				return
			}
			b, err := net.Dial("tcp", cfg.Addr)
			if err != nil {
				a.Close()
				continue
			}
			all.Go(func() { io.Copy(a, b); a.Close() })
			all.Go(func() { io.Copy(b, a); b.(*net.TCPConn).CloseWrite() })
		}
	})
	return l.Addr().String()
}
