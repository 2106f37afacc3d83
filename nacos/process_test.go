package nacos

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/worker"
)

// TestMain also runs the processes that tests start.
func TestMain(m *testing.M) {
	if spec := os.Getenv("NACOS_LEASE"); spec != "" {
		if err := errors.Join(holdLease(spec), goleak.Find()); err != nil {
			fmt.Println("error:", err)
			os.Exit(1)
		}
		return
	}
	flag.Set("test.parallel", "8") // tests mostly wait
	code := m.Run()
	removeSDKFolders()
	os.Exit(code)
}

// holdLease takes a worker id when the barrier opens, prints it and the time,
// and keeps it until standard input ends.
func holdLease(spec string) error {
	if os.Getenv("NACOS_BARRIER") != "" {
		fmt.Println("running")
		io.Copy(io.Discard, os.NewFile(3, "barrier"))
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	defer cancel()
	open, err := worker.Lookup(spec, worker.Options{"Service": os.Getenv("NACOS_SERVICE")})
	if err != nil {
		return err
	}
	k, err := worker.Keep(open, worker.Config{NewRegistry: os.Getenv("NACOS_IN_USE") == ""})
	if err != nil {
		return err
	}
	defer k.Close()
	s, err := k.Wait(ctx)
	for ; err != nil && s != nil && ctx.Err() == nil; s, err = k.Wait(ctx) {
		fmt.Fprintln(os.Stderr, err)
		<-s.Changed()
	}
	if err != nil {
		return err
	}
	fmt.Println("worker", s.Worker, time.Now().UnixNano())
	io.Copy(io.Discard, os.Stdin)
	if now := k.Status(); !now.Since.Equal(s.Since) {
		return fmt.Errorf("%+v", now)
	}
	return nil
}

// holder is a process that holds a worker id, with a separate home and working
// folder.
type holder struct {
	cmd   *exec.Cmd
	stdin io.Closer
	out   *bufio.Reader
}

func startHolder(tb testing.TB, spec, service string) *holder {
	return startProcess(tb, nil, "NACOS_LEASE="+spec, "NACOS_SERVICE="+service)
}

// startWaiting starts a holder on a registry in use. It waits until barrier is
// at its end.
func startWaiting(tb testing.TB, spec, service string, barrier *os.File) *holder {
	return startProcess(tb, barrier, "NACOS_LEASE="+spec, "NACOS_SERVICE="+service, "NACOS_IN_USE=1", "NACOS_BARRIER=1")
}

func startProcess(tb testing.TB, barrier *os.File, env ...string) *holder {
	tb.Helper()
	exe, err := os.Executable()
	if err != nil {
		tb.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Dir = tb.TempDir()
	cmd.Env = append(append(os.Environ(), env...), "HOME="+cmd.Dir)
	cmd.Stderr = os.Stderr
	if barrier != nil {
		cmd.ExtraFiles = []*os.File{barrier}
	}
	stdin, err := cmd.StdinPipe()
	if err != nil {
		tb.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		tb.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	h := &holder{cmd: cmd, stdin: stdin, out: bufio.NewReader(out)}
	tb.Cleanup(h.kill9)
	return h
}

// running waits until the process is at the barrier.
func (h *holder) running() error {
	if line, err := h.out.ReadString('\n'); err != nil || line != "running\n" {
		return fmt.Errorf("the process says %q, %w", line, err)
	}
	return nil
}

// worker waits for the worker id.
func (h *holder) worker() (int, error) {
	id, _, err := h.workerAt()
	return id, err
}

// workerAt waits for the worker id and returns also the time at which the process
// had it.
func (h *holder) workerAt() (id int, at time.Time, err error) {
	line, err := h.out.ReadString('\n')
	if err != nil {
		return 0, at, fmt.Errorf("the process ended: %w", err)
	}
	var ns int64
	if _, err := fmt.Sscanf(line, "worker %d %d\n", &id, &ns); err != nil {
		return 0, at, fmt.Errorf("the process says %q", line)
	}
	return id, time.Unix(0, ns), nil
}

// leave ends the process, which releases its worker id, and returns an error if
// a goroutine or file is left.
func (h *holder) leave() error {
	h.stdin.Close()
	said, err := io.ReadAll(h.out)
	if err := cmp.Or(err, h.cmd.Wait()); err != nil {
		return fmt.Errorf("%w: %s", err, said)
	}
	files, err := os.ReadDir(h.cmd.Dir)
	if len(files) > 0 {
		return fmt.Errorf("the process left %v", files)
	}
	return err
}

func (h *holder) kill9() {
	h.cmd.Process.Kill()
	h.cmd.Wait()
}
