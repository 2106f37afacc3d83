//go:build unix

// Package process runs one server for tests: in a folder of its own, killed, frozen and started again at will, and gone with
// its folder when the test process ends, however that ends.
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
// Packages that start servers of one kind embed a Process and add what is special. The package chooses no ports (freeport
// does) and knows no protocol.
package process

import (
	"context"
	"errors"
	"fmt"
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

// Config says how a server is run.
type Config struct {
	Name    string                          // what it is, for errors and its folder's name: "redis"
	Command func(dir string) *exec.Cmd      // how to start it, asked at each start; dir is its folder
	Ready   func(ctx context.Context) error // nil once it serves
}

// A Process is a server that runs, or can be started. Its methods are for one goroutine at a time.
type Process struct {
	cfg     Config
	dir     string
	cmd     *exec.Cmd // nil while it does not run
	janitor *janitor.Janitor
}

// A start is given much time, as the machine may be busy, and a question during it little.
const (
	startTime = 4 * time.Minute
	askTime   = 5 * time.Second
)

// New makes the folder of a server. Stop removes it, and so does the end of this process.
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

// Dir returns the server's folder. What the server stores is in its folder data.
func (p *Process) Dir() string { return p.dir }

// Start starts a server that does not run and waits until it serves.
func (p *Process) Start() error {
	if err := p.Launch(); err != nil {
		return err
	}
	return p.Await()
}

// Launch starts a server that does not run. Await waits until it serves.
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
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for the tests; the janitor sees to the server
	if err := cmd.Start(); err != nil {
		return p.errorf("starting it: %w", err)
	}
	p.cmd = cmd
	return p.janitor.Watch(cmd.Process.Pid)
}

// Await waits until a server that was launched serves. One that ends instead, or takes too long, is killed.
func (p *Process) Await() error {
	err := Until(func(ctx context.Context) error {
		err := p.cfg.Ready(ctx)
		if err != nil && p.ended() {
			return final{errors.New("it ended while starting")}
		}
		return err
	})
	if err != nil {
		return errors.Join(p.errorf("%w\n%s", err, p.Tail()), p.Kill9())
	}
	return nil
}

// StartAll starts those that do not run at the same time: nodes of a cluster may serve only together.
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

// Until asks again and again until there is nothing to object, and gives up when that takes too long.
func Until(ask func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	for {
		question, answered := context.WithTimeout(ctx, askTime)
		err := ask(question)
		answered()
		if err == nil || errors.As(err, new(final)) {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("still not after %v: %w", startTime, err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

// final is an objection that stays.
type final struct{ error }

// ended looks at the process, which stays a zombie. No goroutine waits for it: that would outlive tests that look for leaked
// ones.
func (p *Process) ended() bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	return err == nil && strings.Contains(string(stat), ") Z ")
}

// Running says whether the server was started and not killed since.
func (p *Process) Running() bool { return p.cmd != nil }

// Kill9 ends the server as a crash does. What it has stored stays for Start. Nothing happens if it does not run.
func (p *Process) Kill9() error {
	if p.cmd == nil {
		return nil
	}
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return p.errorf("killing it: %w", err)
	}
	p.cmd.Wait() // the way it ended is in its log
	p.cmd = nil
	return p.janitor.Watch(0)
}

// Restart kills the server if it runs, and starts it again on the same ports and data.
func (p *Process) Restart() error {
	if err := p.Kill9(); err != nil {
		return err
	}
	return p.Start()
}

// Freeze stops the server where it is, as a paused machine would. Its connections stay, and nobody is told.
func (p *Process) Freeze() error {
	if p.cmd == nil {
		return p.errorf("it does not run")
	}
	return freeze.Freeze(p.cmd.Process.Pid)
}

// Thaw lets a frozen server go on.
func (p *Process) Thaw() error {
	if p.cmd == nil {
		return p.errorf("it does not run")
	}
	return freeze.Thaw(p.cmd.Process.Pid)
}

// Wipe removes all that the server has stored. It must not run.
func (p *Process) Wipe() error {
	if p.cmd != nil {
		return p.errorf("it runs; Kill9 it first")
	}
	if err := os.RemoveAll(p.data()); err != nil {
		return p.errorf("%w", err)
	}
	return os.Mkdir(p.data(), 0o700)
}

// Snapshot copies what the server has stored to the folder dir, which must not hold any of it yet. A server that runs stands
// still meanwhile, so that the copy is what a crash would leave.
func (p *Process) Snapshot(dir string) error {
	if p.cmd != nil {
		if err := p.Freeze(); err != nil {
			return err
		}
		defer p.Thaw()
	}
	return os.CopyFS(dir, os.DirFS(p.data()))
}

// Restore puts a snapshot in the place of what the server has stored. It must not run.
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

// Finish stops the server at the end of the test, and shows the end of its log if the test has failed.
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

// Tail returns the end of what the server has printed.
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
