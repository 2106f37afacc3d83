//go:build unix

package etcdtest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leafsql/leafsql/testutil/process"
)

// A Cluster has three servers. It serves as long as two of them run.
type Cluster struct {
	Nodes [3]*Server
}

// StartCluster starts a cluster for one test.
func StartCluster(tb testing.TB, cfg Config) *Cluster {
	tb.Helper()
	return &Cluster{Nodes: [3]*Server(start(tb, cfg, 3))}
}

// Start starts every node that does not run, and waits until all serve.
func (c *Cluster) Start() error { return process.StartAll(c.Nodes[:]...) }

// ClientConfig returns the configuration of a client.
func (c *Cluster) ClientConfig() clientv3.Config { return clientConfig(c.Nodes[:]...) }

// Leader waits until all running nodes agree on the leader, and returns it.
func (c *Cluster) Leader() (leader *Server, err error) {
	err = process.Until(func(ctx context.Context) error {
		leader, err = c.leader(ctx)
		return err
	})
	return leader, err
}

func (c *Cluster) leader(ctx context.Context) (leader *Server, err error) {
	var all uint64
	for _, n := range c.Nodes {
		if !n.Running() {
			continue
		}
		var is *clientv3.StatusResponse
		err := n.with(ctx, func(ctx context.Context, c *clientv3.Client) (err error) {
			is, err = c.Status(ctx, n.Addr)
			return err
		})
		if err != nil {
			return nil, err
		}
		if all != 0 && all != is.Leader {
			return nil, fmt.Errorf("etcdtest: %x leads, and %x", all, is.Leader)
		}
		all = is.Leader
		if is.Header.MemberId == is.Leader {
			leader = n
		}
	}
	if leader == nil {
		return nil, errors.New("etcdtest: nobody that runs leads")
	}
	return leader, nil
}

// Replace removes a stopped node from the cluster, and starts it as a new member without data. A majority of the
// cluster must run.
func (c *Cluster) Replace(node *Server) error {
	if err := node.Wipe(); err != nil {
		return err
	}
	leader, err := c.Leader()
	if err != nil {
		return err
	}
	err = leader.with(context.Background(), func(ctx context.Context, c *clientv3.Client) error {
		members, err := c.MemberList(ctx)
		if err != nil {
			return err
		}
		for _, m := range members.Members {
			if m.Name != node.name {
				continue
			}
			if _, err := c.MemberRemove(ctx, m.ID); err != nil {
				return err
			}
		}
		_, err = c.MemberAdd(ctx, []string{node.peer})
		return err
	})
	if err != nil {
		return err
	}
	node.cluster = "existing"
	return node.Start()
}
