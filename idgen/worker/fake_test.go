package worker

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"
)

func discardLogger() *slog.Logger { return slog.New(slog.DiscardHandler) }

// fakeRegistry is a registry in memory that injects faults and records all
// writes.
type fakeRegistry struct {
	memorySlots
	mu     sync.Mutex
	faults fakeFaults
	puts   []putRecord
	gets   []int // slots that were read
	closed int
}

type fakeFaults struct {
	away    bool          // every call fails at once
	hangs   bool          // every call waits for its context
	delay   time.Duration // before each answer
	lose    int           // every n-th put is executed and its reply lost
	deny    int           // every n-th put is refused at any version
	garbage bool          // slot 0 can't be read
}

// putRecord is a put that was sent.
type putRecord struct {
	at      time.Time
	slot    int
	doc     Doc
	swapped bool
}

var errAway = errors.New("the registry is away")

// newFake returns a registry in use, with n free slots.
func newFake(n int) *fakeRegistry { return newFakeOf(n, Config{}) }

// newFakeOf returns a registry for processes with a Config.
func newFakeOf(n int, cfg Config) *fakeRegistry {
	f := &fakeRegistry{}
	if err := cfg.complete(); err != nil {
		panic(err)
	}
	f.write(RegistrySlot, Doc{Nonce: "r", HighWater: milliTime(1), Free: true, Owner: leaseTerms(&cfg) + preparedSeparator + strconv.Itoa(n), Registry: "r"})
	for i := range n {
		f.write(i, freeDoc(milliTime(1)))
	}
	return f
}

// milliTime returns the time of ms Unix milliseconds.
func milliTime(ms int64) time.Time { return time.UnixMilli(ms) }

// nowMilli returns the time to the millisecond, as in documents.
func nowMilli() time.Time { return milliTime(time.Now().UnixMilli()) }

// freeDoc returns the document of a slot that was returned.
func freeDoc(upTo time.Time) Doc {
	return Doc{Nonce: "before", HighWater: upTo, Free: true, Registry: "r"}
}

// otherDoc returns a document of another process.
func otherDoc(upTo time.Time, owner string) Doc {
	return Doc{Nonce: "other", HighWater: upTo, Owner: owner, Registry: "r"}
}

func (f *fakeRegistry) set(faults fakeFaults) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.faults = faults
}

// answer waits for the duration of a call, and returns an error if the registry does not answer.
func (f *fakeRegistry) answer(ctx context.Context) (fakeFaults, error) {
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

func (f *fakeRegistry) Get(ctx context.Context, slot int) (Doc, Version, error) {
	f.mu.Lock()
	f.gets = append(f.gets, slot)
	f.mu.Unlock()
	faults, err := f.answer(ctx)
	if err == nil && faults.garbage && slot == 0 {
		err = errors.New("not a worker slot's document")
	}
	if err != nil {
		return Doc{}, "", err
	}
	return f.memorySlots.Get(ctx, slot)
}

func (f *fakeRegistry) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, bool, error) {
	f.mu.Lock()
	n := len(f.puts)
	f.puts = append(f.puts, putRecord{at: time.Now(), slot: slot, doc: d})
	f.mu.Unlock()
	v, ok, err := f.put(ctx, n+1, slot, d, expected)
	f.mu.Lock()
	f.puts[n].swapped = ok
	f.mu.Unlock()
	if ctx.Err() != nil { // the caller no longer waits
		return "", false, ctx.Err()
	}
	return v, ok, err
}

func (f *fakeRegistry) put(ctx context.Context, nth, slot int, d Doc, expected Version) (Version, bool, error) {
	faults, err := f.answer(ctx)
	switch {
	case err != nil:
		return "", false, err
	case faults.deny > 0 && nth%faults.deny == 0:
		return "", false, nil
	}
	v, ok, err := f.memorySlots.Put(ctx, slot, d, expected)
	if faults.lose > 0 && nth%faults.lose == 0 {
		return "", false, errAway
	}
	return v, ok, err
}

func (f *fakeRegistry) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.closed++
	return nil
}

// source returns the fake as a source, which counts its calls of Close.
func (f *fakeRegistry) source() Source { return Source{Slots: f, Name: "fake", Close: f.close} }

// putsSince returns the puts of some slots from a time on.
func (f *fakeRegistry) putsSince(from time.Time, of func(slot int) bool) (puts []putRecord) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, w := range f.puts {
		if !w.at.Before(from) && of(w.slot) {
			puts = append(puts, w)
		}
	}
	return puts
}

// takeReadCount returns the number of reads, and resets it.
func (f *fakeRegistry) takeReadCount() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	n := len(f.gets)
	f.gets = nil
	return n
}

// doc returns the document of a slot, without faults.
func (f *fakeRegistry) doc(slot int) Doc {
	d, _, _ := f.memorySlots.Get(context.Background(), slot)
	return d
}

// write sets a slot, without faults and versions.
func (f *fakeRegistry) write(slot int, d Doc) {
	_, v, _ := f.memorySlots.Get(context.Background(), slot)
	f.memorySlots.Put(context.Background(), slot, d, v)
}

// wipe removes all documents.
func (f *fakeRegistry) wipe() {
	f.memorySlots.texts.Clear()
}

// unknownWait is the time for which a process waits if the history of all slots is unknown.
const unknownWait = 135 * time.Second

// mustKeep returns a keeper that is closed at the end of the test.
func mustKeep(t *testing.T, src Source, cfg Config) *Keeper {
	t.Helper()
	if cfg.Logger == nil {
		cfg.Logger = discardLogger()
	}
	k, err := Keep(func(context.Context) (Source, error) { return src, nil }, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { k.Close() })
	return k
}

// mustHold returns a keeper that holds a worker id.
func mustHold(t *testing.T, src Source, cfg Config) *Keeper {
	t.Helper()
	k := mustKeep(t, src, cfg)
	if _, err := k.Wait(t.Context()); err != nil {
		t.Fatal(err)
	}
	return k
}

// waitForPhase waits until the keeper is in a phase.
func (k *Keeper) waitForPhase(phase string) *Status {
	k.start()
	for {
		s := k.Status()
		if s.Phase == phase {
			return s
		}
		<-s.Changed()
	}
}

// lose makes the registry fail until the worker id is lost, and returns the time of the loss.
func lose(t *testing.T, f *fakeRegistry, k *Keeper) time.Time {
	t.Helper()
	f.set(fakeFaults{away: true})
	k.waitForPhase(phaseSearching)
	return time.Now()
}

// logRecorder is a logger with lines that tests can read.
type logRecorder struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (j *logRecorder) Write(p []byte) (int, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.Write(p)
}

func (j *logRecorder) logger() *slog.Logger { return slog.New(slog.NewTextHandler(j, nil)) }

func (j *logRecorder) String() string {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.text.String()
}

func (j *logRecorder) count(what string) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	return bytes.Count(j.text.Bytes(), []byte(what))
}

// readFiles returns the contents of the files in a directory.
func readFiles(t *testing.T, dir string) map[string]string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]string)
	for _, e := range entries {
		if !e.Type().IsRegular() {
			continue // made by fill, and endless to read
		}
		text, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if errors.Is(err, fs.ErrNotExist) {
			continue // was renamed
		}
		if err != nil {
			t.Fatal(err)
		}
		all[e.Name()] = string(text)
	}
	return all
}

// writeFiles writes files into a directory.
func writeFiles(t *testing.T, dir string, all map[string]string) {
	t.Helper()
	for name, text := range all {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// fillDisk makes writes to path fail as on a full disk.
func fillDisk(t *testing.T, path string) {
	t.Helper()
	if err := os.Symlink("/dev/full", path+".new"); err != nil {
		t.Fatal(err)
	}
}

// emptyDisk undoes fill.
func emptyDisk(t *testing.T, path string) {
	t.Helper()
	if err := os.Remove(path + ".new"); err != nil {
		t.Fatal(err)
	}
}

// readOnlyDir returns a directory that no user can write to, not even root.
func readOnlyDir(t *testing.T) string {
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
