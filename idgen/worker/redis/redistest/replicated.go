//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leafsql/leafsql/testutil/process"
)

// PrimaryName is the Sentinels' name of the primary.
const PrimaryName = "leafsql"

// Replicated has a primary, two replicas, and three Sentinels that promote a replica if the primary has not answered
// for a second. The Sentinels need no password. A former primary that returns, restarted or thawed,
// acts as a primary until the Sentinels demote it, about ten seconds later. Writes that it acknowledges in this time are lost.
type Replicated struct {
	Nodes     [3]*Server // the first one is the primary at the start
	Sentinels [3]*Server
	party     party
}

// StartReplicated starts a primary with its replicas and Sentinels for one test.
func StartReplicated(tb testing.TB, cfg Config) *Replicated {
	tb.Helper()
	p, err := newParty(cfg, 0, 1, 2, 3, 4, 5)
	if err != nil {
		tb.Fatal(err)
	}
	r := &Replicated{party: p}
	for i := range r.Nodes {
		var replica []string
		if i > 0 {
			replica = []string{fmt.Sprintf("replicaof 127.0.0.1 %d", p.port)}
		}
		if r.Nodes[i], err = p.newNode(i, replica...); err != nil {
			tb.Fatal(err)
		}
		r.Nodes[i].Finish(tb)
	}
	for i := range r.Sentinels {
		if r.Sentinels[i], err = p.newSentinel(i); err != nil {
			tb.Fatal(err)
		}
		r.Sentinels[i].Finish(tb)
	}
	if err := r.Start(); err != nil {
		tb.Fatal(err)
	}
	return r
}

// newSentinel returns Sentinel i. Its configuration has the data that it would otherwise get from the other Sentinels within some seconds.
// The nodes have the group's first three ports, and the Sentinels have the next three.
func (p party) newSentinel(i int) (*Server, error) {
	id := func(i int) string { return fmt.Sprintf("%040x", i+1) }
	lines := []string{
		"sentinel myid " + id(i),
		fmt.Sprintf("sentinel monitor %s 127.0.0.1 %d 2", PrimaryName, p.port),
		"sentinel down-after-milliseconds " + PrimaryName + " 1000",
		"sentinel failover-timeout " + PrimaryName + " 5000",
	}
	if p.cfg.Password != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-pass %s %s", PrimaryName, p.cfg.Password))
	}
	if p.cfg.User != "" {
		lines = append(lines, fmt.Sprintf("sentinel auth-user %s %s", PrimaryName, p.cfg.User))
	}
	for k := range 2 {
		lines = append(lines, fmt.Sprintf("sentinel known-replica %s 127.0.0.1 %d", PrimaryName, p.port+1+k))
	}
	for k := range 3 {
		if k != i {
			lines = append(lines, fmt.Sprintf("sentinel known-sentinel %s 127.0.0.1 %d %s", PrimaryName, p.port+3+k, id(k)))
		}
	}
	p.cfg.User, p.cfg.Password = "", "" // the Sentinel itself requires none
	return p.newServer(3+i, func(string) []string { return lines }, "--sentinel")
}

// Options returns the options of a client that looks up the primary with the Sentinels.
func (r *Replicated) Options() *redis.UniversalOptions {
	o := r.party.options(r.Sentinels[:]...)
	o.MasterName = PrimaryName
	return o
}

// Start starts all nodes and Sentinels that do not run, and waits like Await.
func (r *Replicated) Start() error {
	if err := process.StartAll(slices.Concat(r.Nodes[:], r.Sentinels[:])...); err != nil {
		return err
	}
	return r.Await()
}

// Primary waits until all running Sentinels name the same primary, and returns it.
func (r *Replicated) Primary() (primary *Server, err error) {
	err = process.Until(func(ctx context.Context) error {
		primary, err = r.primary(ctx)
		return err
	})
	return primary, err
}

func (r *Replicated) primary(ctx context.Context) (*Server, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Second) // a frozen Sentinel never answers
	defer cancel()
	var primary *Server
	for _, s := range r.Sentinels {
		if !s.Running() {
			continue
		}
		answer, err := s.ask(ctx, "SENTINEL", "GET-MASTER-ADDR-BY-NAME", PrimaryName)
		if err != nil {
			return nil, err
		}
		at := answer.([]any)
		addr := net.JoinHostPort(at[0].(string), at[1].(string))
		i := slices.IndexFunc(r.Nodes[:], func(n *Server) bool { return n.Addr == addr })
		if i < 0 || primary != nil && primary != r.Nodes[i] {
			return nil, fmt.Errorf("redistest: the Sentinels name several primaries, %s among them", addr)
		}
		primary = r.Nodes[i]
	}
	if primary == nil || !primary.Running() {
		return nil, errors.New("redistest: no primary runs, or no Sentinel")
	}
	info, err := primary.ask(ctx, "INFO", "replication")
	if err == nil && !strings.Contains(info.(string), "role:master") {
		err = fmt.Errorf("redistest: %s is not a primary yet", primary.Addr)
	}
	return primary, err
}

// Await waits until there is a primary, all other running nodes are its replicas, and all running Sentinels have noticed it.
func (r *Replicated) Await() error { return process.Until(r.whole) }

func (r *Replicated) whole(ctx context.Context) error {
	primary, err := r.primary(ctx)
	if err != nil {
		return err
	}
	info, err := primary.ask(ctx, "INFO", "replication")
	if err != nil {
		return err
	}
	for _, n := range r.Nodes {
		if n == primary || !n.Running() {
			continue
		}
		_, port, _ := net.SplitHostPort(n.Addr)
		if !strings.Contains(info.(string), "port="+port+",state=online") {
			return fmt.Errorf("redistest: %s is no replica of %s yet", n.Addr, primary.Addr)
		}
		for _, s := range r.Sentinels {
			if !s.Running() {
				continue
			}
			known, err := s.ask(ctx, "SENTINEL", "REPLICAS", PrimaryName)
			if err == nil {
				err = available(known, port)
			}
			if err == nil {
				_, err = s.ask(ctx, "SENTINEL", "CKQUORUM", PrimaryName)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// available returns an error unless a Sentinel could promote a replica.
func available(known any, port string) error {
	for _, replica := range known.([]any) {
		if is := replica.(map[any]any); is["port"] == port && is["flags"] == "slave" {
			return nil
		}
	}
	return fmt.Errorf("redistest: a Sentinel has not seen the replica at port %s yet", port)
}

// FailOver kills the primary, waits until a replica has replaced it, and returns the former primary, which can be started again.
func (r *Replicated) FailOver() (was *Server, err error) {
	if was, err = r.Primary(); err != nil {
		return nil, err
	}
	if err := was.Kill9(); err != nil {
		return nil, err
	}
	_, err = r.Primary()
	return was, err
}

// CutReplication cuts the primary from its replicas, which then miss all writes that it acknowledges, until
// HealReplication. If the primary fails after more than ten seconds, Sentinels do not promote a replica that was cut off.
func (r *Replicated) CutReplication() error {
	p, err := r.Primary()
	if err != nil {
		return err
	}
	ctx := context.Background()
	_, err = p.ask(ctx, "ACL", "SETUSER", "replica", "off")
	if err == nil {
		_, err = p.ask(ctx, "CLIENT", "KILL", "TYPE", "replica")
	}
	return err
}

// HealReplication lets the replicas reconnect.
func (r *Replicated) HealReplication() error {
	for _, n := range r.Nodes {
		if !n.Running() {
			continue
		}
		if _, err := n.ask(context.Background(), "ACL", "SETUSER", "replica", "on"); err != nil {
			return err
		}
	}
	return nil
}
