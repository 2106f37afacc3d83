package workertest

import (
	"errors"
	"os"
	"path/filepath"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// stateful is a search by processes that keep local state in dir. The bound is
// long enough for a process to go on within it.
func stateful(dir string) worker.Config {
	return worker.Config{Workers: 4, Bound: time.Minute, State: dir, Registry: "kit"}
}

// crashed gives the local state of a process that issued and crashed.
func (k *kit) crashed() (p *process, dir string) {
	k.Helper()
	dir = k.TempDir()
	slots := 4
	if k.Exclusive {
		slots = 1
	}
	k.seed(0, slots)
	p = k.hold(0, stateful(dir))
	p.burst()
	before := k.files(dir)
	// A crash, seen from the disk: nothing that Close does there.
	p.crash()
	for name, text := range before {
		k.ok(os.WriteFile(name, text, 0o644))
	}
	return p, dir
}

// files reads a directory.
func (k *kit) files(dir string) map[string][]byte {
	k.Helper()
	all := make(map[string][]byte)
	names, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(names) == 0 {
		k.Fatalf("no local state in %s: %v", dir, err)
	}
	for _, name := range names {
		text, err := os.ReadFile(name)
		k.ok(err)
		all[name] = text
	}
	return all
}

// stateResumes restarts a process while it reaches nobody: it goes on within
// its last bound.
func stateResumes(k *kit) {
	p, dir := k.crashed()
	q := k.open(0)
	q.cut.Store(true)
	k.ok(q.acquire(k.within(patience), stateful(dir)))
	if q.lease.Worker() != p.lease.Worker() {
		k.Errorf("worker id %d, its own is %d", q.lease.Worker(), p.lease.Worker())
	}
	q.burst()
}

// stateLost restarts a process without its disk.
func stateLost(k *kit) {
	p, dir := k.crashed()
	for name := range k.files(dir) {
		k.ok(os.Remove(name))
	}
	q := k.open(0)
	q.cut.Store(true)
	if err := q.acquire(k.within(2*time.Second), stateful(dir)); err == nil {
		k.Fatal("a lease out of nothing")
	}
	q = k.hold(0, stateful(dir))
	if q.lease.Worker() == p.lease.Worker() {
		k.Errorf("worker id %d, which is held", q.lease.Worker())
	}
	q.burst()
}

// stateCorrupted restarts it with a disk that holds nonsense.
func stateCorrupted(k *kit) {
	_, dir := k.crashed()
	for name, text := range k.files(dir) {
		k.ok(os.WriteFile(name, text[:len(text)/2], 0o644))
	}
	q := k.open(0)
	q.cut.Store(true)
	if err := q.acquire(k.within(2*time.Second), stateful(dir)); err == nil {
		k.Fatal("a lease out of half a file")
	}
	k.hold(0, stateful(dir)).burst()
}

// copied gives a process that issues, and a copy of its local state.
func (k *kit) copied() (p *process, dir, twin string) {
	k.Helper()
	dir, twin = k.TempDir(), k.TempDir()
	k.seed(0, 4)
	p = k.hold(0, stateful(dir))
	p.burst()
	for name, text := range k.files(dir) {
		k.ok(os.WriteFile(filepath.Join(twin, filepath.Base(name)), text, 0o644))
	}
	return p, dir, twin
}

// stateCopied starts a second process on a copy of the first one's disk. With
// the registry there, the copy gives it nothing.
func stateCopied(k *kit) {
	p, _, twin := k.copied()
	q := k.hold(0, stateful(twin))
	if q.lease.Worker() == p.lease.Worker() {
		k.Errorf("worker id %d of the disk that was copied", q.lease.Worker())
	}
	p.burst()
	q.burst()
}

// stateCopiedWhileAway starts it where the registry can't be reached. That a
// copy issues what the first one issues is documented, and nothing on its host
// could tell. What holds is that it begins above what was reserved when the
// copy was made, ends with the bound that was confirmed by then, and gets no
// more, registry or not.
func stateCopiedWhileAway(k *kit) {
	p, _, twin := k.copied()
	reserved, copied := p.last.Load(), p.lease.Now()
	q := k.open(0)
	q.cut.Store(true)
	cfg := stateful(twin)
	k.ok(q.acquire(k.within(patience), cfg))
	if q.lease.Worker() != p.lease.Worker() || q.lease.Start() <= reserved {
		k.Errorf("worker id %d from %d, the copy is of %d up to %d", q.lease.Worker(), q.lease.Start(), p.lease.Worker(), reserved)
	}
	watch := 2 * time.Second
	if k.virtual {
		watch = 2 * cfg.Bound
	}
	for until := time.Now().Add(watch); time.Now().Before(until) && q.lease.Err() == nil; time.Sleep(100 * time.Millisecond) {
		q.cut.Store(false) // it is back
		if limit, most := q.lease.Limit(), copied+cfg.Bound.Milliseconds(); limit > most {
			k.Fatalf("a copy goes on for %d ms beyond the bound it was made with", limit-most)
		}
	}
	if k.virtual {
		k.endsWithin(q, time.Second)
	}
}

// stateInUse starts a second process on the first one's own disk: refused,
// registry or not.
func stateInUse(k *kit) {
	dir := k.TempDir()
	k.seed(0, 4)
	p := k.hold(0, stateful(dir))
	p.burst()
	for _, cut := range []bool{false, true} {
		q := k.open(0)
		q.cut.Store(cut)
		if err := q.acquire(k.within(patience), stateful(dir)); !errors.Is(err, worker.ErrInUse) {
			k.Errorf("on local state that is in use, cut off %v: %v", cut, err)
		}
	}
	p.burst()
}
