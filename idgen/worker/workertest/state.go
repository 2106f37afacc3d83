package workertest

import (
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

// stateCopied starts a second process on a copy of the first one's disk. With
// the registry there, the copy gives it nothing.
func stateCopied(k *kit) {
	dir, twin := k.TempDir(), k.TempDir()
	k.seed(0, 4)
	p := k.hold(0, stateful(dir))
	p.burst()
	for name, text := range k.files(dir) {
		k.ok(os.WriteFile(filepath.Join(twin, filepath.Base(name)), text, 0o644))
	}
	q := k.hold(0, stateful(twin))
	if q.lease.Worker() == p.lease.Worker() {
		k.Errorf("worker id %d of the disk that was copied", q.lease.Worker())
	}
	p.burst()
	q.burst()
}
