//go:build unix && storm

package clustertest_test

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/haproxytest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// Queries that return 1 if a node is a member and accepts writes.
const (
	galeraHealth = "SELECT variable_value = 'ON' AND @@read_only = 0 FROM information_schema.global_status WHERE variable_name = 'wsrep_ready'"
	groupHealth  = "SELECT SUM(member_id = @@server_uuid AND member_state = 'ONLINE') AND 2 * SUM(member_state = 'ONLINE') > COUNT(*)" +
		" AND @@super_read_only = 0 FROM performance_schema.replication_group_members"
)

// A balancer is an HAProxy that forwards to one node of a cluster, and to another node when that one is not healthy. Sessions of a
// node that does not answer are closed; sessions of a read-only node are not.
type balancer struct {
	front   *netfault.Proxy // in front of HAProxy
	haproxy *haproxytest.HAProxy
	health  string
	nodes   [3]*sql.DB

	mu      sync.Mutex
	active  int
	failed  int  // successive checks
	scatter bool // forward to all healthy nodes, and close all sessions again and again
}

func newBalancer(t testing.TB, c *clustertest.Cluster, health string) *balancer {
	t.Helper()
	port, err := freeport.Find()
	if err != nil {
		t.Fatal(err)
	}
	addr := fmt.Sprintf("127.0.0.1:%d", port)
	section := "listen db\n\tbind " + addr + "\n\tbalance roundrobin"
	b := &balancer{health: health}
	for i, n := range c.Nodes {
		section += fmt.Sprintf("\n\tserver n%d %s%s", i, n.Addr(), []string{"", " disabled"}[min(i, 1)])
		if b.nodes[i], err = sql.Open("mysql", n.DSN("")); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { b.nodes[i].Close() })
	}
	b.haproxy = haproxytest.Run(t, section)
	b.front = netfault.Start(t, addr)
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		for ctx.Err() == nil {
			b.check(ctx, t)
			time.Sleep(100 * time.Millisecond)
		}
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return b
}

// check checks all nodes, and forwards to another one if the active one is not healthy twice.
func (b *balancer) check(ctx context.Context, t testing.TB) {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	var healthy, answers [3]bool
	var wg sync.WaitGroup
	for i, db := range b.nodes {
		wg.Go(func() {
			err := db.QueryRowContext(ctx, b.health).Scan(&healthy[i])
			answers[i] = err == nil
		})
	}
	wg.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.scatter {
		for i, ok := range healthy {
			b.set(t, i, ok, true)
		}
		return
	}
	if healthy[b.active] {
		b.failed = 0
		return
	}
	if b.failed++; b.failed < 2 {
		return
	}
	for i, ok := range healthy {
		if ok {
			b.set(t, b.active, false, !answers[b.active])
			b.set(t, i, true, false)
			b.active, b.failed = i, 0
			return
		}
	}
}

// set makes HAProxy forward to a node or not, and closes its sessions if closes is set.
func (b *balancer) set(t testing.TB, node int, ready, closes bool) {
	state := "maint"
	if ready {
		state = "ready"
	}
	commands := []string{fmt.Sprintf("set server db/n%d state %s", node, state)}
	if closes {
		commands = append(commands, fmt.Sprintf("shutdown sessions server db/n%d", node))
	}
	for _, command := range commands {
		if answer := b.haproxy.Ask(t, command); strings.TrimSpace(answer) != "" {
			t.Errorf("haproxy: %s: %s", command, answer)
		}
	}
}

// scatterFor sends each connection to the next node and closes all sessions at each check.
func (b *balancer) scatterFor(t testing.TB, d time.Duration) {
	b.mu.Lock()
	b.scatter = true
	b.mu.Unlock()
	time.Sleep(d)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.scatter = false
	for i := range b.nodes {
		b.set(t, i, i == b.active, i != b.active)
	}
}

// partition loses all data between the programs and the balancer for a time.
func partition(front *netfault.Proxy, d time.Duration) {
	front.Drop(netfault.Both)
	time.Sleep(d)
	front.Heal()
}

func (b *balancer) activeNode() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.active
}
