//go:build unix

package zktest

import (
	"errors"
	"io"
	"log"
	"strings"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
)

// client connects, and waits for a session.
func client(t *testing.T, addrs ...string) *zk.Conn {
	t.Helper()
	c, _, err := zk.Connect(addrs, 4*time.Second, zk.WithLogger(log.New(io.Discard, "", 0)))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	retry(t, func() error {
		_, _, err := c.Exists("/")
		return err
	})
	return c
}

// retry calls f until it succeeds, as a client needs a while to reconnect to a server.
func retry(t *testing.T, f func() error) {
	t.Helper()
	var err error
	for range 300 {
		if err = f(); err == nil {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal(err)
}

func do(t *testing.T, steps ...func() error) {
	t.Helper()
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

func put(t *testing.T, c *zk.Conn, value string) {
	t.Helper()
	retry(t, func() error {
		_, err := c.Set("/a", []byte(value), -1)
		if errors.Is(err, zk.ErrNoNode) {
			_, err = c.Create("/a", []byte(value), 0, zk.WorldACL(zk.PermAll))
		}
		return err
	})
}

// want fails the test unless the node has the value; it must be missing if the value is empty.
func want(t *testing.T, c *zk.Conn, value string) {
	t.Helper()
	var got []byte
	retry(t, func() (err error) {
		if _, err := c.Sync("/"); err != nil {
			return err
		}
		got, _, err = c.Get("/a")
		if errors.Is(err, zk.ErrNoNode) {
			got, err = nil, nil
		}
		return err
	})
	if string(got) != value {
		t.Errorf("the node is %q, want %q", got, value)
	}
}

func TestSingleServerCanBeDisturbed(t *testing.T) {
	began := time.Now()
	s := Start(t, Config{})
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	c := client(t, s.Addr)
	put(t, c, "1")
	do(t, s.Kill9, s.Start)
	want(t, c, "1")
	copied := t.TempDir()
	do(t, func() error { return s.Snapshot(copied) })
	put(t, c, "2")
	do(t, s.Freeze)
	answer := make(chan error, 1)
	go func() {
		_, _, err := c.Get("/a")
		answer <- err
	}()
	select {
	case err := <-answer:
		if err == nil {
			t.Error("a frozen server answers, want an error")
		}
	case <-time.After(300 * time.Millisecond):
	}
	do(t, s.Thaw)
	want(t, c, "2")
	do(t, s.Kill9, func() error { return s.Restore(copied) }, s.Start)
	want(t, client(t, s.Addr), "1")
	do(t, s.Kill9, s.Wipe, s.Start)
	want(t, client(t, s.Addr), "")
}

func TestDigestRestrictsAccess(t *testing.T) {
	s := Start(t, Config{})
	ann := client(t, s.Addr)
	if err := ann.AddAuth("digest", []byte("ann:secret")); err != nil {
		t.Fatal(err)
	}
	if _, err := ann.Create("/a", []byte("1"), 0, zk.DigestACL(zk.PermAll, "ann", "secret")); err != nil {
		t.Fatal(err)
	}
	want(t, ann, "1")
	if _, _, err := client(t, s.Addr).Get("/a"); !errors.Is(err, zk.ErrNoAuth) {
		t.Errorf("somebody else reads: %v, want %v", err, zk.ErrNoAuth)
	}
}

func TestEnsembleCanBeDisturbed(t *testing.T) {
	began := time.Now()
	e := StartEnsemble(t, Config{})
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	c := client(t, e.Addrs()...)
	put(t, c, "1")
	leader, err := e.Leader()
	if err != nil {
		t.Fatal(err)
	}
	began = time.Now()
	do(t, leader.Kill9)
	if _, err := e.Leader(); err != nil {
		t.Fatal(err)
	}
	t.Logf("another leader %v after kill -9", time.Since(began).Round(time.Millisecond))
	put(t, c, "2")
	do(t, leader.Wipe, e.Start)
	want(t, client(t, leader.Addr), "2")

	for _, n := range e.Nodes {
		do(t, n.Kill9)
	}
	do(t, e.Start)
	want(t, client(t, e.Addrs()...), "2")
	for _, n := range e.Nodes {
		do(t, n.Kill9, n.Wipe)
	}
	do(t, e.Start)
	want(t, client(t, e.Addrs()...), "")
}

func TestMissingServerNamesTheScript(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := newServer(1, 0, nil); err == nil || !strings.Contains(err.Error(), "idgen/worker/zookeeper/zktest/install.sh") {
		t.Errorf("want an error that names install.sh, got %v", err)
	}
}
