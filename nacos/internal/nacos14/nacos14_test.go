package nacos14

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

func addressOf(s *fakenacos.Server) string { return fmt.Sprintf("http://127.0.0.1:%d", s.Port) }

func configOf(s *fakenacos.Server, user, password string) Config {
	return configAt(addressOf(s), user, password)
}

func configAt(address, user, password string) Config {
	return Config{
		HTTP:    api.NewHTTP([]string{address + "/nacos"}, nil, user, password),
		Version: "1.4.1", Servers: "fake", Name: "fake", Group: "DEFAULT_GROUP", Service: "leafsql",
		Self: api.Instance{IP: "127.0.0.1", ClusterName: "DEFAULT"}, Logger: slog.New(slog.DiscardHandler),
	}
}

// quick returns the registry on a fake, with shorter times than on a real server.
func quick(t *testing.T, s *fakenacos.Server) *registry { return quickAt(t, addressOf(s)) }

func quickAt(t *testing.T, address string) *registry {
	t.Helper()
	r := newRegistry(configAt(address, "", ""))
	r.listDelay = 500 * time.Millisecond
	t.Cleanup(func() { r.close() })
	return r
}

// within30s returns a context for conditions that are expected soon.
func within30s(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	t.Cleanup(cancel)
	return ctx
}

// named returns the worker id that a registry names.
func named(ctx context.Context, r *registry) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.findUnique(ctx)
}

// doc returns a document that has not been used.
func doc() worker.Doc {
	return worker.Doc{Nonce: rand.Text(), HighWater: time.UnixMilli(time.Now().UnixMilli())}
}

const fakeService = "public/DEFAULT_GROUP@@leafsql"

// untilUnique returns a context for many instances that look for unique ids on
// a server that gives half of them the id of another.
func untilUnique(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestRegistrationsGetUniqueIDs: many instances that register at once get unique ids from a
// server that gives one id to several, and loses some registrations.
func TestRegistrationsGetUniqueIDs(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.SameID, f.Unregistered, f.ListLag = 2, 4, 20*time.Millisecond })
	var (
		mu   sync.Mutex
		seen = make(map[int]bool)
		wg   sync.WaitGroup
	)
	for range 16 {
		l := quick(t, s)
		l.listDelay = 2 * time.Second // for a machine on which all of this is slow
		wg.Go(func() {
			id, err := named(untilUnique(t), l)
			if err != nil {
				t.Error(err)
				return
			}
			again, err := named(untilUnique(t), l)
			mu.Lock()
			defer mu.Unlock()
			if err != nil || again != id || seen[id] {
				t.Errorf("worker id %d, then %d, %v; given twice: %v", id, again, err, seen[id])
			}
			seen[id] = true
		})
	}
	wg.Wait()
}

// TestOccupiedIDIsRefused: an instance id is refused as often as it is given while its
// document is held by a process that is not in the list, such as this process
// if its registration was lost while it took the slot.
func TestOccupiedIDIsRefused(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	a, b := quick(t, s), quick(t, s)
	held := worker.Doc{Nonce: "n", HighWater: time.Now().Add(time.Minute)}
	if err := a.publish(t.Context(), a.id(0), held.Encode()); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*registry{a, b} {
		if _, err := named(within30s(t), l); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, in := range s.Instances(fakeService) {
		ids = append(ids, in.InstanceID)
	}
	if a.ownID != 1 || b.ownID != 2 || strings.Join(ids, " ") != "1 2" {
		t.Errorf("worker ids %d and %d; instances %v, want a.ownID = 1, b.ownID = 2 and strings.Join(ids, \" \") = \"1 2\"", a.ownID, b.ownID, ids)
	}
}

// TestLateInstanceGivesUpItsID: an instance gives up an id that another one verified
// between the instance's decision to register and its registration.
func TestLateInstanceGivesUpItsID(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.SameID = 1 })
	a, b := quick(t, s), quick(t, s)
	a.registration, a.ownID = a.instance(1), noID
	time.Sleep(2 * time.Millisecond) // registrations have a time in ms
	if _, err := named(within30s(t), b); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if id, err := named(ctx, a); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("worker id %d, %v, and %d is another's, want context.DeadlineExceeded", id, err, b.ownID)
	}
}

// TestDocumentDecidesBetweenHolders: two holders of one id find each other at the document.
func TestDocumentDecidesBetweenHolders(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	a, b := quick(t, s), quick(t, s)
	slot, err := named(within30s(t), a)
	if err != nil {
		t.Fatal(err)
	}
	if _, ok, err := b.Put(t.Context(), slot, doc(), ""); ok || !leasetest.NotWritten(err) {
		t.Errorf("Put() without an instance = %v, %v, want false and an error after which nothing was written", ok, err)
	}
	b.registration, b.ownID = a.registration, a.ownID // as in a copy of the virtual machine
	initial := worker.Doc{Nonce: "initial", Free: true}
	v, ok, err := a.Put(within30s(t), slot, initial, "")
	if !ok {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	var (
		taken [2]bool
		errs  [2]error
	)
	for i, l := range []*registry{a, b} {
		wg.Go(func() { _, taken[i], errs[i] = l.Put(within30s(t), slot, doc(), v) })
	}
	wg.Wait()
	for i, err := range errs {
		if err != nil && (taken[i] || !leasetest.NotWritten(err)) {
			t.Errorf("want that one takes the slot and the other is refused, got %v, %v", taken[i], err)
		}
	}
	if taken[0] == taken[1] {
		t.Errorf("slot taken by the two: %v, want by exactly one", taken)
	}
	if _, ok, _ := a.Put(within30s(t), slot, doc(), v); ok {
		t.Error("Put() on an old version = true, want false")
	}
	_, now, err := a.read(t.Context(), slot)
	if err != nil {
		t.Fatal(err)
	}
	restore := s.Copy()
	s.Wipe()
	if err := a.register(t.Context(), a.registration); err != nil {
		t.Fatal(err)
	}
	if _, ok, _ := a.Put(within30s(t), slot, doc(), now); ok {
		t.Error("Put() on a wiped document = true, want false")
	}
	restore()
	if err := a.deregister(t.Context(), a.registration); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := a.Put(within30s(t), slot, doc(), now); ok || !leasetest.NotWritten(err) {
		t.Errorf("Put() after the instance was removed = %v, %v, want false and an error after which nothing was written", ok, err)
	}
}

// TestIDOfADeadProcessIsGivenAgain: the id of a process that ended long ago is given again,
// but not that of a process that may still run.
func TestIDOfADeadProcessIsGivenAgain(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	old := quick(t, s)
	register := func(ip string, slot int, hw time.Time) {
		in := api.Instance{IP: ip, Port: 1, Metadata: map[string]string{metaSince: "1"}}
		if err := old.register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		d := worker.Doc{Nonce: "n", HighWater: hw}
		if err := old.publish(t.Context(), old.id(slot), d.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	register("10.0.0.1", 0, time.Now().Add(-time.Hour))
	register("10.0.0.2", 1, time.Now().Add(-time.Minute))
	if id, err := named(within30s(t), old); err != nil || id != 2 {
		t.Fatalf("named(within30s(t), old) = %v, %v, want 2 and no error", id, err)
	}
	var left []string
	for _, in := range s.Instances(fakeService) {
		left = append(left, in.IP)
	}
	if got := strings.Join(left, " "); strings.Contains(got, "10.0.0.1") || !strings.Contains(got, "10.0.0.2") {
		t.Errorf("left are %s, want no text with \"10.0.0.1\" and text with \"10.0.0.2\"", got)
	}
}

func TestCredentialsAreChecked(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "u", "p" })
	for user, password := range map[string]string{"": "", "u": "wrong"} {
		r := newRegistry(configOf(s, user, password))
		_, err := named(within30s(t), r)
		if e, ok := errors.AsType[*api.LoginError](err); !ok || e.User != user {
			t.Errorf("user %q: %v, want ok = true and e.User = %v", user, err, user)
		}
		// A search returns the same result.
		if _, ok := r.instanceID(within30s(t)); ok {
			t.Errorf("user %q has an instance id, want ok = false", user)
		}
		if _, _, err := r.Get(within30s(t), worker.RegistrySlot); err == nil {
			t.Errorf("user %q reads, want an error", user)
		}
		r.close()
	}
	r := newRegistry(configOf(s, "u", "p"))
	defer r.close()
	r.listDelay = 10 * time.Millisecond
	if _, err := named(within30s(t), r); err != nil {
		t.Error(err)
	}
	s.Forget()
	if _, err := named(within30s(t), r); err != nil {
		t.Errorf("after the token was forgotten: %v", err)
	}
}

func TestVersionsAreChecked(t *testing.T) {
	t.Parallel()
	for version, want := range map[string]bool{"1.4.0": true, "1.4.1": false, "1.4.8": false, "1.1.4": true, "": true} {
		if got := isOlder(version); got != want {
			t.Errorf("version %q is older than 1.4.1: %v, want %v", version, got, want)
		}
	}
	cfg := configOf(fakenacos.Start(t, fakenacos.Legacy), "", "")
	cfg.Version = "1.4.0"
	_, err := Open(cfg)
	if e, ok := errors.AsType[*worker.UnusableError](err); !ok || !strings.Contains(e.Error(), "1.4.0") {
		t.Errorf("1.4.0: %v, want ok = true and text with \"1.4.0\"", err)
	}
}
