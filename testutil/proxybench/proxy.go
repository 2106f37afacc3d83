//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/go-sql-driver/mysql"
)

// proxyEnv tells a process that it is the proxy: where it listens, where it tells of its memory, the server's DSN, and the
// folder of its certificate.
const proxyEnv = "LEAFSQL_PROXYBENCH_PROXY"

// beProxy is the proxy's process.
func beProxy() error {
	words := strings.Fields(os.Getenv(proxyEnv))
	control, err := net.Listen("tcp", words[1])
	if err != nil {
		return err
	}
	go tellMemory(control)
	l, err := net.Listen("tcp", words[0])
	if err != nil {
		return err
	}
	cfg, err := mysql.ParseDSN(words[2])
	if err != nil {
		return err
	}
	for {
		c, err := l.Accept()
		if err != nil {
			return err
		}
		srv, err := net.Dial("tcp", cfg.Addr)
		if err != nil {
			c.Close()
			continue
		}
		go func() { io.Copy(srv, c); srv.Close() }()
		go func() { io.Copy(c, srv); c.Close() }()
	}
}

// tellMemory tells each caller how many bytes heap and stacks have in use after a collection.
func tellMemory(l net.Listener) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		runtime.GC()
		debug.FreeOSMemory()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		fmt.Fprintln(conn, m.HeapAlloc+m.StackInuse)
		conn.Close()
	}
}
