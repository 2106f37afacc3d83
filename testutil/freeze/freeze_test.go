//go:build unix

package freeze

import (
	"bufio"
	"os/exec"
	"testing"
	"time"
)

func TestFreezeStopsAProcess(t *testing.T) {
	cmd := exec.CommandContext(t.Context(), "sh", "-c", "while :; do echo; done")
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan struct{})
	go func() {
		defer close(lines)
		for s := bufio.NewScanner(out); s.Scan(); {
			lines <- struct{}{}
		}
	}()
	<-lines
	if err := Freeze(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	for quiet := false; !quiet; { // output from before
		select {
		case <-lines:
		case <-time.After(200 * time.Millisecond):
			quiet = true
		}
	}
	if err := Thaw(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	<-lines
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	for range lines {
	}
	cmd.Wait()
	if Freeze(cmd.Process.Pid) == nil {
		t.Error("Freeze() of a process that has ended = nil, want an error")
	}
}
