package worker

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"
)

// fake is a registry in memory that goes wrong on demand and remembers what
// was written.
type fake struct {
	memory
	mu     sync.Mutex
	faults fakeFaults
	puts   []written
	gets   int
	closed int
}

type fakeFaults struct {
	away  bool          // every call fails at once
	hangs bool          // every call waits for its context
	delay time.Duration // before each answer
	lose  int           // every n-th put is done and its reply lost
	deny  int           // every n-th put is refused, wherever the slot is
}

// written is one put as it was sent.
type written struct {
	at     time.Time
	slot   int
	doc    Doc
	result Result
}

var errAway = errors.New("the registry is away")

// newFake gives a registry with n free slots.
func newFake(n int) *fake {
	f := &fake{}
	for i := range n {
		f.memory.Put(context.Background(), i, Doc{Nonce: "before", HW: 1, Free: true}, "")
	}
	return f
}

func (f *fake) set(faults fakeFaults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// answer waits as long as a call takes, and fails if nobody answers.
func (f *fake) answer(ctx context.Context) (fakeFaults, error) {
	f.mu.Lock()
	faults := f.faults
	f.mu.Unlock()
	if _, ok := ctx.Deadline(); !ok {
		panic("a call to the registry without a deadline")
	}
	if faults.hangs {
		<-ctx.Done()
		return faults, ctx.Err()
	}
	if faults.delay > 0 {
		time.Sleep(faults.delay)
	}
	if faults.away {
		return faults, errAway
	}
	return faults, nil
}

func (f *fake) Get(ctx context.Context, slot int) (Doc, Version, error) {
	f.mu.Lock()
	f.gets++
	f.mu.Unlock()
	if _, err := f.answer(ctx); err != nil {
		return Doc{}, "", err
	}
	return f.memory.Get(ctx, slot)
}

func (f *fake) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, Result, error) {
	f.mu.Lock()
	n := len(f.puts)
	f.puts = append(f.puts, written{at: time.Now(), slot: slot, doc: d, result: Unknown})
	f.mu.Unlock()
	v, res, err := f.put(ctx, n+1, slot, d, expected)
	f.mu.Lock()
	f.puts[n].result = res
	f.mu.Unlock()
	return v, res, err
}

func (f *fake) put(ctx context.Context, nth, slot int, d Doc, expected Version) (Version, Result, error) {
	faults, err := f.answer(ctx)
	switch {
	case err != nil:
		return "", Unknown, err
	case faults.deny > 0 && nth%faults.deny == 0:
		return "", Refused, nil
	}
	v, res, err := f.memory.Put(ctx, slot, d, expected)
	if faults.lose > 0 && nth%faults.lose == 0 {
		return "", Unknown, errAway
	}
	return v, res, err
}

func (f *fake) Close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

func (f *fake) timesClosed() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.closed
}

// since gives the puts of one slot, or of all but one, from a time on.
func (f *fake) since(from time.Time, of func(slot int) bool) (puts []written) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.puts {
		if !w.at.Before(from) && of(w.slot) {
			puts = append(puts, w)
		}
	}
	return puts
}

// doc is what a slot holds, past all faults.
func (f *fake) doc(slot int) Doc {
	d, _, _ := f.memory.Get(context.Background(), slot)
	return d
}

// write sets a slot, past all faults and versions.
func (f *fake) write(slot int, d Doc) {
	_, v, _ := f.memory.Get(context.Background(), slot)
	f.memory.Put(context.Background(), slot, d, v)
}

// leased takes a worker id, which is given back at the end of the test.
func leased(t *testing.T, src Source, cfg Config) *Lease {
	t.Helper()
	l, err := tryLease(t, src, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func tryLease(t *testing.T, src Source, cfg Config) (*Lease, error) {
	t.Helper()
	return keep(t, func() (*Lease, error) {
		if cfg.Logger == nil {
			cfg.Logger = quiet()
		}
		return Acquire(t.Context(), src, cfg)
	})
}

// keep closes a lease at the end of the test if there is one.
func keep(t *testing.T, take func() (*Lease, error)) (*Lease, error) {
	t.Helper()
	l, err := take()
	if (l == nil) == (err == nil) {
		t.Fatalf("lease %p, error %v", l, err)
	}
	if err == nil {
		t.Cleanup(func() { l.Close() })
	}
	return l, err
}

// lose takes the registry away until the lease is lost, and brings it back.
func lose(t *testing.T, f *fake, l *Lease) {
	t.Helper()
	f.set(fakeFaults{away: true})
	<-l.Done()
	f.set(fakeFaults{})
	if _, ok := errors.AsType[*LostError](l.Err()); !ok {
		t.Fatalf("lost as %v", l.Err())
	}
}

// journal is a log to look into.
type journal struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *journal) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *journal) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func (j *journal) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.text.Bytes(), []byte(what))
}

// files reads what is in a directory.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue // as fill leaves it: reading that has no end
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // renamed meanwhile
		}
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// setFiles writes them into a directory.
func setFiles(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fill makes the disk full for what is written to path.
func fill(t *testing.T, path string) {
	t.Helper()
	if err := os.Symlink("/dev/full", path+".new"); err != nil {
		t.Fatal(err)
	}
}

// empty makes room again.
func empty(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
}

// readOnly gives a directory that nobody can write to, root neither.
func readOnly(t *testing.T) string {
	t.Helper()
	if os.Geteuid() == 0 {
		return "/proc/self"
	}
	dir := t.TempDir()
	if err := os.Chmod(dir, 0o555); err != nil {
		t.Fatal(err)
	}
	return dir
}

// only is a source's Workers that names one.
func only(worker int) func(context.Context) ([]int, error) {
	return func(context.Context) ([]int, error) { return []int{worker}, nil }
}
