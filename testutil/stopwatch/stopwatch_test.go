package stopwatch_test

import (
	"bufio"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/freeze"
	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestStopwatchOmitsFrozenTime: a process is frozen for longer than its stopwatch shows at the end.
func TestStopwatchOmitsFrozenTime(t *testing.T) {
	if os.Getenv("STOPWATCH") != "" {
		took := stopwatch.Start(t)
		os.Stdout.WriteString("started\n")
		bufio.NewReader(os.Stdin).ReadString('\n') // waits for the end of the pause
		os.Stdout.WriteString("took " + took().String() + "\n")
		return
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=TestStopwatchOmitsFrozenTime")
	cmd.Env = append(os.Environ(), "STOPWATCH=1")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer cmd.Wait()
	took := stopwatch.Start(t)
	lines := bufio.NewScanner(out)
	for lines.Scan() && lines.Text() != "started" {
	}
	const pause = 3 * time.Second
	if err := freeze.Freeze(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	time.Sleep(pause)
	if err := freeze.Thaw(cmd.Process.Pid); err != nil {
		t.Fatal(err)
	}
	if _, err := in.Write([]byte("\n")); err != nil {
		t.Fatal(err)
	}
	lines.Scan()
	text, ok := strings.CutPrefix(lines.Text(), "took ")
	theirs, err := time.ParseDuration(text)
	if !ok || err != nil || theirs >= took() || theirs > pause/2 {
		t.Errorf("stopwatch = %q, %v, want at most half of the pause of %v", lines.Text(), err, pause)
	}
}

// TestStopwatchCountsWaits: a wait counts in full, unless the machine was busy.
func TestStopwatchCountsWaits(t *testing.T) {
	took := stopwatch.Start(t)
	began := time.Now()
	for took() < time.Second {
		if time.Since(began) > time.Minute {
			t.Fatalf("took() = %v after a minute, want a second", took())
		}
		time.Sleep(time.Millisecond)
	}
	if passed := time.Since(began); passed < time.Second-50*time.Millisecond {
		t.Errorf("stopwatch counted a second after %v, want 950ms or more", passed)
	}
}
