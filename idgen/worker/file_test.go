package worker

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// openedFile opens the file of worker id 3, and closes it at the end of the test.
func openedFile(t *testing.T, dir string) *file {
	t.Helper()
	f, err := openFile(dir, 3)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.Close() })
	return f
}

// A document is free for the next process, and held in the process that wrote it.
func TestFileIsFreeForTheNextProcess(t *testing.T) {
	dir := t.TempDir()
	f := openedFile(t, dir)
	if d, v, err := f.Get(t.Context(), 3); d != (Doc{}) || v != "" || err != nil {
		t.Errorf("at first: %+v, %q, %v, want d = Doc{}, v = \"\" and no error", d, v, err)
	}
	d := Doc{Nonce: "ab", HighWater: milliTime(7), Owner: "me"}
	for _, tt := range []struct {
		expected Version
		swapped  bool
	}{{"another", false}, {"", true}, {"", false}, {Version(d.Encode()), true}} {
		v, ok, err := f.Put(t.Context(), 3, d, tt.expected)
		if ok != tt.swapped || err != nil || ok != (v == Version(d.Encode())) {
			t.Errorf("at %q: %q, %v, %v; want %v", tt.expected, v, ok, err, tt.swapped)
		}
	}
	if got, v, err := f.Get(t.Context(), 3); got != d || v != Version(d.Encode()) || err != nil {
		t.Errorf("in its life: %+v, %q, %v, want got = %v, v = Version(d.Encode()) and no error", got, v, err, d)
	}
	if _, err := openFile(dir, 3); !errors.Is(err, errInUse) {
		t.Errorf("opened twice: %v", err)
	}
	if other, err := openFile(dir, 4); err != nil || other.Close() != nil {
		t.Errorf("another worker id's: %v, want other.Close() = nil and no error", err)
	}
	f.Close()
	next := openedFile(t, dir)
	free := d
	free.Free = true
	if got, v, err := next.Get(t.Context(), 3); got != free || v != Version(d.Encode()) || err != nil {
		t.Errorf("in the next life: %+v, %q, %v, want got = %v, v = Version(d.Encode()) and no error", got, v, err, free)
	}
}

// If a file can't be read, its worker id is not used and the file is not
// replaced. The history of a lost file is unknown, so the process waits.
func TestUnreadableFileIsNotUsed(t *testing.T) {
	for name, tt := range map[string]struct {
		text   string // "": no file
		want   string // part of the error; "": no error
		waited time.Duration
	}{
		"lost":            {"", "", 3 * time.Second},
		"half":            {`{"nonce":"ab","hw":1,"fr`, "remove the file", 0},
		"of zeros":        {"\x00\x00\x00\x00", "remove the file", 0},
		"edited by hand":  {"worker 3 is free", "remove the file", 0},
		"an older copy":   {Doc{Nonce: "ab", HighWater: milliTime(1)}.Encode(), "", 0},
		"just crashed":    {Doc{Nonce: "ab", HighWater: milliTime(946684800000 + 2500)}.Encode(), "", 2501 * time.Millisecond},
		"a clock back":    {Doc{Nonce: "ab", HighWater: milliTime(946684800000 + 3_600_000)}.Encode(), "set the clock", 0},
		"left by a write": {Doc{Nonce: "ab", HighWater: milliTime(1), Free: true}.Encode(), "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			path := filepath.Join(dir, "worker-3.json")
			if tt.text != "" {
				writeFiles(t, dir, map[string]string{"worker-3.json": tt.text, "worker-3.json.new": `{"no`})
			}
			synctest.Test(t, func(t *testing.T) {
				began := time.Now() // 2000-01-01 in a bubble
				k, err := opened(t, "static(3)", Config{State: dir}, nil)
				if tt.want == "" {
					if waited := time.Since(began); err != nil || waited < tt.waited || waited > tt.waited+2*time.Millisecond {
						t.Errorf("waited %v, %v; want %v", waited, err, tt.waited)
					}
					if d, err := decode(readFiles(t, dir)["worker-3.json"]); err != nil || d.HighWater.Before(k.Status().Limit) {
						t.Errorf("the file has %+v, %v, want a time of at least the limit %v", d, err, k.Status().Limit)
					}
					return
				}
				if err == nil || !strings.Contains(err.Error(), tt.want) || strings.HasPrefix(tt.want, "remove") && !strings.Contains(err.Error(), path) {
					t.Errorf("%v; want %q", err, tt.want)
				}
				if got := readFiles(t, dir)["worker-3.json"]; got != tt.text {
					t.Errorf("the file was replaced: %s, want %v", got, tt.text)
				}
			})
		})
	}
}

// A directory that is copied while its owner runs protects against nothing, as
// documented: both processes issue ids.
func TestCopiedFileProtectsNothing(t *testing.T) {
	dir, twin := t.TempDir(), t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		first, err := opened(t, "static(3)", Config{State: dir, NewRegistry: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		writeFiles(t, twin, readFiles(t, dir))
		leasedIDs.Delete(3) // as in another process
		second, err := opened(t, "static(3)", Config{State: twin}, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(5 * time.Second)
		if a, b := first.Status(), second.Status(); a.Phase != phaseHolding || b.Phase != phaseHolding || a.Limit.Before(b.Start) || b.Limit.Before(a.Start) {
			t.Errorf("Status() = %+v and %+v, want both holding the same times", a, b)
		}
	})
}

// A second process is refused while the first one runs. After the first has ended in any way, the second
// continues above its times.
func TestFileRefusesASecondProcess(t *testing.T) {
	for _, kill := range []bool{false, true} {
		dir := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), holdsVar+"="+dir)
		cmd.Stderr = os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		limit, bad := strconv.ParseInt(strings.TrimSpace(line), 10, 64)
		if err != nil || bad != nil {
			t.Errorf("the first process: %q, %v, %v, want no bad and no error", line, err, bad)
		}
		if _, err := opened(t, "static(3)", Config{State: dir}, nil); !errors.Is(err, errInUse) || !strings.Contains(err.Error(), dir) || !errorForm.MatchString(err.Error()) {
			t.Errorf("while the first process runs: %v, want errInUse with the directory", err)
		}
		if kill {
			cmd.Process.Kill()
		} else {
			in.Close()
		}
		if err := cmd.Wait(); (err == nil) == kill {
			t.Errorf("the first process ended with %v, want (no error) other than %v", err, kill)
		}
		d, _, err := openedFile(t, dir).Get(t.Context(), 3)
		if err != nil || !d.Free || d.HighWater.Before(milliTime(limit)) {
			t.Errorf("after the first process: %+v, %v, want a free document with a time of at least %d", d, err, limit)
		}
	}
}

func TestFileNeedsAUsableDirectory(t *testing.T) {
	full := t.TempDir()
	fillDisk(t, filepath.Join(full, "worker-3.json"))
	for name, dir := range map[string]string{"not to be written to": readOnlyDir(t), "a full disk": full} {
		synctest.Test(t, func(t *testing.T) {
			_, err := opened(t, "static(3)", Config{State: dir, NewRegistry: true}, nil)
			if err == nil || !strings.Contains(err.Error(), filepath.Join(dir, "worker-3.json")) || !errorForm.MatchString(err.Error()) {
				t.Errorf("%s: %v, want an error with the file's path", name, err)
			}
		})
	}
	if got := readFiles(t, full); len(got) != 1 {
		t.Errorf("on the full disk there are %v, want len(got) = 1", got)
	}
}

// A lease on a file is valid as long as the disk accepts its renewals, and no
// longer.
func TestFullDiskEndsTheLease(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "worker-3.json")
	synctest.Test(t, func(t *testing.T) {
		k, err := opened(t, "static(3)", Config{State: dir, NewRegistry: true}, nil)
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10*time.Second + 500*time.Millisecond) // between two renewals
		fillDisk(t, path)
		bound := k.Status().Limit
		for k.Status().Phase == phaseHolding {
			if k.Status().Limit.After(bound) {
				t.Fatalf("the limit is %v after the time on the disk, want at most that time", k.Status().Limit.Sub(bound))
			}
			time.Sleep(50 * time.Millisecond)
		}
		if _, err := k.Wait(t.Context()); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("lost as %v, want an error with %q", err, path)
		}
		emptyDisk(t, path)
		if s := k.waitForPhase(phaseHolding); !s.Start.After(bound) {
			t.Errorf("with space on the disk again: Status() = %+v, want a start after %v", s, bound)
		}
	})
}

// An interrupted write leaves the old content or the new one.
func TestInterruptedWriteLeavesOldOrNew(t *testing.T) {
	for name, tt := range map[string]struct {
		before func(t *testing.T, path string)
		fails  bool
	}{
		"plainly":                {func(*testing.T, string) {}, false},
		"after a crash":          {func(t *testing.T, path string) { os.WriteFile(path+".new", []byte("a longer text, half wri"), 0o600) }, false},
		"a full disk":            {fillDisk, true},
		"no way to write":        {func(t *testing.T, path string) { os.Mkdir(path+".new", 0o755) }, true},
		"no way to put it there": {func(t *testing.T, path string) { os.Remove(path); os.MkdirAll(path+"/x", 0o755) }, true},
		"no directory":           {func(t *testing.T, path string) { os.RemoveAll(filepath.Dir(path)) }, true},
	} {
		t.Run(name, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "dir", "file")
			if err := os.Mkdir(filepath.Dir(path), 0o755); err != nil {
				t.Fatal(err)
			}
			if err := writeDurably(path, []byte("old")); err != nil {
				t.Fatal(err)
			}
			tt.before(t, path)
			was, _ := os.ReadFile(path)
			err := writeDurably(path, []byte("new"))
			if (err != nil) != tt.fails || err != nil && !strings.Contains(err.Error(), path) {
				t.Fatalf("err = %v, want an error: %v, with the path", err, tt.fails)
			}
			if !tt.fails {
				was = []byte("new")
				if _, err := os.Lstat(path + ".new"); err == nil {
					t.Error("the temporary file still exists, want it renamed or removed")
				}
			}
			if got, _ := os.ReadFile(path); string(got) != string(was) {
				t.Errorf("it holds %q; want %q", got, was)
			}
		})
	}
}
