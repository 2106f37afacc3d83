//go:build linux

package main

import (
	"crypto/tls"
	"fmt"
	"net"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/proxy"
)

// proxyEnv is the environment variable of the proxy's process. It contains the address at which the proxy listens, the
// address at which it reports its memory, the server's DSN, and the files of the certificate and its key.
const proxyEnv = "LEAFSQL_PROXYBENCH_PROXY"

// runProxy runs the proxy.
func runProxy() error {
	words := strings.Fields(os.Getenv(proxyEnv))
	control, err := net.Listen("tcp", words[1])
	if err != nil {
		return err
	}
	go serveMemory(control)
	server, err := mysql.ParseDSN(words[2])
	if err != nil {
		return err
	}
	cfg, err := driver.ParseDSN(words[2] + "?leafTables=written&leafCreate=true")
	if err != nil {
		return err
	}
	connector, err := driver.NewConnector(cfg)
	if err != nil {
		return err
	}
	cert, err := tls.LoadX509KeyPair(words[3], words[4])
	if err != nil {
		return err
	}
	p, err := proxy.New(proxy.Config{Connector: connector, Server: server.Addr, MaxConnections: 1 << 20,
		TLS: &tls.Config{Certificates: []tls.Certificate{cert}}})
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp", words[0])
	if err != nil {
		return err
	}
	return p.Serve(l)
}

// serveMemory sends each client the number of bytes in use in heap and stacks after a collection.
func serveMemory(l net.Listener) {
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
