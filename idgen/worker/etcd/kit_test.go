package etcd

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/etcd/etcdtest"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// kit is workertest.Registry.RunRules, or with the tag storm workertest.Registry.Run.
type kit = func(workertest.Registry, *testing.T)

// TestWorkerKit runs each part of the kit with its own keys on one server.
func TestWorkerKit(t *testing.T) {
	t.Parallel()
	workertest.Registry(startPair(t).fixture).RunRules(t)
}

// TestWorkerKitOnACluster uses three servers with TLS and a password, two of which
// leave the cluster.
func TestWorkerKitOnACluster(t *testing.T) { onCluster(t, workertest.Registry.RunRules) }

func onCluster(t *testing.T, kit kit) {
	t.Parallel()
	c := etcdtest.StartCluster(t, etcdtest.Config{TLS: true, Password: "secret"})
	var parts atomic.Int64
	kit(func(t testing.TB) workertest.Fixture {
		client := config(c.Nodes[:]...)
		client.Username, client.Password, client.TLS = "root", "secret", c.ClientConfig().TLS
		client.Prefix = fmt.Sprintf("kit%d", parts.Add(1))
		hand := keyEditor{c.ClientConfig(), client.Prefix}
		return workertest.Fixture{
			Open:   func(context.Context) (worker.Source, error) { return Open(client) },
			Outage: 20 * time.Second,
			Wipe:   hand.wipe,
			Copy:   func() (func() error, error) { return hand.copyTo(c.ClientConfig()) },
			Stop: func() error {
				leader, err := c.Leader()
				if err != nil {
					return err
				}
				other := c.Nodes[0]
				if other == leader {
					other = c.Nodes[1]
				}
				return errors.Join(leader.Kill9(), other.Kill9())
			},
			Start:   c.Start,
			Remove:  hand.remove,
			Corrupt: hand.corrupt,
		}
	}, t)
}

// pair is a server reached through a proxy, and another server that replaces it.
type pair struct {
	proxy           *netfault.Proxy
	server, standby *etcdtest.Server
	parts           atomic.Int64
}

func startPair(t testing.TB) *pair {
	p := &pair{server: etcdtest.Start(t, etcdtest.Config{}), standby: etcdtest.Start(t, etcdtest.Config{})}
	p.proxy = netfault.Start(t, p.server.Addr)
	return p
}

func config(servers ...*etcdtest.Server) (c Config) {
	for _, s := range servers {
		c.Servers = append(c.Servers, s.Addr)
	}
	return c
}

func (p *pair) fixture(t testing.TB) workertest.Fixture {
	cfg := Config{Servers: []string{p.proxy.Addr()}, Prefix: fmt.Sprintf("kit%d", p.parts.Add(1))}
	hand := keyEditor{p.server.ClientConfig(), cfg.Prefix}
	return workertest.Fixture{
		Open:   func(context.Context) (worker.Source, error) { return Open(cfg) },
		Outage: 20 * time.Second,
		Wipe: func() error {
			if err := p.server.Kill9(); err != nil {
				return err
			}
			return errors.Join(p.server.Wipe(), p.server.Start())
		},
		Copy:    func() (func() error, error) { return hand.copyTo(p.server.ClientConfig()) },
		Stop:    p.server.Kill9,
		Start:   p.server.Start,
		Remove:  hand.remove,
		Corrupt: hand.corrupt,
		FailOver: func() (func() error, error) {
			restore, err := hand.copyTo(p.standby.ClientConfig())
			return func() error {
				if err := restore(); err != nil {
					return err
				}
				p.proxy.Switch(p.standby.Addr)
				p.proxy.Cut()
				t.Cleanup(func() { p.proxy.Switch(p.server.Addr) })
				return nil
			}, err
		},
	}
}

// keyEditor changes a registry's keys as operators do.
type keyEditor struct {
	cfg    clientv3.Config
	prefix string
}

func do(cfg clientv3.Config, what func(context.Context, *clientv3.Client) error) error {
	c, err := clientv3.New(cfg)
	if err != nil {
		return err
	}
	defer c.Close()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	return what(ctx, c)
}

func (h keyEditor) wipe() error {
	return do(h.cfg, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Delete(ctx, h.prefix+"/", clientv3.WithPrefix())
		return err
	})
}

func (h keyEditor) key(slot int) string { return (&registry{prefix: h.prefix}).key(slot) }

func (h keyEditor) remove(slot int) error {
	return do(h.cfg, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Delete(ctx, h.key(slot))
		return err
	})
}

func (h keyEditor) corrupt(slot int) error {
	return do(h.cfg, func(ctx context.Context, c *clientv3.Client) error {
		_, err := c.Put(ctx, h.key(slot), "edited by hand")
		return err
	})
}

// copyTo copies the keys and values; restore makes a server hold exactly
// these.
func (h keyEditor) copyTo(to clientv3.Config) (restore func() error, err error) {
	var was *clientv3.GetResponse
	err = do(h.cfg, func(ctx context.Context, c *clientv3.Client) (err error) {
		was, err = c.Get(ctx, h.prefix+"/", clientv3.WithPrefix())
		return err
	})
	return func() error {
		return do(to, func(ctx context.Context, c *clientv3.Client) error {
			_, err := c.Delete(ctx, h.prefix+"/", clientv3.WithPrefix())
			for _, kv := range was.Kvs {
				_, putErr := c.Put(ctx, string(kv.Key), string(kv.Value))
				err = errors.Join(err, putErr)
			}
			return err
		})
	}, err
}

func BenchmarkWorker(b *testing.B) { workertest.Registry(startPair(b).fixture).Bench(b) }

func TestLostReplyWritesOnce(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	workertest.Registry(p.fixture).LostReply(t, func() { p.proxy.Drop(netfault.ToClient) }, p.proxy.Heal)
}

// TestSilentServerDelaysNoLease uses a server that accepts connections but does not answer on the first ones, as a starting server may.
func TestSilentServerDelaysNoLease(t *testing.T) {
	t.Parallel()
	p := startPair(t)
	p.proxy.Silence(3)
	leasetest.Keep(t, p.fixture(t).Open, worker.Config{Workers: 4, NewRegistry: true})
}

// TestFrozenServerDelaysNoLease freezes each of three servers, including the leader, while processes start and a holder continues.
func TestFrozenServerDelaysNoLease(t *testing.T) {
	t.Parallel()
	c := etcdtest.StartCluster(t, etcdtest.Config{})
	cfg := config(c.Nodes[:]...)
	open := func(context.Context) (worker.Source, error) { return Open(cfg) }
	of := worker.Config{Workers: 8, Lease: 30 * time.Second}
	leasetest.InUse(t, open, of)
	holder := leasetest.Keep(t, open, of)
	held := holder.Status()
	for _, n := range c.Nodes {
		if err := n.Freeze(); err != nil {
			t.Fatal(err)
		}
		leasetest.Keep(t, open, of)
		limit := holder.Status().Limit
		leasetest.Eventually(t, "a renewal beside a frozen server", func() bool { return holder.Status().Limit.After(limit) })
		if err := n.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	if now := holder.Status(); !now.Since.Equal(held.Since) {
		t.Errorf("Status() = %+v, want the same lease as %+v", now, held)
	}
}
