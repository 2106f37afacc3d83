//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/leafsql/leafsql/testutil/process"
)

// A Cluster has three nodes with a third of the keys each, and no replicas. From two seconds after a node's failure until its
// return, requests for all keys are refused (CLUSTERDOWN).
type Cluster struct {
	Nodes [3]*Server
	party party
}

// StartCluster starts a cluster for one test.
func StartCluster(tb testing.TB, cfg Config) *Cluster {
	tb.Helper()
	p, err := newParty(cfg, 0, 1, 2, 3, 4, 5)
	if err != nil {
		tb.Fatal(err)
	}
	c := &Cluster{party: p}
	for i := range c.Nodes {
		n, err := p.newNode(i, "cluster-enabled yes", "cluster-config-file ../nodes.conf",
			"cluster-node-timeout 2000", fmt.Sprintf("cluster-port %d", p.port+3+i))
		if err != nil {
			tb.Fatal(err)
		}
		n.Finish(tb)
		c.Nodes[i] = n
		if err := os.WriteFile(filepath.Join(n.Dir(), "nodes.conf"), []byte(members(p.port, i)), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	if err := c.Start(); err != nil {
		tb.Fatal(err)
	}
	return c
}

// members returns the cluster configuration that node i would have saved, so that the nodes need not be joined.
func members(port, i int) string {
	var b strings.Builder
	for k, slots := range []string{"0-5460", "5461-10922", "10923-16383"} {
		flags := "master"
		if k == i {
			flags = "myself,master"
		}
		fmt.Fprintf(&b, "%040x 127.0.0.1:%d@%d %s - 0 0 %d connected %s\n", k+1, port+k, port+3+k, flags, k+1, slots)
	}
	return b.String() + "vars currentEpoch 3 lastVoteEpoch 0\n"
}

// Options returns the options of a client.
func (c *Cluster) Options() *redis.UniversalOptions {
	o := c.party.options(c.Nodes[:]...)
	o.IsClusterMode = true
	return o
}

// Start starts all nodes that do not run, and waits until the cluster serves.
func (c *Cluster) Start() error {
	if err := process.StartAll(c.Nodes[:]...); err != nil {
		return err
	}
	return c.Await()
}

// FlushAll removes all keys.
func (c *Cluster) FlushAll() error {
	var errs []error
	for _, n := range c.Nodes {
		errs = append(errs, n.FlushAll())
	}
	return errors.Join(errs...)
}

// Await waits until every node serves its keys, which takes two seconds after a start.
func (c *Cluster) Await() error {
	for _, n := range c.Nodes {
		err := process.Until(func(ctx context.Context) error {
			info, err := n.ask(ctx, "CLUSTER", "INFO")
			if err == nil && !strings.Contains(info.(string), "cluster_state:ok") {
				err = errors.New("redistest: the cluster is not whole")
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return nil
}
