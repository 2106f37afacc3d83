//go:build unix

package redistest

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

func client(t *testing.T, o *redis.UniversalOptions) redis.UniversalClient {
	t.Helper()
	c := redis.NewUniversalClient(o)
	t.Cleanup(func() { c.Close() })
	return c
}

func do(t *testing.T, steps ...func() error) {
	t.Helper()
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

// set writes a key, if necessary after some attempts, as a client needs a while to notice that a server was replaced.
func set(t *testing.T, c redis.UniversalClient, key, value string) {
	t.Helper()
	var err error
	for range 100 {
		if err = c.Set(t.Context(), key, value, 0).Err(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(err)
}

// want fails the test unless a key has the value; it must be missing if the value is empty.
func want(t *testing.T, c redis.UniversalClient, key, value string) {
	t.Helper()
	got, err := c.Get(t.Context(), key).Result()
	if err != nil && !errors.Is(err, redis.Nil) || got != value {
		t.Errorf("%s is %q, %v; want %q", key, got, err, value)
	}
}

func TestSingleServerCanBeDisturbed(t *testing.T) {
	t.Parallel() // the test mostly waits
	began := time.Now()
	s := Start(t, Config{Lines: []string{"maxmemory-policy allkeys-lru"}})
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	c := client(t, s.Options())
	set(t, c, "a", "1")
	do(t, s.Kill9, s.Start)
	want(t, c, "a", "1")
	copied := t.TempDir()
	do(t, func() error { return s.Snapshot(copied) })
	set(t, c, "a", "2")
	do(t, s.Freeze)
	impatient := s.Options()
	impatient.ReadTimeout, impatient.MaxRetries = 200*time.Millisecond, -1
	if err := client(t, impatient).Get(t.Context(), "a").Err(); err == nil {
		t.Error("a frozen server answers, want an error")
	}
	do(t, s.Thaw)
	want(t, c, "a", "2")
	do(t, s.Kill9, func() error { return s.Restore(copied) }, s.Start)
	want(t, c, "a", "1")
	do(t, s.FlushAll)
	want(t, c, "a", "")
	set(t, c, "a", "3")
	do(t, s.Kill9, s.Wipe, s.Start)
	want(t, c, "a", "")
	if policy := c.ConfigGet(t.Context(), "maxmemory-policy").Val(); policy["maxmemory-policy"] != "allkeys-lru" {
		t.Errorf("the configuration is not as asked for: %v, want policy[\"maxmemory-policy\"] = \"allkeys-lru\"", policy)
	}
}

// TestAccessIsRestricted starts each kind of group with passwords and with TLS. Other clients must be refused.
func TestAccessIsRestricted(t *testing.T) {
	t.Parallel() // the test mostly waits
	for _, cfg := range []Config{{Password: "secret"}, {User: "ann", Password: "secret"}, {User: "ann", Password: "secret", TLS: true}} {
		shapes := map[string]func(t *testing.T) *redis.UniversalOptions{
			"single":     func(t *testing.T) *redis.UniversalOptions { return Start(t, cfg).Options() },
			"replicated": func(t *testing.T) *redis.UniversalOptions { return StartReplicated(t, cfg).Options() },
			"cluster":    func(t *testing.T) *redis.UniversalOptions { return StartCluster(t, cfg).Options() },
		}
		for shape, start := range shapes {
			t.Run(fmt.Sprintf("%s user=%q tls=%t", shape, cfg.User, cfg.TLS), func(t *testing.T) {
				t.Parallel()
				o := start(t)
				c := client(t, o)
				set(t, c, "a", "1")
				want(t, c, "a", "1")
				wrong := *o
				wrong.Password = "guess"
				if err := client(t, &wrong).Ping(t.Context()).Err(); err == nil || !strings.Contains(err.Error(), "WRONGPASS") {
					t.Errorf("with a wrong password: %v, want an error with \"WRONGPASS\"", err)
				}
			})
		}
	}
}

func TestTLSIsRequiredWithoutAPassword(t *testing.T) {
	t.Parallel() // the test mostly waits
	s := Start(t, Config{TLS: true})
	if err := client(t, s.Options()).Ping(t.Context()).Err(); err != nil {
		t.Fatal(err)
	}
	plain := s.Options()
	plain.TLSConfig = nil
	if err := client(t, plain).Ping(t.Context()).Err(); err == nil {
		t.Error("Ping of a client without TLS = <nil>, want an error")
	}
	trusting := s.Options()
	trusting.TLSConfig = &tls.Config{}
	if err := client(t, trusting).Ping(t.Context()).Err(); !errors.As(err, new(x509.UnknownAuthorityError)) {
		t.Errorf("Ping of a client that does not trust the certificate = %v, want an x509.UnknownAuthorityError", err)
	}
}

func TestCutReplicationHeals(t *testing.T) {
	t.Parallel() // the test mostly waits
	r := StartReplicated(t, Config{Password: "secret"})
	c := client(t, r.Options())
	do(t, r.CutReplication)
	set(t, c, "a", "1")
	do(t, r.HealReplication, r.Await)
	if n, err := c.Do(t.Context(), "WAIT", 2, 5000).Int(); n != 2 || err != nil {
		t.Errorf("%d replicas have the write, %v, want n = 2 and no error", n, err)
	}
	p, err := r.Primary()
	if err != nil {
		t.Fatal(err)
	}
	i := slices.Index(r.Nodes[:], p)
	do(t, r.Nodes[(i+1)%3].Kill9, r.Sentinels[0].Kill9, r.Await, r.Start)
}

func TestClusterCanBeDisturbed(t *testing.T) {
	t.Parallel() // the test mostly waits
	began := time.Now()
	k := StartCluster(t, Config{})
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	c := client(t, k.Options())
	keys := []string{"b", "c", "a"} // one on each node
	for i, key := range keys {
		set(t, c, key, "1")
		if n, err := k.Nodes[i].ask(t.Context(), "DBSIZE"); n != int64(1) || err != nil {
			t.Errorf("node %d holds %v keys, %v, want n = %v and no error", i, n, err, int64(1))
		}
	}
	do(t, k.Nodes[1].Kill9)
	var err error
	for range 100 {
		if err = c.Set(t.Context(), "c", "2", 0).Err(); err != nil {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if err == nil {
		t.Error("a cluster without one of its nodes accepts a write, want an error")
	}
	do(t, k.Start)
	for _, key := range keys {
		set(t, c, key, "2")
	}
	do(t, k.Nodes[2].Kill9, k.Nodes[2].Wipe, k.Start)
	want(t, c, keys[0], "2")
	want(t, c, keys[2], "")
	do(t, k.FlushAll)
	want(t, c, keys[0], "")
}
