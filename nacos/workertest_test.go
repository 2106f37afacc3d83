package nacos

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

func TestWorkerKitOnTheFake(t *testing.T) {
	var services atomic.Int64
	workertest.Run(t, func(t testing.TB) workertest.Fixture {
		s := fakenacos.Start(t, fakenacos.Modern)
		service := fmt.Sprintf("kit%d", services.Add(1))
		return workertest.Fixture{
			Open: func(ctx context.Context) (worker.Source, error) {
				cfg := fakeConfig(s)
				cfg.Service = service
				return Open(ctx, cfg)
			},
			Wipe: func() error { s.Wipe(); return nil },
			Copy: func() (func() error, error) {
				restore := s.Copy()
				return func() error { restore(); return nil }, nil
			},
		}
	})
}

// TestWorkerKitOnServers gives each part a service, and so documents, of its
// own on one server. Servers that restart and lose data are TestServers' part.
func TestWorkerKitOnServers(t *testing.T) {
	for _, v := range modernServers {
		t.Run(string(v), func(t *testing.T) {
			s := nacostest.Start(t, v, nacostest.Options{})
			var services atomic.Int64
			workertest.Run(t, func(testing.TB) workertest.Fixture {
				opts := worker.Options{"Service": fmt.Sprintf("kit%d", services.Add(1))}
				return workertest.Fixture{Open: func(ctx context.Context) (worker.Source, error) {
					return openDSN(ctx, s.Addr(), opts)
				}}
			})
		})
	}
}
