package nacostest

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// config reads or writes a config document over the HTTP API that the server
// speaks.
func config(t *testing.T, s *Server, method, content string) string {
	t.Helper()
	path, form := "/nacos/v1/cs/configs", url.Values{"dataId": {"d"}, "group": {"g"}}
	if content != "" {
		form.Set("content", content)
	}
	resp, err := request(s, method, path, form)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func request(s *Server, method, path string, form url.Values) (string, error) {
	req, err := http.NewRequest(method, "http://"+s.Addr()+path+"?"+form.Encode(), nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(b))), err
}

// await reads until the document is as wanted: reads lag behind writes.
func await(t *testing.T, s *Server, want string) {
	t.Helper()
	var got string
	for range 50 {
		if got = config(t, s, http.MethodGet, ""); got == want || want == "404" && strings.HasPrefix(got, "404") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the document is %q, want %q", got, want)
}

// TestSnapshots is for the version that boots fastest. The others' servers are
// held against what they are for by those who use them.
func TestSnapshots(t *testing.T) {
	s := Start(t, V1, Options{})
	if got := config(t, s, http.MethodPost, "one"); got != "200 true" {
		t.Fatalf("publishing: %s", got)
	}
	await(t, s, "200 one")
	running := s.Snapshot(t)
	config(t, s, http.MethodPost, "two")
	await(t, s, "200 two")
	s.Kill9()
	stopped := s.Snapshot(t)
	s.Restore(t, running)
	s.Restart(t)
	await(t, s, "200 one")
	s.Kill9()
	s.Restore(t, stopped)
	s.Restart(t)
	await(t, s, "200 two")
	s.Kill9()
	s.Wipe(t)
	s.Restart(t)
	await(t, s, "404")
}

func TestAuth(t *testing.T) {
	s := Start(t, V3, Options{Auth: true})
	if got := config(t, s, http.MethodGet, ""); !strings.HasPrefix(got, "403") {
		t.Errorf("without credentials: %s, want 403", got)
	}
	form := url.Values{"username": {User}, "password": {Password}}
	got, err := request(s, http.MethodPost, "/nacos/v1/auth/users/login", form)
	if err != nil || !strings.Contains(got, "accessToken") {
		t.Errorf("login: %s, %v", got, err)
	}
}

func TestStopLeavesNothing(t *testing.T) {
	s, err := Launch(t.Context(), V1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	pid := s.proc.cmd.Process.Pid
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(s.home); !os.IsNotExist(err) {
		t.Errorf("the home is still there: %v", err)
	}
	if _, err := os.Stat(fmt.Sprintf("/proc/%d", pid)); !os.IsNotExist(err) {
		t.Errorf("the process is still there: %v", err)
	}
}

func TestServerThatCannotBootSaysWhy(t *testing.T) {
	s, err := prepare(t.Context(), V1, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Stop()
	s.jars = t.TempDir()
	err = s.boot(t.Context())
	if err == nil || !strings.Contains(err.Error(), "com.alibaba.nacos.Nacos") {
		t.Errorf("the error does not show the output: %v", err)
	}
	if s.proc != nil {
		t.Error("the process was not given up")
	}
}

// TestEndOfContext ends a start while it waits for others, and while the
// server boots: soon, and with nothing left.
func TestEndOfContext(t *testing.T) {
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
			t.Errorf("%v after the end of the context: %v", took, err)
		}
		if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
			t.Errorf("left behind: %v, %v", left, err)
		}
	}
	unlock, err := lock(t.Context(), "boot.lock")
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
	t.Errorf("the server %d outlived its parent, or its home %s did", pid, home)
}

// TestMain is also the parent that dies in TestDiesWithTheProcess.
func TestMain(m *testing.M) {
	if os.Getenv("NACOSTEST_CHILD") != "" {
		s, err := Launch(context.Background(), V1, Options{})
		if err != nil {
			fmt.Println("error", err)
			os.Exit(1)
		}
		fmt.Println(s.proc.cmd.Process.Pid, s.home)
		<-context.Background().Done()
	}
	os.Exit(m.Run())
}
