//go:build unix

package clustertest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// GroupReplication starts three MySQL nodes that all accept writes. If a member is killed, the others expel it at their
// next check of suspected members, which runs every 15 s; until then their commits take 0.3 s. Without a majority a
// COMMIT waits forever, which is MySQL's default, and the group does not recover. args are further options of all nodes.
func GroupReplication(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return startGroup(t, false, args)
}

func startGroup(t testing.TB, separable bool, args []string) *Cluster {
	t.Helper()
	return start(t, group{}, func(i int, ports [3]int) mysqltest.Config {
		groupID := 0
		if separable {
			groupID = ports[i]
		}
		return mysqltest.Config{Kind: mysqltest.MySQL, GroupID: groupID, Args: append([]string{
			fmt.Sprintf("--server-id=%d", i+1), "--report-host=127.0.0.1",
			"--log-bin=binlog", "--gtid-mode=ON", "--enforce-gtid-consistency=ON",
			"--super-read-only=ON",                                                            // until the node is a member: earlier writes of a client would prevent the join
			"--performance-schema=ON",                                                         // has the table of members
			"--max-connections=300", "--table-open-cache=200", "--table-definition-cache=400", // limits the memory of performance_schema
			"--plugin-load-add=group_replication.so",
			fmt.Sprintf("--loose-group-replication-group-name=6c656166-7371-11ef-8000-%012d", ports[0]), // another cluster may get the port of a dead node
			"--loose-group-replication-start-on-boot=OFF",
			fmt.Sprintf("--loose-group-replication-local-address=127.0.0.1:%d", ports[i]),
			fmt.Sprintf("--loose-group-replication-group-seeds=127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", ports[0], ports[1], ports[2]),
			"--loose-group-replication-ip-allowlist=127.0.0.1",
			"--loose-group-replication-single-primary-mode=OFF",
			"--loose-group-replication-enforce-update-everywhere-checks=ON",
			"--loose-group-replication-member-expel-timeout=0",
			"--loose-group-replication-poll-spin-loops=0",
			"--loose-group-replication-message-cache-size=134217728",
		}, args...)}
	})
}

type group struct{}

// recoveryUser sets the user with which a node fetches missing transactions when it joins, also when it joins again by itself.
const recoveryUser = "CHANGE REPLICATION SOURCE TO SOURCE_USER='root', SOURCE_PASSWORD='' FOR CHANNEL 'group_replication_recovery'"

func (g group) form(ctx context.Context, nodes [3]*mysqltest.Server) error {
	if err := runTogether(len(nodes), func(i int) error { return nodes[i].Launch() }); err != nil {
		return err
	}
	err := run(ctx, nodes[0], recoveryUser, "SET GLOBAL group_replication_bootstrap_group=ON", "START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group=OFF")
	if err != nil {
		return err
	}
	return runTogether(2, func(i int) error { return g.join(ctx, nodes[i+1]) })
}

func (group) join(ctx context.Context, node *mysqltest.Server) error {
	return run(ctx, node, recoveryUser, "START GROUP_REPLICATION")
}

func (g group) rejoin(ctx context.Context, nodes [3]*mysqltest.Server, i int) error {
	if err := nodes[i].Launch(); err != nil {
		return err
	}
	return g.joinAgain(ctx, nodes, i)
}

// joinAgain first waits until the other members have expelled the node, because they accept it again only after that.
func (g group) joinAgain(ctx context.Context, nodes [3]*mysqltest.Server, i int) error {
	_, port, err := net.SplitHostPort(nodes[i].Addr())
	if err != nil {
		return err
	}
	for other := range nodes {
		if other == i {
			continue
		}
		expelled := func() error {
			there, err := queryValue(ctx, nodes[other], "SELECT COUNT(*) FROM performance_schema.replication_group_members WHERE member_port = "+port)
			if err == nil && there != "0" {
				err = errors.New("the node that left is not expelled")
			}
			return err
		}
		if err := retryUntil(ctx, expelled); err != nil {
			return err
		}
	}
	return retryUntil(ctx, func() error {
		err := g.join(ctx, nodes[i])
		if err != nil {
			err = errors.Join(err, run(ctx, nodes[i], "STOP GROUP_REPLICATION"))
		}
		return err
	})
}

// JoinAgain makes a running node that a group has expelled, or that has left it, a member again.
func (c *Cluster) JoinAgain(t testing.TB, node int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	err := retryUntil(ctx, func() error { return run(ctx, c.Nodes[node], "STOP GROUP_REPLICATION") }) // fails while it joins by itself
	if err == nil {
		err = group{}.joinAgain(ctx, c.Nodes, node)
	}
	if err != nil {
		t.Fatalf("clustertest: node %d: %v", node, err)
	}
}

func (group) member(ctx context.Context, node *mysqltest.Server) error {
	state, err := queryValue(ctx, node, "SELECT member_state FROM performance_schema.replication_group_members WHERE member_id = @@server_uuid")
	if err == nil && state != "ONLINE" {
		err = errors.New("the member is " + state)
	}
	return err
}

// SinglePrimary makes a node the only member that accepts writes. When SinglePrimary returns, the others are read-only.
func (c *Cluster) SinglePrimary(t testing.TB, node int) {
	t.Helper()
	id := c.value(t, node, "SELECT @@server_uuid")
	if c.value(t, node, "SELECT @@group_replication_single_primary_mode") == "0" {
		c.value(t, node, "SELECT group_replication_switch_to_single_primary_mode('"+id+"')")
	} else {
		c.value(t, node, "SELECT group_replication_set_as_primary('"+id+"')")
	}
}

// MultiPrimary makes all members of the group accept writes.
func (c *Cluster) MultiPrimary(t testing.TB) {
	t.Helper()
	c.value(t, 0, "SELECT group_replication_switch_to_multi_primary_mode()")
}

// value runs a query on a node and returns its only value.
func (c *Cluster) value(t testing.TB, node int, query string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), formTimeout)
	defer cancel()
	v, err := queryValue(ctx, c.Nodes[node], query)
	if err != nil {
		t.Fatalf("clustertest: node %d: %s: %v", node, query, err)
	}
	return v
}
