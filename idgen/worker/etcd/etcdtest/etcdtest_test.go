//go:build unix

package etcdtest

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
)

func client(t *testing.T, cfg clientv3.Config) *clientv3.Client {
	t.Helper()
	c, err := clientv3.New(cfg)
	if err != nil {
		t.Fatal(err)
	}
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

// patient is the timeout of calls on a busy machine.
const patient = 30 * time.Second

// put writes a key, perhaps after some attempts, and returns the id of the cluster.
func put(t *testing.T, c *clientv3.Client, value string) (cluster uint64) {
	t.Helper()
	for until := time.Now().Add(patient); ; {
		ctx, cancel := context.WithTimeout(t.Context(), time.Second) // the server takes much longer to give up
		r, err := c.Put(ctx, "a", value)
		cancel()
		if err == nil {
			return r.Header.ClusterId
		}
		if time.Now().After(until) {
			t.Fatal(err)
		}
	}
}

// want fails the test unless the key has the value; it must be missing if the value is empty.
func want(t *testing.T, c *clientv3.Client, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patient)
	defer cancel()
	r, err := c.Get(ctx, "a")
	if err != nil {
		t.Fatal(err)
	}
	got := ""
	for _, kv := range r.Kvs {
		got = string(kv.Value)
	}
	if got != value {
		t.Errorf("the key is %q, want %q", got, value)
	}
}

// refused fails the test unless a write fails with an error that contains why.
func refused(t *testing.T, cfg clientv3.Config, why string) {
	t.Helper()
	wait := time.Second
	if why != "" { // the server's answer, which takes longer on a busy machine
		wait = patient
	}
	ctx, cancel := context.WithTimeout(t.Context(), wait)
	defer cancel()
	cfg.DialTimeout = wait
	c, err := clientv3.New(cfg)
	if err == nil {
		_, err = c.Put(ctx, "refused", "1")
		c.Close()
	}
	if err == nil || !strings.Contains(err.Error(), why) {
		t.Errorf("a write: %v, want %q", err, why)
	}
}

func TestSingleServerCanBeDisturbed(t *testing.T) {
	t.Parallel()
	began := time.Now()
	s := Start(t, Config{})
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	c := client(t, s.ClientConfig())
	was := put(t, c, "1")
	do(t, s.Kill9, s.Start)
	want(t, c, "1")
	copied := t.TempDir()
	do(t, func() error { return s.Snapshot(copied) })
	put(t, c, "2")
	do(t, s.Freeze)
	refused(t, s.ClientConfig(), "deadline exceeded")
	do(t, s.Thaw)
	want(t, c, "2")
	do(t, s.Kill9, func() error { return s.Restore(copied) }, s.Start)
	want(t, c, "1")
	do(t, s.Kill9, s.Wipe, s.Start)
	want(t, c, "")
	if is := put(t, c, "3"); is != was {
		t.Errorf("a server that was wiped has another cluster id, %x instead of %x: the package's documentation is wrong", is, was)
	}
}

func TestAccessIsRestricted(t *testing.T) {
	t.Parallel() // the test mostly waits
	for _, cfg := range []Config{{Password: "secret"}, {TLS: true}, {Password: "secret", TLS: true}} {
		for shape, start := range map[string]func(t *testing.T) clientv3.Config{
			"single":  func(t *testing.T) clientv3.Config { return Start(t, cfg).ClientConfig() },
			"cluster": func(t *testing.T) clientv3.Config { return StartCluster(t, cfg).ClientConfig() },
		} {
			t.Run(fmt.Sprintf("%s password=%q tls=%t", shape, cfg.Password, cfg.TLS), func(t *testing.T) {
				t.Parallel()
				right := start(t)
				c := client(t, right)
				put(t, c, "1")
				want(t, c, "1")
				if cfg.Password != "" {
					wrong := right
					wrong.Password = "guess"
					refused(t, wrong, "invalid user ID or password")
					wrong.Username, wrong.Password = "", ""
					refused(t, wrong, "user name is empty")
				}
				if cfg.TLS {
					wrong := right
					wrong.TLS = &tls.Config{}
					refused(t, wrong, "") // the client's error does not always name the certificate
				}
			})
		}
	}
}

func TestWipeRemovesAuthentication(t *testing.T) {
	t.Parallel()
	s := Start(t, Config{Password: "secret"})
	do(t, s.Kill9, s.Wipe, s.Start)
	open := s.ClientConfig()
	open.Username, open.Password = "", ""
	put(t, client(t, open), "1")
	do(t, s.EnableAuth)
	refused(t, open, "user name is empty")
	want(t, client(t, s.ClientConfig()), "1")
}

func TestClusterCanBeDisturbed(t *testing.T) {
	t.Parallel()
	began := time.Now()
	k := StartCluster(t, Config{})
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	c := client(t, k.ClientConfig())
	was := put(t, c, "1")
	leader, err := k.Leader()
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	do(t, leader.Kill9)
	put(t, c, "2")
	t.Logf("writes again %v after kill -9 of the leader", time.Since(began).Round(time.Millisecond))
	if leader, err = k.Leader(); err != nil {
		t.Fatal(err)
	}
	do(t, leader.Freeze)             // no majority remains
	refused(t, k.ClientConfig(), "") // by the client's deadline, or the server's
	do(t, leader.Thaw, k.Start)
	put(t, c, "3")

	do(t, k.Nodes[1].Kill9, func() error { return k.Replace(k.Nodes[1]) })
	want(t, client(t, k.Nodes[1].ClientConfig()), "3")

	for _, n := range k.Nodes {
		do(t, n.Kill9)
	}
	do(t, k.Start)
	want(t, c, "3")
	for _, n := range k.Nodes {
		do(t, n.Kill9, n.Wipe)
	}
	do(t, k.Start)
	want(t, c, "")
	if is := put(t, c, "4"); is != was {
		t.Errorf("a cluster that was wiped has another id, %x instead of %x: the package's documentation is wrong", is, was)
	}
}
