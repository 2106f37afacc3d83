//go:build unix && storm

package clustertest_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// A clusterTarget is a Galera cluster or a group of Group Replication.
type clusterTarget struct {
	*clustertest.Cluster
	balancer      *balancer
	singlePrimary bool
	probes        int // nodes that were cut off so far
}

func newClusterTarget(t testing.TB, c *clustertest.Cluster, health string) *clusterTarget {
	return &clusterTarget{Cluster: c, balancer: newBalancer(t, c, health)}
}

func (c *clusterTarget) address() string { return c.balancer.front.Addr() }

func (c *clusterTarget) admin(database string) string {
	return c.Nodes[c.balancer.activeNode()].DSN(database)
}

func (c *clusterTarget) isGalera() bool { return c.Nodes[0].Kind() == mysqltest.MariaDB }

func (c *clusterTarget) faults(random *rand.Rand) []fault {
	some := func() int { // every second time the active node
		if random.IntN(2) == 0 {
			return c.balancer.activeNode()
		}
		return random.IntN(3)
	}
	all := []fault{
		{"node killed", func(t testing.TB, hold time.Duration) {
			kill(t, c.Nodes[some()])
			time.Sleep(hold)
			c.Rejoin(t)
		}},
		{"two nodes killed", func(t testing.TB, hold time.Duration) { c.loseQuorum(t, random.IntN(3), hold) }},
		{"node frozen", func(t testing.TB, hold time.Duration) { c.freeze(t, hold, some()) }},
		{"two nodes frozen", func(t testing.TB, hold time.Duration) {
			node := random.IntN(3)
			c.freeze(t, hold, node, (node+1)%3)
		}},
		{"node read-only", func(t testing.TB, hold time.Duration) {
			node := c.Nodes[c.balancer.activeNode()]
			c.readOnly(t, node, true)
			time.Sleep(hold)
			if !c.singlePrimary { // another switch-over has made the node a secondary if it is one
				c.readOnly(t, node, false)
			} else {
				c.SinglePrimary(t, c.balancer.activeNode())
				c.readOnly(t, c.Nodes[c.balancer.activeNode()], false)
			}
		}},
		{"programs cut off", func(t testing.TB, hold time.Duration) { partition(c.balancer.front, hold) }},
	}
	if !c.singlePrimary {
		all = append(all, fault{"each fetch on another node", func(t testing.TB, hold time.Duration) { c.balancer.scatterFor(t, 2*hold) }})
	} else {
		all = append(all, fault{"switch-over", func(t testing.TB, hold time.Duration) {
			c.SinglePrimary(t, (c.balancer.activeNode()+1+random.IntN(2))%3)
		}}, fault{"switch-over to a lagging node", func(t testing.TB, hold time.Duration) {
			node := (c.balancer.activeNode() + 1 + random.IntN(2)) % 3
			c.lag(t, node, hold)
			c.SinglePrimary(t, node)
		}}, fault{"fail-over", func(t testing.TB, hold time.Duration) {
			kill(t, c.Nodes[c.balancer.activeNode()])
			time.Sleep(hold)
			c.Rejoin(t)
		}})
	}
	if c.isGalera() {
		all = append(all, fault{"node cut off", func(t testing.TB, hold time.Duration) {
			node := c.Nodes[some()]
			c.execute(t, node, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=1'")
			time.Sleep(2 * hold) // the others wait for it for 1.5 s
			c.execute(t, node, "SET GLOBAL wsrep_provider_options = 'gmcast.isolate=0'")
		}})
	} else {
		all = append(all, c.cutOffs(random)...)
	}
	for i, f := range all {
		all[i].cause = func(t testing.TB, hold time.Duration) {
			f.cause(t, hold)
			c.settle(t)
		}
	}
	return all
}

func kill(t testing.TB, node *mysqltest.Server) {
	t.Helper()
	if err := node.Kill9(); err != nil {
		t.Fatal(err)
	}
}

// execute runs statements on a node.
func (c *clusterTarget) execute(t testing.TB, node *mysqltest.Server, texts ...string) {
	t.Helper()
	db, err := sql.Open("mysql", node.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for _, text := range texts {
		if _, err := db.ExecContext(ctx, text); err != nil {
			t.Fatalf("%s: %s: %v", node.Addr(), text, err)
		}
	}
}

func (c *clusterTarget) query(t testing.TB, node *mysqltest.Server, query string) (value string) {
	t.Helper()
	db, err := sql.Open("mysql", node.DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.QueryRowContext(t.Context(), query).Scan(&value); err != nil {
		t.Fatalf("%s: %s: %v", node.Addr(), query, err)
	}
	return value
}

// readOnly makes a node refuse or accept the writes of programs. Their connections stay open.
func (c *clusterTarget) readOnly(t testing.TB, node *mysqltest.Server, on bool) {
	t.Helper()
	variable := "read_only"
	if !c.isGalera() && on {
		variable = "super_read_only"
	}
	c.execute(t, node, fmt.Sprintf("SET GLOBAL %s = %t", variable, on))
}

// freeze freezes nodes for a time.
func (c *clusterTarget) freeze(t testing.TB, hold time.Duration, nodes ...int) {
	t.Helper()
	for _, n := range nodes {
		if err := c.Nodes[n].Freeze(); err != nil {
			t.Fatal(err)
		}
	}
	time.Sleep(hold)
	for _, n := range nodes {
		if err := c.Nodes[n].Thaw(); err != nil {
			t.Fatal(err)
		}
	}
}

// lag makes a node receive transactions for a time without applying them.
func (c *clusterTarget) lag(t testing.TB, node int, d time.Duration) {
	t.Helper()
	db, err := sql.Open("mysql", c.Nodes[node].DSN(""))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	db.SetMaxOpenConns(1)
	_, err = db.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK")
	time.Sleep(d)
	if _, unlockErr := db.ExecContext(t.Context(), "UNLOCK TABLES"); err != nil || unlockErr != nil {
		t.Fatal(errors.Join(err, unlockErr))
	}
}

// settle waits until all nodes are members for a while. Members that a group has expelled join it again. A node that was cut off
// may not know it yet, so a single check is not enough.
func (c *clusterTarget) settle(t testing.TB) {
	t.Helper()
	state := "SELECT IF(state = 'ONLINE' AND online < 3, 'JOINING', state) FROM (SELECT SUM(member_state = 'ONLINE') AS online," +
		" COALESCE(MAX(IF(member_id = @@server_uuid, member_state, NULL)), 'OFFLINE') AS state FROM performance_schema.replication_group_members) AS own"
	if c.isGalera() {
		state = "SELECT IF(SUM(variable_name = 'wsrep_cluster_size' AND variable_value = 3 OR variable_name = 'wsrep_local_state' AND variable_value = 4) = 2," +
			" 'ONLINE', 'JOINING') FROM information_schema.global_status"
	}
	deadline := time.Now().Add(3 * time.Minute)
	for calm := 0; calm < 3; time.Sleep(700 * time.Millisecond) {
		calm++
		for i, n := range c.Nodes {
			switch s := c.query(t, n, state); s {
			case "ONLINE":
				continue
			case "ERROR", "OFFLINE":
				t.Logf("%s is %s and joins the group again", n.Addr(), s)
				c.JoinAgain(t, i)
			}
			if calm = 0; time.Now().After(deadline) {
				t.Fatalf("%s is not a member", n.Addr())
			}
		}
	}
}

// loseQuorum kills all nodes but one, and then restores the cluster. A Galera cluster forms again by itself. A group is formed
// again from the member that has all transactions.
func (c *clusterTarget) loseQuorum(t testing.TB, remaining int, hold time.Duration) {
	t.Helper()
	others := []int{(remaining + 1) % 3, (remaining + 2) % 3}
	for _, n := range others {
		kill(t, c.Nodes[n])
	}
	time.Sleep(2 * hold)
	if c.isGalera() {
		c.Rejoin(t)
		return
	}
	kill(t, c.Nodes[remaining]) // its blocked commits would keep it from leaving the group
	for _, n := range c.Nodes {
		if err := n.Launch(); err != nil {
			t.Fatal(err)
		}
	}
	first := c.mostAdvanced(t)
	const recovery = "CHANGE REPLICATION SOURCE TO SOURCE_USER='root', SOURCE_PASSWORD='' FOR CHANNEL 'group_replication_recovery'"
	c.execute(t, c.Nodes[first], "SET GLOBAL group_replication_bootstrap_group=ON", "START GROUP_REPLICATION", "SET GLOBAL group_replication_bootstrap_group=OFF")
	for i, n := range c.Nodes {
		if i != first {
			c.execute(t, n, recovery, "START GROUP_REPLICATION")
		}
	}
	if c.singlePrimary {
		c.Await(t)
		c.SinglePrimary(t, first)
	}
	c.Await(t)
}

// mostAdvanced returns the node that has executed or received all transactions of the others.
func (c *clusterTarget) mostAdvanced(t testing.TB) int {
	t.Helper()
	const have = "SELECT CONCAT_WS(',', NULLIF(@@gtid_executed, ''), (SELECT NULLIF(received_transaction_set, '')" +
		" FROM performance_schema.replication_connection_status WHERE channel_name = 'group_replication_applier'))"
	var sets [3]string
	for i, n := range c.Nodes {
		sets[i] = c.query(t, n, have)
	}
	best, most := 0, -1
	for i, n := range c.Nodes {
		contained := 0
		for _, set := range sets {
			if c.query(t, n, fmt.Sprintf("SELECT GTID_SUBSET('%s', '%s')", set, sets[i])) == "1" {
				contained++
			}
		}
		if contained > most {
			best, most = i, contained
		}
	}
	if most < 3 {
		t.Logf("no member has all transactions: %q", sets)
	}
	return best
}
