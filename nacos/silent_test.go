package nacos

import (
	"context"
	"net"
	"strconv"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// TestServerSilentAtFirstDelaysNoLease: a server of either kind accepts connections and does not answer on the first ones, as a server
// that is starting may do.
func TestServerSilentAtFirstDelaysNoLease(t *testing.T) {
	for name, line := range map[string]fakenacos.Line{"Modern": fakenacos.Modern, "Legacy": fakenacos.Legacy} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakenacos.Start(t, line)
			s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "leaf", "secret" })
			behind := func(port, silent int) int {
				p := netfault.Start(t, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
				p.Silence(silent)
				_, text, _ := net.SplitHostPort(p.Addr())
				port, _ = strconv.Atoi(text)
				return port
			}
			cfg := Config{Servers: []Server{{Host: "127.0.0.1", Port: behind(s.Port, 2), GRPCPort: behind(s.GRPCPort, 3)}}, Username: "leaf", Password: "secret"}
			open := func(ctx context.Context) (worker.Source, error) { return Open(ctx, cfg) }
			leasetest.Keep(t, open, worker.Config{Workers: 4, NewRegistry: true})
		})
	}
}
