//go:build unix

// Package janitor ends a server and removes its folder when this process ends for any reason.
//
//	j, err := janitor.Start(dir)
//	...
//	err = j.Watch(server.Pid)
//	...
//	j.Stop()
package janitor

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// A Janitor is a shell that reads from a pipe to which only this process writes. When this process ends for any reason,
// the pipe closes, and the janitor kills the server and removes its folder. This also works after kill -9, and for a
// server shared by a whole test binary, which no single test could stop.
type Janitor struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// script reads lines with the id of the process to kill at the end; 0 means no process. It removes the folder several
// times, because files may appear until the killed server has ended.
const script = `
pid=0
while read -r line; do pid=$line; done
[ "$pid" = 0 ] || kill -9 "$pid" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do
	rm -rf "$1" 2>/dev/null && sleep 0.1 && [ ! -e "$1" ] && exit 0
	sleep 0.1
done`

// Start starts a janitor for the folder dir, without a process to kill yet. The
// caller ends it with Stop.
func Start(dir string) (*Janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", script, "leafsql-janitor", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // it must not receive signals for the tests' process group
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("janitor: start: %w", err)
	}
	j := &Janitor{cmd: cmd, pipe: pipe}
	janitors.Store(j, nil)
	return j, nil
}

// janitors contains the running Janitors, so that the garbage collector does not close their pipes. A test may keep only
// the data source name of its server; if the pipe were closed, the server would be killed in the middle of the test.
var janitors sync.Map

// Watch sets the process to kill at the end; 0 means no process.
func (j *Janitor) Watch(pid int) error {
	if _, err := fmt.Fprintln(j.pipe, pid); err != nil {
		return fmt.Errorf("janitor: it is gone: %w", err)
	}
	return nil
}

// Stop makes the janitor clean up, and waits for its end.
func (j *Janitor) Stop() {
	janitors.Delete(j)
	j.pipe.Close()
	j.cmd.Wait()
}
