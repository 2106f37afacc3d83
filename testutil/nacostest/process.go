package nacostest

import (
	"fmt"
	"os"
	"os/exec"
	"syscall"
)

// process is the process of a server.
type process struct {
	cmd  *exec.Cmd
	done chan struct{} // closed when the process has ended
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
		_ = cmd.Wait() // the reason of its end is in its output
		close(p.done)
	}()
	return p, nil
}

// kill9 kills the process and all its children.
func (p *process) kill9() {
	_ = syscall.Kill(-p.cmd.Process.Pid, syscall.SIGKILL)
	<-p.done
}
