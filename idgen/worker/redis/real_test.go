package redis

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"log/slog"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

func TestMain(m *testing.M) {
	flag.Set("test.parallel", "8") // the tests mostly wait
	goleak.VerifyTestMain(m)
}

// opening returns the function with which a Keeper opens cfg's registry.
func opening(cfg Config) leasetest.Open {
	return func(context.Context) (worker.Source, error) { return Open(cfg) }
}

// calls returns how often a server has executed each command since its start.
func calls(tb testing.TB, client redis.UniversalClient) func(command string) int {
	tb.Helper()
	text, err := client.Info(tb.Context(), "commandstats").Result()
	if err != nil {
		tb.Fatal(err)
	}
	stats := parseInfo(text)
	return func(command string) int {
		n, _, _ := strings.Cut(strings.TrimPrefix(stats["cmdstat_"+command], "calls="), ",")
		v, _ := strconv.Atoi(n)
		return v
	}
}

// TestRequestsAreFew counts the commands of a worker id in a registry in use: at the take, and while it is held.
func TestRequestsAreFew(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	client := redis.NewUniversalClient(s.Options())
	defer client.Close()
	c := worker.Config{Lease: 42 * time.Second, Workers: 16} // renewed every 5.25 … 7 s; the timeout of a call is 3.5 s
	leasetest.InUse(t, opening(of(s.Options())), c)
	before := calls(t, client)
	k := leasetest.Keep(t, opening(of(s.Options())), c)
	taken := calls(t, client)
	// The GETs are for the registry's document before and after the take, for the slot's, and in the script. INFO is sent for
	// the identity before and after, for the policy, and by this test.
	for command, want := range map[string]int{"eval": 1, "set": 1, "get": 4, "info": 4, "wait": 0} {
		if n := taken(command) - before(command); n != want {
			t.Errorf("a worker id took %d of %s, want %d", n, command, want)
		}
	}
	began := time.Now()
	leasetest.Eventually(t, "two renewals", func() bool { return calls(t, client)("eval") >= taken("eval")+2 })
	later, held := calls(t, client), time.Since(began)
	evals := later("eval") - taken("eval")
	if most := int(held/(5250*time.Millisecond)) + 1; evals > most || later("get")-taken("get") != evals || later("wait") != 0 {
		t.Errorf("%d writes, %d reads in %v, want evals at most %v, later(\"get\")-taken(\"get\") = %v and later(\"wait\") = 0", evals, later("get")-taken("get")-evals, held, most, evals)
	}
	k.Close()
}

// TestRestartKeepsHolders restarts a server that loses nothing. Clients cannot know that it lost nothing: holders of
// worker ids continue, and a process that needs one waits.
func TestRestartKeepsHolders(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	c := worker.Config{Lease: 30 * time.Second, Workers: 4} // longer than the restart
	leasetest.InUse(t, opening(of(s.Options())), c)
	k := leasetest.Keep(t, opening(of(s.Options())), c)
	held := k.Status()
	if err := s.Restart(); err != nil {
		t.Fatal(err)
	}
	leasetest.Eventually(t, "a renewal after the restart", func() bool {
		now := k.Status()
		return now.Since.Equal(held.Since) && now.Limit.After(held.Limit.Add(2*time.Second))
	})
	other, err := worker.Keep(opening(of(s.Options())), c)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	go other.Wait(t.Context())
	leasetest.Eventually(t, "a worker id that is not used yet", func() bool { return other.Status().Phase == "waiting" })
	if wait := time.Until(other.Status().Start); wait < time.Minute || other.Status().Worker == held.Worker {
		t.Errorf("second process: Status() = %+v, want a wait of at least 1m0s and another worker id than %d", other.Status(), held.Worker)
	}
}

// TestSilentServerDelaysNoLease uses a server that accepts connections but does not answer on the first ones, as a starting server may.
func TestSilentServerDelaysNoLease(t *testing.T) {
	t.Parallel()
	p := netfault.Start(t, redistest.Start(t, redistest.Config{}).Addr)
	p.Silence(3)
	leasetest.Keep(t, opening(Config{Servers: []string{p.Addr()}}), worker.Config{Workers: 4, NewRegistry: true})
}

// TestLostReplyWritesOnce loses the reply of a write that was executed.
func TestLostReplyWritesOnce(t *testing.T) {
	t.Parallel()
	p := netfault.Start(t, redistest.Start(t, redistest.Config{}).Addr)
	workertest.Registry(func(testing.TB) workertest.Fixture {
		return workertest.Fixture{Open: func(context.Context) (worker.Source, error) { return Open(Config{Servers: []string{p.Addr()}}) }}
	}).LostReply(t, func() { p.Drop(netfault.ToClient) }, p.Heal)
}

// TestDocumentedRightsSuffice uses a user with only the rights that the documentation lists, and TLS.
func TestDocumentedRightsSuffice(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{Password: "s3cret", TLS: true})
	client := redis.NewUniversalClient(s.Options())
	defer client.Close()
	acl := []any{"ACL", "SETUSER", "ids", "on", ">pa%ss", "~{shop}:*", "-@all", "+get", "+set", "+eval", "+info", "+time", "+wait", "+select"}
	if err := client.Do(t.Context(), acl...).Err(); err != nil {
		t.Fatal(err)
	}
	opts := worker.Options{"Username": "ids", "Password": "pa%ss", "Prefix": "shop", "TLS": "true", "CA": s.CertFile, "Database": "3"}
	lease := func(opts worker.Options) (*worker.Status, error) {
		open, err := worker.Lookup("redis("+s.Addr+")", opts)
		if err != nil {
			return nil, err
		}
		k, err := worker.Keep(open, worker.Config{Workers: 4, NewRegistry: true, Logger: slog.New(slog.DiscardHandler)})
		if err != nil {
			return nil, err
		}
		defer k.Close()
		return leasetest.Wait(t, k)
	}
	if st, err := lease(opts); err != nil || st.Worker < 0 || !strings.Contains(st.Registry, s.Addr+", database 3, keys {shop}:") || st.ClockOffset.Abs() > 2*time.Second {
		t.Errorf("lease(opts) = %+v, %v, want Worker at least 0, text with %q, st.ClockOffset.Abs() at most 2s and no error", st, err, s.Addr+", database 3, keys {shop}:")
	}
	for option, value := range map[string]string{"Password": "wr0ng", "Username": "nobody", "Prefix": "other"} {
		wrong := worker.Options{}
		for k, v := range opts {
			wrong[k] = v
		}
		wrong[option] = value
		_, err := lease(wrong)
		if e, ok := errors.AsType[*worker.UnusableError](err); !ok || strings.Contains(err.Error(), "wr0ng") || strings.Contains(err.Error(), "pa%ss") {
			t.Errorf("%s=%s: %v, %v, want ok = true, an error without \"wr0ng\" and an error without \"pa%%ss\"", option, value, err, e)
		}
	}
}

// TestReplicaIsRefused configures a replica in place of a primary.
func TestReplicaIsRefused(t *testing.T) {
	t.Parallel()
	r := redistest.StartReplicated(t, redistest.Config{})
	src, err := Open(Config{Servers: []string{r.Nodes[1].Addr}})
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if _, err := src.Identity(t.Context()); err == nil || !strings.Contains(err.Error(), "leafRedisMaster") {
		t.Error(err)
	}
	if _, ok, err := src.Slots.Put(t.Context(), 0, worker.Doc{Nonce: "initial", Free: true}, ""); ok || !leasetest.NotWritten(err) {
		t.Errorf("Put() on a replica = %t, %v, want false and an error after which nothing was written", ok, err)
	}
}

// TestReplicasAreWaitedFor: a write waits for a replica if the server has replicas.
func TestReplicasAreWaitedFor(t *testing.T) {
	t.Parallel()
	r := redistest.StartReplicated(t, redistest.Config{})
	put := func(replicas int) (bool, error) {
		src, err := Open(Config{Servers: []string{r.Nodes[0].Addr}, Replicas: replicas, Prefix: strconv.Itoa(replicas)})
		if err != nil {
			t.Fatal(err)
		}
		defer src.Close()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		if _, err := src.Identity(ctx); err != nil {
			t.Fatal(err)
		}
		_, _, err = src.Slots.Get(ctx, 0)
		if err != nil {
			t.Fatal(err)
		}
		_, ok, err := src.Slots.Put(ctx, 0, worker.Doc{Nonce: "initial", Free: true}, "")
		return ok, err
	}
	for _, n := range []int{-1, 0, 1, 2} {
		if ok, err := put(n); !ok || err != nil {
			t.Errorf("%d replicas: %v, %v, want ok = true and no error", n, ok, err)
		}
	}
	if ok, err := put(3); ok || err == nil || leasetest.NotWritten(err) || !strings.Contains(err.Error(), "only 2 of 3 required replicas have the write") {
		t.Errorf("Put() that requires 3 replicas = %v, %v, want false and an unclear error with \"only 2 of 3\"", ok, err)
	}
}

// TestEvictingServerIsLogged: one warning is logged for a server that evicts keys.
func TestEvictingServerIsLogged(t *testing.T) {
	t.Parallel()
	for policy, want := range map[string]int{"noeviction": 0, "allkeys-lru": 1} {
		s := redistest.Start(t, redistest.Config{Lines: []string{"maxmemory-policy " + policy}})
		var out bytes.Buffer
		cfg := of(s.Options())
		cfg.Logger = slog.New(slog.NewTextHandler(&out, nil))
		src, err := Open(cfg)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if _, err := src.Identity(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if n := strings.Count(out.String(), "maxmemory_policy="+policy); n != want {
			t.Errorf("policy = %s, out.String() = %q, want n = %v", policy, out.String(), want)
		}
		src.Close()
	}
}

// TestFrozenSentinelIsSkipped freezes each Sentinel, including the one that was used last, while the primary is looked up.
func TestFrozenSentinelIsSkipped(t *testing.T) {
	t.Parallel()
	r := redistest.StartReplicated(t, redistest.Config{})
	src, err := Open(of(r.Options()))
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	identity := func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		_, err := src.Identity(ctx)
		return err == nil
	}
	leasetest.Eventually(t, "an identity", identity)
	client := redis.NewUniversalClient(r.Options())
	defer client.Close()
	for _, s := range r.Sentinels {
		if err := client.Do(t.Context(), "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes").Err(); err != nil {
			t.Fatal(err)
		}
		if err := s.Freeze(); err != nil {
			t.Fatal(err)
		}
		leasetest.Eventually(t, "an identity beside a frozen Sentinel", identity)
		if err := s.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
}

// TestFrozenNodesDelayNoLease freezes each node of a cluster except the one with the documents.
func TestFrozenNodesDelayNoLease(t *testing.T) {
	t.Parallel()
	c := redistest.StartCluster(t, redistest.Config{Lines: []string{"cluster-require-full-coverage no"}})
	lease, open := worker.Config{Workers: 8}, opening(of(c.Options()))
	leasetest.InUse(t, open, lease)
	others := 0
	for _, n := range c.Nodes {
		client := redis.NewClient(n.Options().Simple())
		defer client.Close()
		if keys, err := client.DBSize(t.Context()).Result(); err != nil {
			t.Fatal(err)
		} else if keys > 0 {
			continue
		}
		others++
		if err := n.Freeze(); err != nil {
			t.Fatal(err)
		}
		leasetest.Keep(t, open, lease)
		if err := n.Thaw(); err != nil {
			t.Fatal(err)
		}
	}
	if others != 2 {
		t.Errorf("%d nodes have no documents, want 2", others)
	}
}
