package pool_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// TestPoolRecoversFromSilentServer: a pool recovers from a server that accepts connections and does not answer on the first ones, with more
// callers than connections.
func TestPoolRecoversFromSilentServer(t *testing.T) {
	cfg, err := mysql.ParseDSN(mysqltest.Targets(t)[0].DSN())
	if err != nil {
		t.Fatal(err)
	}
	proxy := netfault.Start(t, cfg.Addr)
	cfg.Addr, cfg.Net = proxy.Addr(), "tcp"
	connector, err := mysql.NewConnector(pool.AdaptConfig(cfg))
	if err != nil {
		t.Fatal(err)
	}
	db := pool.Open(connector, 2)
	defer db.Close()
	proxy.Silence(4)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	const asking = 5
	answers := make(chan error)
	for range asking {
		go func() {
			for {
				one, cancel := context.WithTimeout(ctx, 2*time.Second)
				err := db.PingContext(one)
				cancel()
				if err == nil || ctx.Err() != nil {
					answers <- err
					return
				}
			}
		}()
	}
	for range asking {
		if err := <-answers; err != nil {
			t.Errorf("request: error %v, want none", err)
		}
	}
}
