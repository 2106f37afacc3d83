//go:build unix

package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// sleeper returns a server that is ready once its script has created the file
// ready.
func sleeper(t *testing.T, script string) *Process {
	t.Helper()
	var p *Process
	p, err := New(Config{
		Name: "sleeper",
		Command: func(dir string) *exec.Cmd {
			os.Remove(filepath.Join(dir, "ready"))
			return exec.Command("sh", "-c", script)
		},
		Ready: func(context.Context) error {
			_, err := os.Stat(filepath.Join(p.Dir(), "ready"))
			return err
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	p.Finish(t)
	return p
}

func do(t *testing.T, steps ...func() error) {
	t.Helper()
	for i, step := range steps {
		if err := step(); err != nil {
			t.Fatalf("step %d: %v", i+1, err)
		}
	}
}

func TestProcessStartsFreezesAndEnds(t *testing.T) {
	p := sleeper(t, "echo started; echo x >>data/stored; touch ready; exec sleep 1000")
	content := func() string {
		text, err := os.ReadFile(filepath.Join(p.Dir(), "data", "stored"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	if p.Freeze() == nil {
		t.Error("Freeze() before the start = nil, want an error")
	}
	do(t, p.Start, p.Freeze, p.Thaw)
	if p.Start() == nil {
		t.Error("Start() of a running process = nil, want an error")
	}
	if p.Wipe() == nil {
		t.Error("Wipe() of a running process = nil, want an error")
	}
	pid := p.cmd.Process.Pid
	copied := filepath.Join(t.TempDir(), "copy")
	do(t, func() error { return p.Snapshot(copied) }, p.Kill9, p.Kill9)
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); err == nil || p.Running() {
		t.Errorf("process %d runs after Kill9(), Running() = %t, want an end", pid, p.Running())
	}
	do(t, p.Start)
	if got := strings.Count(p.Tail(), "started"); got != 2 {
		t.Errorf("the log tells of %d starts, want 2", got)
	}
	do(t, p.Restart, p.Kill9, func() error { return p.Restore(copied) })
	if got := content(); got != "x\n" {
		t.Errorf("content after Restore = %q, want one line", got)
	}
	do(t, p.Wipe, p.Start)
	if got := content(); got != "x\n" {
		t.Errorf("content after Wipe and a start = %q, want one line", got)
	}
	do(t, p.Stop)
	if _, err := os.Stat(p.Dir()); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("Stat() of the folder after Stop: error %v, want os.ErrNotExist", err)
	}
}

func TestEndWhileStartingIsAnError(t *testing.T) {
	p := sleeper(t, "echo no such option; exit 1")
	began := time.Now()
	if err := p.Start(); err == nil || !strings.Contains(err.Error(), "no such option") {
		t.Errorf("Start() error = %v, want one with the output", err)
	}
	if p.Running() || time.Since(began) > startTime/2 {
		t.Errorf("Running() = %t after %v, want false within %v", p.Running(), time.Since(began), startTime/2)
	}
}

func TestMissingProgramIsAnError(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	if _, err := Find("leafsql-no-such-program", "nothing", "testutil/nothingtest"); err == nil || !strings.Contains(err.Error(), "testutil/nothingtest/install.sh") {
		t.Errorf("want an error that names install.sh, got %v", err)
	}
}

// TestDiesWithTheParent: the server ends if the process that started it is killed.
func TestDiesWithTheParent(t *testing.T) {
	cmd := exec.Command(os.Args[0], "-test.run=^TestParent$")
	cmd.Env = append(os.Environ(), "LEAFSQL_PARENT=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	do(t, cmd.Start)
	var pid int
	var dir string
	_, scanErr := fmt.Fscan(out, &pid, &dir)
	do(t, cmd.Process.Kill)
	cmd.Wait()
	if scanErr != nil {
		t.Fatal(scanErr)
	}
	err = Until(func(context.Context) error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if err == nil && !strings.Contains(string(stat), ") Z ") {
			return fmt.Errorf("process %d runs", pid)
		}
		if _, err := os.Stat(dir); !errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("folder %s: %v", dir, err)
		}
		return nil
	})
	if err != nil {
		t.Error(err)
	}
}

func TestParent(t *testing.T) {
	if os.Getenv("LEAFSQL_PARENT") == "" {
		return
	}
	p := sleeper(t, "touch ready; exec sleep 1000")
	do(t, p.Start)
	fmt.Println(p.cmd.Process.Pid, p.Dir())
	<-context.Background().Done()
}
