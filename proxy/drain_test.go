package proxy_test

import (
	"context"
	"fmt"
	"net"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// TestDrainServesReceivedCommands shuts a proxy down while a client waits for an answer and has sent further
// commands: all of them are served.
func TestDrainServesReceivedCommands(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		for _, packed := range []uint64{0, proxytest.Compress} {
			p.createTables(true, privilegesSetup...)
			server, addr := proxytest.Serve(t, p.dsn+"?leafTables=items")
			o := p.rootOptions()
			o.Capabilities = proxytest.Common | packed
			c := p.dial(addr, o)
			c.SendQuery("SELECT SLEEP(0.5)")
			for i := range 5 {
				c.SendQuery(fmt.Sprintf("INSERT INTO items (name, n) VALUES ('a', %d)", i))
			}
			p.waitForValue(fmt.Sprintf("SELECT COUNT(*) FROM information_schema.processlist WHERE id = %d AND info LIKE 'SELECT SLEEP%%'", c.Thread), "1")
			go server.Shutdown(t.Context())
			for i := range 6 {
				if a := c.Answer(); a.Closed != nil {
					t.Errorf("compressed %v: the connection ended before answer %d of 6: %v", packed != 0, i+1, a.Closed)
					break
				}
			}
		}
	})
}

// testLoweredConnectErrors uses a separate server and lowers its max_connect_errors below the current number of
// broken logins: clients can log in afterwards.
func testLoweredConnectErrors(t *testing.T, p *testDatabase) {
	p.exec("SET GLOBAL max_connect_errors = 4294967295")
	t.Cleanup(func() { p.db.Exec("SET GLOBAL max_connect_errors = 100") })
	server, addr := proxytest.Serve(t, p.dsn+"?leafTables=none")
	ping := func() {
		if err := server.Ping(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	ping()
	for range 60 {
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		c.Read(make([]byte, 1))
		c.Close()
	}
	for server.Stats().BrokenOff < 60 {
		ping()
	}
	p.exec("SET GLOBAL max_connect_errors = 100")
	ping()
	for range 2 {
		p.dial(addr, p.rootOptions()).Close()
	}
}
