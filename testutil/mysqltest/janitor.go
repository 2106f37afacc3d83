//go:build unix

package mysqltest

import (
	"fmt"
	"io"
	"os/exec"
	"sync"
	"syscall"
)

// A janitor is a shell that reads from a pipe only this process writes to. When this process ends, in whatever way, the
// pipe closes, and the janitor kills the server and removes its folder. It works after kill -9 too, and for a server
// shared by a whole test binary, which no single test could stop.
type janitor struct {
	cmd  *exec.Cmd
	pipe io.WriteCloser
}

// Each line read is the process to kill at the end, 0 for none. Files may appear until the killed server is truly gone.
const janitorScript = `
pid=0
while read -r line; do pid=$line; done
[ "$pid" = 0 ] || kill -9 "$pid" 2>/dev/null
for i in 1 2 3 4 5 6 7 8 9 10; do
	rm -rf "$1" 2>/dev/null && sleep 0.1 && [ ! -e "$1" ] && exit 0
	sleep 0.1
done`

func startJanitor(dir string) (*janitor, error) {
	cmd := exec.Command("/bin/sh", "-c", janitorScript, "mysqltest-janitor", dir)
	cmd.Dir = "/"
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true} // a signal to the tests' process group must not reach it
	pipe, err := cmd.StdinPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		return nil, fmt.Errorf("mysqltest: start the janitor: %w", err)
	}
	j := &janitor{cmd: cmd, pipe: pipe}
	janitors.Store(j, nil)
	return j, nil
}

// janitors holds those at work. Without it, a server whose owner kept only the data source name would be garbage, its pipe
// closed by the collector, and the server killed in the middle of a test.
var janitors sync.Map

// watch says which process to kill at the end, 0 for none.
func (j *janitor) watch(pid int) error {
	if _, err := fmt.Fprintln(j.pipe, pid); err != nil {
		return fmt.Errorf("mysqltest: the janitor is gone: %w", err)
	}
	return nil
}

// stop lets the janitor clean up and waits for its end.
func (j *janitor) stop() {
	janitors.Delete(j)
	j.pipe.Close()
	j.cmd.Wait()
}
