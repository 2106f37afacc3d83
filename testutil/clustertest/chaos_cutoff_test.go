//go:build unix && storm

package clustertest_test

import (
	"context"
	"database/sql"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// noticeTime is the time after which members of a group notice that another one is silent, 5 s, and one more.
const noticeTime = 6 * time.Second

// cutOffs returns faults that cut the members of a group off from each other, but not from the programs.
func (c *clusterTarget) cutOffs(random *rand.Rand) []fault {
	return []fault{
		{"node in use cut off", func(t testing.TB, hold time.Duration) {
			node := c.balancer.activeNode()
			c.cutOff(t, func() {
				for deadline := time.Now().Add(time.Minute); c.balancer.activeNode() == node; time.Sleep(50 * time.Millisecond) {
					if time.Now().After(deadline) {
						t.Fatalf("node %d is cut off for a minute, and the others do not accept writes", node)
					}
				}
				time.Sleep(hold)
			}, node)
		}},
		{"another node cut off", func(t testing.TB, hold time.Duration) {
			c.cutOff(t, func() { time.Sleep(noticeTime + hold) }, (c.balancer.activeNode()+1+random.IntN(2))%3)
		}},
		{"all nodes cut off", func(t testing.TB, hold time.Duration) {
			c.cutOff(t, func() { time.Sleep(noticeTime + hold) }, 0, 1, 2)
		}},
	}
}

// cutOff cuts nodes off from all others until wait returns. Meanwhile none of them may acknowledge a row.
func (c *clusterTarget) cutOff(t testing.TB, wait func(), nodes ...int) {
	t.Helper()
	c.CutOff(t, nodes...)
	defer func() {
		c.Reconnect(t)
		time.Sleep(noticeTime) // until members have expelled others, if they had decided so before
	}()
	var running sync.WaitGroup
	defer running.Wait()
	for _, node := range nodes {
		c.probes++
		dsn, writer := "app@tcp("+c.Nodes[node].Addr()+")/ids", 1000+c.probes
		running.Go(func() { failToInsert(t, "mysql", dsn, "INSERT INTO plain VALUES (?, 1, 0)", writer) })
		running.Go(func() {
			failToInsert(t, driver.Name, dsn+"?"+leafRules, "INSERT INTO seg (writer, n) VALUES (?, 1)", writer)
		})
	}
	wait()
}

// failToInsert inserts a row on a node without a majority, which must fail, but not later than the context ends.
func failToInsert(t testing.TB, name, dsn, text string, writer int) {
	db, err := sql.Open(name, dsn)
	if err != nil {
		t.Error(err)
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), chaosPatience)
	defer cancel()
	clock := stopwatch.Start(t)
	_, err = db.ExecContext(ctx, text, writer)
	took := clock()
	if err == nil {
		t.Errorf("%s acknowledges a row of %s without a majority", dsn, name)
	}
	if took > chaosPatience+insertTolerance {
		t.Errorf("an INSERT of %s without a majority took %v (error %v), want at most %v", name, took, err, chaosPatience+insertTolerance)
	}
	began := clock()
	db.Close()
	if took := clock() - began; took > 5*time.Second {
		t.Errorf("Close() of %s without a majority took %v, want at most 5s", name, took)
	}
	t.Logf("%s without a majority: %v", name, err)
}
