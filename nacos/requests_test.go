package nacos

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// counted counts the requests to a server.
type counted struct {
	*cluster
	reads, names atomic.Int64
}

func (c *counted) query(ctx context.Context, id string) (string, bool, error) {
	c.reads.Add(1)
	return c.cluster.query(ctx, id)
}

func (c *counted) register(ctx context.Context, in api.Instance) error {
	c.names.Add(1)
	return c.cluster.register(ctx, in)
}

func (c *counted) list(ctx context.Context) ([]api.Instance, error) {
	c.names.Add(1)
	return c.cluster.list(ctx)
}

// TestRequestsAreFew counts the requests for a worker id of a registry in use: at
// first, and while it is held.
func TestRequestsAreFew(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Modern)
	cfg := fakeConfig(s)
	lease := worker.Config{Workers: 16, Lease: 42 * time.Second} // renewed every 5.25 … 7 s, and the timeout of a call is 3.5 s
	leasetest.InUse(t, func(ctx context.Context) (worker.Source, error) { return Open(ctx, cfg) }, lease)
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	before := s.Publishes()
	writes := func() int { return s.Publishes() - before }
	c := &counted{cluster: newCluster(cfg, httpOf(cfg))}
	src, err := services{configs: c, names: c, close: func() error { c.close(); return nil }}.source(within30s(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	k, err := keep(t, func(context.Context) (worker.Source, error) { return src, nil }, lease)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	// The registry's document before and after, and the slot; a refusal, the take,
	// and the refusal of the replaced version. As the registry was declared new a
	// moment ago, the take is confirmed by another one, before which both documents
	// are read.
	r, w, n := c.reads.Load(), writes(), c.names.Load()
	if r != 3+2 || w != 3+1 || n != 0 {
		t.Errorf("a worker id took %d reads, %d writes, %d of names, want r = 3+2, w = 3+1 and n = 0", r, w, n)
	}
	began := time.Now()
	// A renewal writes the slot, then reads the registry's document: a registry that was wiped accepts the
	// write.
	eventually(t, "2 renewals", func() bool { return c.reads.Load() >= r+2 })
	if held := time.Since(began); held < 10*time.Second {
		t.Errorf("2 renewals in %v, want at least 10 s", held)
	}
	// The instance was added to the list, and its neighbour in the list was
	// checked.
	if w, n := writes()-w, c.names.Load(); w != 2 || n != 2 {
		t.Errorf("while it was held: %d writes, %d of names, want w = 2 and n = 2", w, n)
	}
}
