package zookeeper

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper/internal/javaleaf"
	"github.com/leafsql/leafsql/internal/leasetest"
)

// leaf starts a Java Leaf that shares cfg's registry.
func leaf(t *testing.T, cfg Config, n int) *javaleaf.Leaf {
	t.Helper()
	l, err := javaleaf.Start(t.Context(), javaleaf.Config{
		Name: cfg.Name, Addr: fmt.Sprintf("10.0.0.%d:8080", n), ZooKeeper: cfg.Servers, Every: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// keepBeside returns a Keeper that has taken a worker id, which is first if that is free, or the error that all are taken.
func keepBeside(t *testing.T, cfg Config, first int, c worker.Config) (*worker.Keeper, error) {
	t.Helper()
	c.NewRegistry, c.Logger = true, slog.New(slog.DiscardHandler)
	k, err := worker.Keep(func(context.Context) (worker.Source, error) {
		src, err := Open(cfg)
		src.Last = func(context.Context) (int, bool) { return first, true }
		return src, err
	}, c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	for { // on a busy machine the first search may fail
		st, err := k.Wait(ctx)
		if e, ok := errors.AsType[*worker.UnavailableError](err); err == nil || ok && e.Reason == "taken" || st == nil {
			return k, err
		}
		select {
		case <-st.Changed():
		case <-ctx.Done():
		}
	}
}

// TestJavaLeafSharesNoWorkerID starts both, one after the other and together: no worker id has two owners.
func TestJavaLeafSharesNoWorkerID(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	var (
		mu    sync.Mutex
		owner = make(map[int]string)
		wg    sync.WaitGroup
	)
	has := func(n int, who string) {
		mu.Lock()
		defer mu.Unlock()
		if owner[n] != "" {
			t.Errorf("worker id %d is %s's and %s's, want owner[n] = \"\"", n, owner[n], who)
		}
		owner[n] = who
	}
	first := leaf(t, cfg, 1)
	defer first.Stop()
	has(first.Worker, "the first Java Leaf")
	for i := range 20 {
		wg.Go(func() {
			l := leaf(t, cfg, 2+i)
			has(l.Worker, "a Java Leaf")
			time.Sleep(time.Second)
			l.Stop()
		})
		wg.Go(func() {
			k, err := keepBeside(t, cfg, i, worker.Config{Workers: 128})
			if err != nil {
				t.Error(err)
				return
			}
			if n := k.Status().Worker; n < reservedCount {
				t.Errorf("worker id %d, which is for Java Leaf, want at least %v", n, reservedCount)
			}
			has(k.Status().Worker, "a keeper")
		})
	}
	wg.Wait()
}

// TestRegistryOfJavaLeafsIsFull: no worker id is free.
func TestRegistryOfJavaLeafsIsFull(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	l := leaf(t, cfg, 1)
	defer l.Stop()
	_, err := keepBeside(t, cfg, 0, worker.Config{Workers: reservedCount + 1})
	if e, ok := errors.AsType[*worker.UnavailableError](err); !ok || e.Reason != "taken" || !strings.Contains(err.Error(), fmt.Sprintf("all %d worker ids", reservedCount+1)) {
		t.Error(err)
	}
}

// TestJavaLeafEndsALease starts Java Leafs until their numbers reach a worker id that is held. The holder gives it up before a
// Java Leaf gets it, and takes another one.
func TestJavaLeafEndsALease(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	l := leaf(t, cfg, 1)
	defer l.Stop()
	leases := worker.Config{Workers: 128, Lease: 6 * time.Second}
	leasetest.InUse(t, opening(cfg), leases) // otherwise the process would wait because the next worker id's history is unknown
	k, err := keepBeside(t, cfg, 80, leases)
	if err != nil {
		t.Fatal(err)
	}
	const had = 80
	if n := k.Status().Worker; n != had {
		t.Fatalf("worker id %d, want %v", n, had)
	}
	c := client(t, cfg)
	for n := range had - reservedCount + 1 { // until the worker id is among the reserved numbers
		if _, err := c.Create("/snowflake/"+cfg.Name+"/forever/10.0.1.1:"+fmt.Sprint(n+1)+"-", nil, zk.FlagSequence, zk.WorldACL(zk.PermAll)); err != nil {
			t.Fatal(err)
		}
	}
	leasetest.Eventually(t, "it is given up", func() bool { return k.Status().Worker != had || k.Status().Phase != "holding" })
	leasetest.Eventually(t, "another worker id", func() bool { s := k.Status(); return s.Worker != had && s.Phase == "holding" })
	if n := k.Status().Worker; n < had {
		t.Errorf("worker id %d after %d, want n at least %v", n, had, had)
	}
}

// TestNumberOfAGoneJavaLeafIsTaken: if no other worker id is free, a process takes the number of a Java Leaf that has gone. It issues later
// times than that one may have issued. The Java Leaf gets a new number when it returns.
func TestNumberOfAGoneJavaLeafIsTaken(t *testing.T) {
	t.Parallel()
	cfg := onSharedServer(t)
	c := client(t, cfg)
	l := leaf(t, cfg, 1)
	number := l.Worker
	l.Stop()
	absent := time.Now()
	short := worker.Config{Workers: number + 1, Lease: 6 * time.Second}
	if _, err := keepBeside(t, cfg, number, short); err == nil {
		t.Error("a process took the number of a Java Leaf that ran a moment ago, want an error")
	}
	// The next numbers are all taken, so that this number is not among the reserved ones.
	src, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	r := src.Slots.(*registry)
	r.absenceLimit = time.Millisecond
	leasetest.Eventually(t, "it has gone", func() bool { return time.Since(absent) > 10*time.Millisecond })
	d, v, err := r.Get(t.Context(), number)
	if err != nil || d.Free || d.Registry != "" || v == takenVersion {
		t.Fatalf("Get() = %+v, %q, %v, want the held document of an unknown registry", d, v, err)
	}
	mine := worker.Doc{Nonce: "n", HighWater: time.UnixMilli(time.Now().UnixMilli()), Owner: "test"}

	// A process that has not read its node, or has not found that it has gone, does not get its number.
	for _, v := range []worker.Version{"", takenVersion} {
		if _, ok, err := r.Put(t.Context(), number, mine, v); ok || err != nil {
			t.Errorf("at %q: %v, %v, want ok = false and no error", v, ok, err)
		}
	}
	// A Java Leaf that has reported since keeps its number.
	back := leaf(t, cfg, 1)
	if back.Worker != number {
		t.Fatalf("number %d again, it was %d, want back.Worker = %v", back.Worker, number, number)
	}
	leasetest.Eventually(t, "a report", func() bool { return changed(t, c, back.Path) })
	back.Stop()
	if _, ok, err := r.Put(t.Context(), number, mine, v); ok || err != nil {
		t.Errorf("Put(number, mine, v) = %v, %v, want ok = false and no error", ok, err)
	}

	time.Sleep(10 * time.Millisecond)
	_, v, err = r.Get(t.Context(), number)
	if err != nil {
		t.Fatal(err)
	}
	after, ok, err := r.Put(t.Context(), number, mine, v)
	if !ok {
		t.Fatalf("Put(number, mine, v) = %v, %v, want ok = true", ok, err)
	}
	if there, _, err := c.Exists(back.Path); there || err != nil {
		t.Errorf("its node is there: %v, %v, want there = false and no error", there, err)
	}
	if got, now, err := r.Get(t.Context(), number); err != nil || got != mine || now != after {
		t.Errorf("%+v at %q, %v, want got = %v, now = %v and no error", got, now, err, mine, after)
	}
	again := leaf(t, cfg, 1)
	defer again.Stop()
	if again.Worker == number {
		t.Errorf("number %d, which is taken, want not %v", again.Worker, number)
	}
	if _, ok, err := r.Put(t.Context(), number, worker.Doc{Nonce: "n", HighWater: mine.HighWater.Add(time.Second)}, after); !ok {
		t.Errorf("a renewal: %v, %v, want ok = true", ok, err)
	}
}

// changed reports whether a Java Leaf has reported since its node was created.
func changed(t *testing.T, c *zk.Conn, node string) bool {
	_, stat, err := c.Get(node)
	if err != nil {
		t.Fatal(err)
	}
	return stat.Version > 0
}
