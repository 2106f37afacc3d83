package nacos

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
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
