package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper/zktest"
)

// fixture returns a registry with its own name on shared servers.
func fixture(t testing.TB, cfg Config) workertest.Fixture {
	change := func(do func(ctx context.Context, r *registry, c *conn, epoch string) error) error {
		r := &registry{cfg: cfg, servers: &servers{cfg: cfg}}
		if err := r.cfg.complete(); err != nil {
			return err
		}
		defer r.servers.close()
		ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
		defer cancel()
		c, err := r.servers.connection(ctx)
		if err != nil {
			return err
		}
		epoch, err := r.readEpoch(ctx, c, true)
		if err != nil {
			return err
		}
		return do(ctx, r, c, epoch)
	}
	return workertest.Fixture{
		Open: func(context.Context) (worker.Source, error) { return Open(cfg) },
		Remove: func(slot int) error {
			return change(func(ctx context.Context, r *registry, c *conn, epoch string) error {
				return c.Delete(r.nodePath(epoch, slot), -1)
			})
		},
		Corrupt: func(slot int) error {
			return change(func(ctx context.Context, r *registry, c *conn, epoch string) error {
				_, err := c.Set(r.nodePath(epoch, slot), []byte("edited by hand"), -1)
				return err
			})
		},
		Wipe: func() error { // removes only this registry
			return change(func(ctx context.Context, r *registry, c *conn, epoch string) error {
				return removeAll(c.Conn, r.cfg.folder())
			})
		},
	}
}

// removeAll removes a node and all nodes below it.
func removeAll(c *zk.Conn, node string) error {
	children, _, err := c.Children(node)
	if err != nil {
		return err
	}
	for _, child := range children {
		if err := removeAll(c, node+"/"+child); err != nil && !errors.Is(err, zk.ErrNoNode) {
			return err
		}
	}
	return c.Delete(node, -1)
}

// kit is workertest.Registry.RunRules, or with the tag storm workertest.Registry.Run.
type kit = func(workertest.Registry, *testing.T)

func TestKitOnAServer(t *testing.T) { kitOnAServer(t, workertest.Registry.RunRules) }

func kitOnAServer(t *testing.T, kit kit) {
	t.Parallel()
	s := zktest.Start(t, zktest.Config{})
	var n atomic.Int64
	kit(func(t testing.TB) workertest.Fixture {
		f := fixture(t, Config{Servers: []string{s.Addr}, Name: fmt.Sprintf("kit%d", n.Add(1))})
		f.Outage = 30 * time.Second
		f.Stop, f.Start = s.Kill9, s.Start
		f.Wipe = func() error {
			if err := errors.Join(s.Kill9(), s.Wipe()); err != nil {
				return err
			}
			return s.Start()
		}
		f.Copy = func() (func() error, error) {
			dir := filepath.Join(t.TempDir(), "before")
			return func() error {
				if err := errors.Join(s.Kill9(), s.Restore(dir)); err != nil {
					return err
				}
				return s.Start()
			}, s.Snapshot(dir)
		}
		return f
	}, t)
}

// TestKitOnAnEnsemble removes the registry instead of wiping servers.
func TestKitOnAnEnsemble(t *testing.T) { kitOnAnEnsemble(t, workertest.Registry.RunRules) }

func kitOnAnEnsemble(t *testing.T, kit kit) {
	t.Parallel()
	e := zktest.StartEnsemble(t, zktest.Config{})
	var n atomic.Int64
	kit(func(t testing.TB) workertest.Fixture {
		f := fixture(t, Config{Servers: e.Addrs(), Name: fmt.Sprintf("kit%d", n.Add(1)), Username: "ids", Password: "s3cret"})
		f.Outage = 10 * time.Second
		return f
	}, t)
}
