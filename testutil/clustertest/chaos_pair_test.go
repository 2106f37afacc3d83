//go:build unix && storm

package clustertest_test

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/clustertest"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// A pairTarget is a primary and a replica.
type pairTarget struct {
	*clustertest.Pair
	how   replication
	front *netfault.Proxy
}

func newPairTarget(t testing.TB, kind mysqltest.Kind, how replication, args []string) *pairTarget {
	t.Helper()
	p := &pairTarget{Pair: clustertest.NewPair(t, kind, args...), how: how}
	p.front = netfault.Start(t, p.BalancerAddr())
	p.waitForReplica(t)
	return p
}

func (p *pairTarget) address() string { return p.front.Addr() }

func (p *pairTarget) admin(database string) string { return p.Primary.DSN(database) }

// waitForReplica makes a semi-synchronous primary wait for its replica, which it does not do after a start.
func (p *pairTarget) waitForReplica(t testing.TB) {
	t.Helper()
	if p.how == waiting {
		p.SemiSync(t, 1000000*time.Second)
	}
}

// failOver kills the primary, promotes the replica, and adds a new one.
func (p *pairTarget) failOver(t testing.TB) {
	t.Helper()
	p.FailOver(t)
	p.AddReplica(t)
	p.waitForReplica(t)
}

// restart starts killed servers with their data.
func (p *pairTarget) restart(t testing.TB, servers ...*mysqltest.Server) {
	t.Helper()
	for _, s := range servers {
		if err := s.Launch(); err != nil {
			t.Fatal(err)
		}
	}
	stop := "STOP REPLICA"
	if p.Replica.Kind() == mysqltest.MariaDB {
		stop = "STOP SLAVE"
	}
	p.Execute(t, p.Replica, stop)
	p.Replicate(t, p.Replica, p.Primary) // connects at once, and makes it read-only
	p.waitForReplica(t)                  // the primary may be waiting for it
	p.AwaitReplica(t)
}

func (p *pairTarget) freeze(t testing.TB, s *mysqltest.Server, hold time.Duration) {
	t.Helper()
	err := s.Freeze()
	time.Sleep(hold)
	if err := errors.Join(err, s.Thaw()); err != nil {
		t.Fatal(err)
	}
}

func (p *pairTarget) faults(random *rand.Rand) []fault {
	return []fault{
		{"fail-over", func(t testing.TB, _ time.Duration) { p.failOver(t) }},
		{"fail-over to a lagging replica", func(t testing.TB, hold time.Duration) {
			p.PauseReplication(t)
			time.Sleep(hold)
			p.failOver(t)
		}},
		{"switch-over", func(t testing.TB, _ time.Duration) {
			p.SwitchOver(t)
			p.waitForReplica(t)
		}},
		{"primary killed", func(t testing.TB, hold time.Duration) {
			kill(t, p.Primary)
			time.Sleep(hold)
			p.restart(t, p.Primary)
		}},
		{"both killed", func(t testing.TB, hold time.Duration) {
			kill(t, p.Primary)
			kill(t, p.Replica)
			time.Sleep(hold)
			p.restart(t, p.Primary, p.Replica)
		}},
		{"replica killed", func(t testing.TB, hold time.Duration) {
			kill(t, p.Replica)
			time.Sleep(hold)
			p.restart(t, p.Replica)
		}},
		{"primary frozen", func(t testing.TB, hold time.Duration) { p.freeze(t, p.Primary, hold) }},
		{"replica frozen", func(t testing.TB, hold time.Duration) { p.freeze(t, p.Replica, hold) }},
		{"primary read-only", func(t testing.TB, hold time.Duration) {
			p.ReadOnly(t, true)
			time.Sleep(hold)
			p.ReadOnly(t, false)
		}},
		{"replica cut off", func(t testing.TB, hold time.Duration) {
			p.PauseReplication(t)
			time.Sleep(hold)
			p.ResumeReplication(t)
		}},
		{"programs cut off", func(t testing.TB, hold time.Duration) { partition(p.front, hold) }},
	}
}
