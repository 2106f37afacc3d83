package nacos

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// counted counts what is asked of a server.
type counted struct {
	*cluster
	reads, names atomic.Int64
}

func (c *counted) query(ctx context.Context, id string) (string, bool, error) {
	c.reads.Add(1)
	return c.cluster.query(ctx, id)
}

// settle counts what is asked of one server alone.
func (c *counted) settle(ctx context.Context, f func(context.Context, documents) (string, error)) (string, error) {
	return c.cluster.settle(ctx, func(ctx context.Context, one documents) (string, error) {
		return f(ctx, countedReads{one, &c.reads})
	})
}

type countedReads struct {
	documents
	n *atomic.Int64
}

func (c countedReads) query(ctx context.Context, id string) (string, bool, error) {
	c.n.Add(1)
	return c.documents.query(ctx, id)
}

func (c *counted) register(ctx context.Context, in instance) error {
	c.names.Add(1)
	return c.cluster.register(ctx, in)
}

func (c *counted) list(ctx context.Context) ([]instance, error) {
	c.names.Add(1)
	return c.cluster.list(ctx)
}

// TestRequests counts what a worker id of a registry in use asks of a server:
// at first, and while it is held.
func TestRequests(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Modern)
	cfg := fakeConfig(s)
	first := mustOpenFake(t, cfg)
	for slot := range 1024 {
		d := worker.Doc{Nonce: "n", HW: 1, Free: true}
		if _, res, err := first.Put(t.Context(), slot, d, ""); res != worker.OK {
			t.Fatal(res, err)
		}
	}
	if _, err := first.Anchor(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	before := s.Publishes()
	writes := func() int { return s.Publishes() - before }
	w := newWeb(cfg)
	c := &counted{cluster: newCluster(cfg, w)}
	src, err := modern(within30s(t), cfg, services{configs: c, names: c, close: func() { c.close(); w.close() }})
	if err != nil {
		t.Fatal(err)
	}
	l, err := worker.Acquire(within30s(t), src, worker.Config{Bound: 6 * time.Second}) // renewed every second
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	// The anchor before and after, and the slot; a refusal, the take, and the
	// refusal of what was taken over.
	if r, w, n := c.reads.Load(), writes(), c.names.Load(); r != 3 || w != 3 || n != 0 {
		t.Errorf("a worker id took %d reads, %d writes, %d of names", r, w, n)
	}
	began := time.Now()
	eventually(t, "10 renewals", func() bool { return writes() >= 3+10 })
	if held := time.Since(began); held < 9*time.Second {
		t.Errorf("%d writes in %v", writes()-3, held)
	}
	// 16 slots were looked at with each renewal, as free documents are until 256
	// were seen, once in 60 renewals; and the instance is in the list.
	if r, n := c.reads.Load()-3, c.names.Load(); r < 10*16 || r > 12*16 || n != 2 {
		t.Errorf("while it was held: %d reads, %d of names", r, n)
	}
}
