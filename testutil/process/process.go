//go:build unix

// Package process runs one server for tests in a separate folder. The server can be killed, frozen and restarted, and
// is removed with its folder when the test process ends for any reason.
//
//	p, err := process.New(process.Config{
//		Name:    "redis",
//		Command: func(dir string) *exec.Cmd { return program.Command("--dir", dir+"/data") },
//		Ready:   ping,
//	})
//	err = p.Start()
//	p.Kill9()
//	err = p.Start()
//	p.Stop()
//
// Packages for one kind of server embed a Process and add the parts that only this kind needs. Package process chooses
// no ports (freeport does) and implements no protocol.
package process

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeze"
	"github.com/leafsql/leafsql/testutil/janitor"
)

// Config contains the settings of a server.
type Config struct {
	Name    string                          // name for errors and the folder, such as "redis"
	Command func(dir string) *exec.Cmd      // returns the command of each start; dir is the server's folder
	Ready   func(ctx context.Context) error // returns nil once the server is ready
}

// Accepts returns a Config.Ready for a server that is ready once it accepts TCP connections at addr.
func Accepts(addr string) func(ctx context.Context) error {
	return func(ctx context.Context) error {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			conn.Close()
		}
		return err
	}
}

// A Process is a server that is running, or can be started. It is not safe for concurrent use.
type Process struct {
	cfg     Config
	dir     string
	cmd     *exec.Cmd // nil while it is stopped
	janitor *janitor.Janitor
}

// Timeouts of a start, which may take long on a busy machine, and of a single check.
const (
	startTime = 4 * time.Minute
	askTime   = 5 * time.Second
)

// New creates the folder of a server. It is removed by Stop, or when this process ends.
func New(cfg Config) (*Process, error) {
	dir, err := os.MkdirTemp("", "leafsql-"+cfg.Name+"-")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", cfg.Name, err)
	}
	p := &Process{cfg: cfg, dir: dir}
	if p.janitor, err = janitor.Start(dir); err == nil {
		err = os.Mkdir(p.data(), 0o700)
	}
	if err != nil {
		return nil, errors.Join(err, p.Stop())
	}
	return p, nil
}

// Dir returns the server's folder. Its subfolder data contains the server's data.
func (p *Process) Dir() string { return p.dir }

// Start starts a stopped server and waits until it is ready.
func (p *Process) Start() error {
	if err := p.Launch(); err != nil {
		return err
	}
	return p.Await()
}

// Launch starts a stopped server. Await waits until it is ready.
func (p *Process) Launch() error {
	if p.cmd != nil {
		return p.errorf("it runs already")
	}
	log, err := os.OpenFile(p.log(), os.O_CREATE|os.O_WRONLY|os.O_APPEND, 0o644)
	if err != nil {
		return p.errorf("%w", err)
	}
	defer log.Close()
	cmd := p.cfg.Command(p.dir)
	cmd.Dir, cmd.Stdout, cmd.Stderr = p.dir, log, log
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for the tests; the janitor ends the server
	if err := cmd.Start(); err != nil {
		return p.errorf("starting it: %w", err)
	}
	p.cmd = cmd
	return p.janitor.Watch(cmd.Process.Pid)
}

// Await waits until a launched server is ready. If the server ends instead, or takes too long, Await kills
// it and returns an error.
func (p *Process) Await() error {
	err := Until(func(ctx context.Context) error {
		err := p.cfg.Ready(ctx)
		if err != nil && p.isZombie() {
			return permanentError{errors.New("it ended while starting")}
		}
		return err
	})
	if err != nil {
		return errors.Join(p.errorf("%w\n%s", err, p.Tail()), p.Kill9())
	}
	return nil
}

// StartAll starts the stopped servers at the same time: nodes of a cluster may become ready only
// together.
func StartAll[S interface {
	Running() bool
	Launch() error
	Await() error
}](servers ...S) error {
	var launched []S
	for _, s := range servers {
		if s.Running() {
			continue
		}
		if err := s.Launch(); err != nil {
			return err
		}
		launched = append(launched, s)
	}
	for _, s := range launched {
		if err := s.Await(); err != nil {
			return err
		}
	}
	return nil
}

// Until calls ask until it returns nil or a permanentError. After startTime it returns an error.
func Until(ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for {
		question, answered := context.WithTimeout(ctx, askTime)
		err := ask(question)
		answered()
		if err == nil || errors.As(err, new(permanentError)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still not after %v: %w", startTime, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// permanentError wraps an error that a retry cannot change.
type permanentError struct{ error }

// isZombie reports whether the process has ended and is a zombie. No goroutine waits for the process, because tests that
// check for leaked goroutines would find it.
func (p *Process) isZombie() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// Running reports whether the server was started and has not been killed since.
func (p *Process) Running() bool { return p.cmd != nil }

// Kill9 ends the server as a crash would, and keeps its data for Start. It does nothing if the server is
// stopped.
func (p *Process) Kill9() error {
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return p.errorf("killing it: %w", err)
	}
	p.cmd.Wait() // without the error: the reason of the process's end is in its log
	p.cmd = nil
	return p.janitor.Watch(0)
}

// Restart kills the server if it is running, and starts it again with the same ports
// and data.
func (p *Process) Restart() error {
	if err := p.Kill9(); err != nil {
		return err
	}
	return p.Start()
}

// Freeze stops the server's process, like a pause of its machine. Its connections stay open, and clients get
// no error.
func (p *Process) Freeze() error {
	if p.cmd == nil {
		return p.errorf("it does not run")
	}
	return freeze.Freeze(p.cmd.Process.Pid)
}

// Thaw continues a frozen server.
func (p *Process) Thaw() error {
	if p.cmd == nil {
		return p.errorf("it does not run")
	}
	return freeze.Thaw(p.cmd.Process.Pid)
}

// Wipe removes the server's data. The server must be stopped.
func (p *Process) Wipe() error {
	if p.cmd != nil {
		return p.errorf("it runs; Kill9 it first")
	}
	if err := os.RemoveAll(p.data()); err != nil {
		return p.errorf("%w", err)
	}
	return os.Mkdir(p.data(), 0o700)
}

// Snapshot copies the server's data to the folder dir, which must not contain any of its files yet. A running server is
// frozen during the copy, so the copy is like the data after a crash.
func (p *Process) Snapshot(dir string) error {
	if p.cmd != nil {
		if err := p.Freeze(); err != nil {
			return err
		}
		defer p.Thaw()
	}
	return os.CopyFS(dir, os.DirFS(p.data()))
}

// Restore replaces the server's data with a snapshot. The server must be stopped.
func (p *Process) Restore(dir string) error {
	if err := p.Wipe(); err != nil {
		return err
	}
	return os.CopyFS(p.data(), os.DirFS(dir))
}

// Stop kills the server and removes its folder.
func (p *Process) Stop() error {
	err := p.Kill9()
	if p.janitor != nil {
		p.janitor.Stop()
	}
	return errors.Join(err, os.RemoveAll(p.dir))
}

// Finish stops the server at the end of the test, and logs the end of its log if the test has failed.
func (p *Process) Finish(tb testing.TB) {
	tb.Cleanup(func() {
		if tb.Failed() {
			tb.Logf("%s, in the end:\n%s", p.cfg.Name, p.Tail())
		}
		if err := p.Stop(); err != nil {
			tb.Error(err)
		}
	})
}

// Tail returns the end of the server's output.
func (p *Process) Tail() string {
	text, err := os.ReadFile(p.log())
	if err != nil {
		return err.Error()
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	lines = lines[max(0, len(lines)-10):]
	for i, line := range lines {
		lines[i] = line[:min(len(line), 300)]
	}
	return strings.Join(lines, "\n")
}

func (p *Process) data() string { return filepath.Join(p.dir, "data") }

func (p *Process) log() string { return filepath.Join(p.dir, "log") }

func (p *Process) errorf(format string, args ...any) error {
	return fmt.Errorf(p.cfg.Name+": "+format, args...)
}
