package proxy_test

import (
	"io"
	"log/slog"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/proxy"
	"github.com/leafsql/leafsql/proxy/proxytest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// relayFrom returns an address that relays connections to another one, from the IP address ip.
func relayFrom(t *testing.T, ip, to string) (addr string) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(ip)}}
	go func() {
		for {
			near, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer near.Close()
				far, err := dialer.Dial("tcp", to)
				if err != nil {
					return
				}
				defer far.Close()
				go func() {
					io.Copy(far, near)
					far.(*net.TCPConn).CloseWrite()
				}()
				io.Copy(near, far)
			}()
		}
	}()
	return l.Addr().String()
}

// TestBurstOfBrokenLoginsLocksNobodyOut: many clients that connect concurrently and break off their logins do not make the
// server refuse the proxy's host, and clients can log in afterwards.
func TestBurstOfBrokenLoginsLocksNobodyOut(t *testing.T) {
	const (
		burst  = 150
		bursts = 3
	)
	for _, target := range mysqltest.Targets(t) {
		t.Run(target.Name, func(t *testing.T) {
			own := mysqltest.Run(t, mysqltest.Config{Kind: mysqltest.Kind(target.Name), Args: []string{
				"--skip-name-resolve=OFF", "--max-connect-errors=100", "--max-connections=400",
			}}).Target()
			p := newTestDatabase(t, own)
			p.exec("CREATE USER far IDENTIFIED BY ''", "GRANT ALL ON *.* TO far")
			server := relayFrom(t, "127.0.0.9", p.addr)
			cfg, err := mysql.ParseDSN(p.dsn)
			if err != nil {
				t.Fatal(err)
			}
			cfg.User, cfg.Addr = "far", server
			pr, addr := proxytest.Serve(t, cfg.FormatDSN()+"?leafTables=none", func(c *proxy.Config) { c.Server = server })
			o := proxytest.Options{User: "far", Database: p.name}
			if target.Name == string(mysqltest.MySQL) {
				o.Plugin = "caching_sha2_password"
			}
			p.dial(addr, o).Close()
			for range bursts {
				var all sync.WaitGroup
				begin := make(chan struct{})
				for range burst {
					c, err := net.Dial("tcp", addr)
					if err != nil {
						t.Fatal(err)
					}
					all.Go(func() {
						defer c.Close()
						c.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
						c.Read(make([]byte, 1)) // reads the beginning of the greeting
						<-begin
					})
				}
				time.Sleep(300 * time.Millisecond)
				close(begin)
				all.Wait()
			}
			c := p.dial(addr, o)
			if number, text := c.Query("SELECT 1").Err(); number != 0 {
				t.Errorf("error %d %s, want none", number, text)
			}
			if s := pr.Stats(); s.BrokenOff < burst {
				t.Errorf("broken logins = %d, want at least %d", s.BrokenOff, burst)
			}
		})
	}
}

// TestBrokenLoginsLogOneLineAMinute: clients that break off their login, or cannot reach the server, cause at most one log
// line a minute.
func TestBrokenLoginsLogOneLineAMinute(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		var log logBuffer
		settings := func(cfg *proxy.Config) { cfg.Logger = slog.New(slog.NewTextHandler(&log, nil)) }
		pr, addr := proxytest.Serve(t, p.dsn+"?leafTables=none", settings)
		for range 300 {
			c, err := net.Dial("tcp", addr)
			if err != nil {
				t.Fatal(err)
			}
			c.Read(make([]byte, 1)) // reads the beginning of the greeting
			c.Close()
		}
		took := stopwatch.Start(t)
		for pr.Stats().BrokenOff < 300 && took() < proxytest.Timeout {
			time.Sleep(5 * time.Millisecond)
		}
		gone := proxytest.Start(t, p.dsn+"?leafTables=none", settings, func(cfg *proxy.Config) { cfg.Server = "127.0.0.1:1" })
		for range 50 {
			proxytest.Dial(gone, p.rootOptions())
		}
		if text := log.String(); strings.Count(text, "disconnected during") != 1 || strings.Count(text, "cannot be reached") != 1 || strings.Count(text, "\n") > 3 {
			t.Errorf("the log has\n%s\nwant one line for each of two causes", text)
		}
	})
}
