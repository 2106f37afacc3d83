package redis

import (
	"context"
	"fmt"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

// of returns the Config for a client's options.
func of(o *redis.UniversalOptions) Config {
	return Config{Servers: o.Addrs, Cluster: o.IsClusterMode, Master: o.MasterName, Username: o.Username, Password: o.Password, TLS: o.TLSConfig}
}

// fixture returns a registry with its own prefix on shared servers.
func fixture(t testing.TB, o *redis.UniversalOptions, cfg Config) workertest.Fixture {
	client := redis.NewUniversalClient(o)
	t.Cleanup(func() { client.Close() })
	key := func(slot int) string { return "{" + cfg.Prefix + "}:worker:" + strconv.Itoa(slot) }
	return workertest.Fixture{
		Open:    func(context.Context) (worker.Source, error) { return Open(cfg) },
		Remove:  func(slot int) error { return client.Del(context.Background(), key(slot)).Err() },
		Corrupt: func(slot int) error { return client.Set(context.Background(), key(slot), "edited by hand", 0).Err() },
	}
}

// kit is workertest.Registry.RunRules, or with the tag storm workertest.Registry.Run.
type kit = func(workertest.Registry, *testing.T)

// TestKitOnAServer freezes the server to make it unavailable, since a restart counts as a fail-over.
func TestKitOnAServer(t *testing.T) { kitOnAServer(t, workertest.Registry.RunRules) }

func kitOnAServer(t *testing.T, kit kit) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	var n atomic.Int64
	kit(func(t testing.TB) workertest.Fixture {
		cfg := of(s.Options())
		cfg.Prefix = fmt.Sprintf("kit%d", n.Add(1))
		f := fixture(t, s.Options(), cfg)
		f.Outage = 10 * time.Second
		f.Stop, f.Start = s.Freeze, s.Thaw
		f.Wipe = s.FlushAll
		f.FailOver = func() (func() error, error) {
			dir := filepath.Join(t.TempDir(), "before")
			return func() error {
				if err := s.Kill9(); err != nil {
					return err
				}
				if err := s.Restore(dir); err != nil {
					return err
				}
				return s.Start()
			}, s.Snapshot(dir)
		}
		return f
	}, t)
}

// TestKitOnSentinels loses a primary together with writes that only the primary had. No write is lost if the registry waits for
// replicas, so one registry waits for none.
func TestKitOnSentinels(t *testing.T) { kitOnSentinels(t, workertest.Registry.RunRules) }

func kitOnSentinels(t *testing.T, kit kit) {
	t.Parallel()
	r := redistest.StartReplicated(t, redistest.Config{})
	var n atomic.Int64
	kit(func(t testing.TB) workertest.Fixture {
		cfg := of(r.Options())
		cfg.Prefix = fmt.Sprintf("kit%d", n.Add(1))
		f := fixture(t, r.Options(), cfg)
		f.Outage = 10 * time.Second
		f.Open = func(context.Context) (worker.Source, error) { return Open(cfg) }
		f.FailOver = func() (func() error, error) {
			cfg.Replicas = -1
			return func() error {
				t.Cleanup(func() { // for the next part
					if err := r.Start(); err != nil {
						t.Error(err)
					}
				})
				_, err := r.FailOver()
				return err
			}, r.CutReplication()
		}
		return f
	}, t)
}

// TestKitOnACluster uses a cluster without replicas.
func TestKitOnACluster(t *testing.T) { kitOnACluster(t, workertest.Registry.RunRules) }

func kitOnACluster(t *testing.T, kit kit) {
	t.Parallel()
	c := redistest.StartCluster(t, redistest.Config{})
	var n atomic.Int64
	kit(func(t testing.TB) workertest.Fixture {
		cfg := of(c.Options())
		cfg.Prefix = fmt.Sprintf("kit%d", n.Add(1))
		f := fixture(t, c.Options(), cfg)
		f.Wipe = c.FlushAll
		return f
	}, t)
}
