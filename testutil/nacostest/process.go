package nacostest

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// process is a server's process.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when it has ended
}

// start runs the command with its output appended to the file.
func start(cmd *exec.Cmd, output string) (*process, error) {
	out, err := os.OpenFile(output, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
	if err != nil {
		return nil, err
	}
	defer out.Close()
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C in a terminal is for the tests
	if err := cmd.Start(); err != nil {
		return nil, fmt.Errorf("nacostest: starting %s: %w", cmd.Path, err)
	}
	p := &process{cmd: cmd, done: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the way it ended is in its output
		close(p.done)
	}()
	return p, nil
}

// freeze stops all its threads where they are, until thaw.
func (p *process) freeze() error {
	if err := syscall.Kill(-p.cmd.Process.Pid, syscall.SIGSTOP); err != nil {
		return fmt.Errorf("nacostest: stopping the process: %w", err)
	}
	for range 500 {
		if p.frozen() {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	p.thaw()
	return errors.New("nacostest: the process does not stand still")
}

// frozen looks at each thread: they stop one by one.
func (p *process) frozen() bool {
	stats, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
	for _, stat := range stats {
		text, readErr := os.ReadFile(stat)
		if readErr == nil && !strings.Contains(string(text), ") T ") {
			return false
		}
	}
	return err == nil && len(stats) > 0
}

func (p *process) thaw() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGCONT) // fails only if it has ended
}

// kill9 ends the process with all it started, at once.
func (p *process) kill9() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}
