package nacostest

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

	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// launchHalfway starts a server, and returns it when it has written data. It is not ready yet: that would take much longer.
func launchHalfway(ctx context.Context) (*Server, error) {
	s, err := prepareServer(ctx, V1, Options{})
	if err != nil {
		return nil, err
	}
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	err = s.poll(ctx, func(context.Context) bool {
		_, err := os.Stat(s.data())
		return err == nil
	})
	if err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func TestStopLeavesNothing(t *testing.T) {
	s, err := launchHalfway(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	pid := s.proc.cmd.Process.Pid
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.home); !os.IsNotExist(err) {
		t.Errorf("Stat() of the home after Stop: error %v, want os.ErrNotExist", err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !os.IsNotExist(err) {
		t.Errorf("Stat() of the process after Stop: error %v, want os.ErrNotExist", err)
	}
}

func TestServerThatCannotBootSaysWhy(t *testing.T) {
	s, err := prepareServer(t.Context(), V1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	s.jars = t.TempDir()
	err = s.boot(t.Context())
	if err == nil || !strings.Contains(err.Error(), "com.alibaba.nacos.Nacos") {
		t.Errorf("boot() = %v, want an error with the output of Java", err)
	}
	if s.proc != nil {
		t.Errorf("process after the failed start = %v, want nil", s.proc)
	}
}

// TestStartEndsWithItsContext: a start that waits for other servers, or for a server that is
// starting, ends soon after the context and leaves nothing.
func TestStartEndsWithItsContext(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	launch := func(ready func() bool) {
		t.Helper()
		ctx, cancel := context.WithCancelCause(t.Context())
		enough := errors.New("enough")
		var ended time.Duration
		clock := stopwatch.Start(t)
		go func() {
			for !ready() {
				time.Sleep(10 * time.Millisecond)
			}
			ended = clock()
			cancel(enough)
		}()
		_, err := Launch(ctx, V1, Options{})
		if took := clock() - ended; !errors.Is(err, enough) || took > 2*time.Second {
			t.Errorf("Launch() = %v, %v after the end of the context, want %v within 2s", err, took, enough)
		}
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("files after the test = %v, %v, want none", left, err)
		}
	}
	unlock, err := lockFile(t.Context(), "boot.lock")
	if err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	launch(func() bool { return time.Since(began) > 300*time.Millisecond })
	unlock()
	launch(func() bool {
		booting, err := filepath.Glob(filepath.Join(os.TempDir(), "*", "console.log"))
		return err != nil || len(booting) > 0
	})
}

func TestMissingToolIsAnError(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Launch(t.Context(), V3, Options{})
	if err == nil || !strings.Contains(err.Error(), "install.sh") {
		t.Errorf("want an error that names install.sh, got %v", err)
	}
}

func TestDiesWithTheProcess(t *testing.T) {
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "NACOSTEST_CHILD=1")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	var pid int
	var home string
	_, scanErr := fmt.Fscan(out, &pid, &home)
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if scanErr != nil {
		t.Fatal(scanErr)
	}
	for range 100 {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		if dead := err != nil || strings.Contains(string(stat), ") Z "); dead {
			if _, err := os.Stat(home); os.IsNotExist(err) {
				return
			}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Errorf("server %d or its home %s exists after the end of its parent, want neither", pid, home)
}

// TestMain also runs the process that is killed in TestDiesWithTheProcess.
func TestMain(m *testing.M) {
	if os.Getenv("NACOSTEST_CHILD") != "" {
		s, err := launchHalfway(context.Background())
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(s.proc.cmd.Process.Pid, s.home)
		<-context.Background().Done()
	}
	os.Exit(m.Run())
}
