package nacos

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// quickLegacy is 1.4's registry on a fake, in less time than on a real one.
func quickLegacy(t *testing.T, s *fakenacos.Server) *legacy {
	t.Helper()
	src, err := Open(within30s(t), fakeConfig(s))
	if err != nil {
		t.Fatal(err)
	}
	l := src.Slots.(*legacy)
	l.settle = 500 * time.Millisecond
	t.Cleanup(func() { l.Close() })
	return l
}

// untilUnique is a context for many that look for instance ids of their own on
// a server that gives half of them one that is another's.
func untilUnique(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// TestLegacyRegistrations has many register at once with a server that gives
// one id to several, and loses some.
func TestLegacyRegistrations(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.SameID, f.Unregistered, f.ListLag = 2, 4, 20*time.Millisecond })
	var (
		mu   sync.Mutex
		seen = make(map[int]bool)
		wg   sync.WaitGroup
	)
	for range 16 {
		l := quickLegacy(t, s)
		l.settle = 2 * time.Second // for a machine on which all of this is slow
		wg.Go(func() {
			ids, err := l.workers(untilUnique(t))
			if err != nil {
				t.Error(err)
				return
			}
			again, err := l.workers(untilUnique(t))
			mu.Lock()
			defer mu.Unlock()
			if err != nil || len(ids) != 1 || len(again) != 1 || again[0] != ids[0] || seen[ids[0]] {
				t.Errorf("worker ids %v, then %v, %v; given twice: %v", ids, again, err, seen[ids[0]])
			}
			seen[ids[0]] = true
		})
	}
	wg.Wait()
}

// TestLegacyOccupied has an instance id given again and again whose document
// somebody holds who is not in the list, such as this process, whose
// registration was lost while it took the slot.
func TestLegacyOccupied(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	a, b := quickLegacy(t, s), quickLegacy(t, s)
	held := worker.Doc{Nonce: "n", HW: time.Now().Add(time.Minute).UnixMilli()}
	if err := a.web.publish(t.Context(), a.doc(0), held.Encode()); err != nil {
		t.Fatal(err)
	}
	for _, l := range []*legacy{a, b} {
		if _, err := l.workers(within30s(t)); err != nil {
			t.Fatal(err)
		}
	}
	var ids []string
	for _, in := range s.Instances(fakeService) {
		ids = append(ids, in.InstanceID)
	}
	if a.mine != 1 || b.mine != 2 || strings.Join(ids, " ") != "1 2" {
		t.Errorf("worker ids %d and %d; instances %v", a.mine, b.mine, ids)
	}
}

// TestLegacyRegisteredLate gives one the instance id of another, which was
// verified between the one's decision to register and its registration.
func TestLegacyRegisteredLate(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.SameID = 1 })
	a, b := quickLegacy(t, s), quickLegacy(t, s)
	a.in, a.mine = a.instance(1), unsettled
	time.Sleep(2 * time.Millisecond) // registrations have a time in ms
	if _, err := b.workers(within30s(t)); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	if ids, err := a.workers(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("worker ids %v, %v, and %d is another's", ids, err, b.mine)
	}
}

// TestLegacyDocuments has two that hold one id meet at the document.
func TestLegacyDocuments(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	a, b := quickLegacy(t, s), quickLegacy(t, s)
	ids, err := a.workers(within30s(t))
	if err != nil {
		t.Fatal(err)
	}
	slot := ids[0]
	if _, res, err := b.Put(t.Context(), slot, doc(), ""); res != worker.Refused || err == nil {
		t.Errorf("Put without an instance: %v, %v", res, err)
	}
	b.in, b.mine = a.in, a.mine // as a copy of the virtual machine would
	initial := worker.Initial()
	v, res, err := a.Put(within30s(t), slot, initial, "")
	if res != worker.OK {
		t.Fatal(res, err)
	}
	var wg sync.WaitGroup
	var results [2]worker.Result
	for i, l := range []*legacy{a, b} {
		wg.Go(func() { _, results[i], _ = l.Put(within30s(t), slot, doc(), v) })
	}
	wg.Wait()
	if results[0] == worker.OK && results[1] == worker.OK {
		t.Error("both took the slot")
	}
	if min(results[0], results[1]) != worker.Refused || max(results[0], results[1]) != worker.OK {
		t.Errorf("want that one takes the slot and the other is refused, got %v", results)
	}
	if _, res, _ := a.Put(within30s(t), slot, doc(), v); res == worker.OK {
		t.Error("Put upon an old version was told ok")
	}
	_, now, err := a.read(t.Context(), slot)
	if err != nil {
		t.Fatal(err)
	}
	restore := s.Copy()
	s.Wipe()
	if err := a.web.register(t.Context(), a.in); err != nil {
		t.Fatal(err)
	}
	if _, res, _ := a.Put(within30s(t), slot, doc(), now); res == worker.OK {
		t.Error("Put upon a document that was wiped was told ok")
	}
	restore()
	if err := a.web.deregister(t.Context(), a.in); err != nil {
		t.Fatal(err)
	}
	if _, res, err := a.Put(within30s(t), slot, doc(), now); res != worker.Refused || err == nil {
		t.Errorf("Put after the instance was removed: %v, %v", res, err)
	}
}

// TestLegacyBuriesTheDead has the id of a process that is long gone given
// again, but not that of one that may be there.
func TestLegacyBuriesTheDead(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	old := quickLegacy(t, s)
	register := func(ip string, slot int, hw time.Time) {
		in := instance{IP: ip, Port: 1, Metadata: map[string]string{metaSince: "1"}}
		if err := old.web.register(t.Context(), in); err != nil {
			t.Fatal(err)
		}
		d := worker.Doc{Nonce: "n", HW: hw.UnixMilli()}
		if err := old.web.publish(t.Context(), old.doc(slot), d.Encode()); err != nil {
			t.Fatal(err)
		}
	}
	register("10.0.0.1", 0, time.Now().Add(-time.Hour))
	register("10.0.0.2", 1, time.Now().Add(-time.Minute))
	if ids, err := old.workers(within30s(t)); err != nil || ids[0] != 2 {
		t.Fatal(ids, err)
	}
	var left []string
	for _, in := range s.Instances(fakeService) {
		left = append(left, in.IP)
	}
	if got := strings.Join(left, " "); strings.Contains(got, "10.0.0.1") || !strings.Contains(got, "10.0.0.2") {
		t.Errorf("left are %s", got)
	}
}

func TestLegacyCredentials(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "u", "p" })
	l := quickLegacy(t, s)
	if _, err := l.workers(within30s(t)); !isCode(err, 403) {
		t.Errorf("without a user: %v", err)
	}
	cfg := fakeConfig(s)
	cfg.Username, cfg.Password = "u", "wrong"
	src, err := Open(within30s(t), cfg)
	if err == nil {
		_, err = src.Workers(within30s(t))
	}
	if _, ok := errors.AsType[*LoginError](err); !ok {
		t.Errorf("with a wrong password: %v", err)
	}
	cfg.Password = "p"
	src, err = Open(within30s(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	l = src.Slots.(*legacy)
	defer l.Close()
	l.settle = 10 * time.Millisecond
	if _, err := src.Workers(within30s(t)); err != nil {
		t.Error(err)
	}
	s.Forget()
	if _, err := src.Workers(within30s(t)); err != nil {
		t.Errorf("after the token was forgotten: %v", err)
	}
}

func TestVersions(t *testing.T) {
	for version, want := range map[string]bool{"1.4.0": false, "1.4.1": true, "1.4.8": true, "1.1.4": false, "2.0.0-BETA": true, "": false} {
		if got := atLeast(version, 1, 4, 1); got != want {
			t.Errorf("%q at least 1.4.1: %v", version, got)
		}
	}
	w := newWeb(Config{})
	_, err := old(Config{}, w, "1.4.0")
	if e, ok := errors.AsType[*UnusableError](err); !ok || !strings.Contains(e.Error(), "1.4.0") {
		t.Errorf("1.4.0: %v", err)
	}
}
