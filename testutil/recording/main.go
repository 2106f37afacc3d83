// Recording runs a program in a terminal, and writes the terminal's screen as an animated SVG, which browsers play without
// scripts:
//
//	go run ./testutil/recording -out docs/demo.svg 'make demo'
//
// The last screen stays for some seconds before the animation starts again. Readers that prefer no animation see
// only that screen. The program needs script, of util-linux.
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

const (
	columns = 84
	rest    = 8 * time.Second  // time for which the last screen stays
	longest = 30 * time.Second // duration of the animation
)

func main() {
	out := flag.String("out", "", "`file` to write")
	title := flag.String("title", "", "description of the picture")
	flag.Parse()
	if flag.NArg() != 1 || *out == "" {
		flag.Usage()
		os.Exit(2)
	}
	if err := record(*out, *title, flag.Arg(0)); err != nil {
		fmt.Fprintln(os.Stderr, "recording:", err)
		os.Exit(1)
	}
}

func record(out, title, command string) error {
	folder, err := os.MkdirTemp("", "recording")
	if err != nil {
		return err
	}
	defer os.RemoveAll(folder)
	output, timing := filepath.Join(folder, "output"), filepath.Join(folder, "timing")
	script := exec.Command("script", "-q", "-e", "-c", fmt.Sprintf("stty cols %d rows 60 && %s", columns, command), "--log-out", output, "--log-timing", timing)
	script.Env = append(os.Environ(), "TERM=xterm-256color", "LC_ALL=C.UTF-8")
	script.Stdout, script.Stderr = os.Stdout, os.Stderr
	if err := script.Run(); err != nil {
		return fmt.Errorf("%s: %w", command, err)
	}
	text, err := os.ReadFile(output)
	if err != nil {
		return err
	}
	times, err := os.ReadFile(timing)
	if err != nil {
		return err
	}
	lines, took, err := replay(text, times)
	if err != nil {
		return err
	}
	if took+rest > longest {
		return fmt.Errorf("%s took %.1f s, and the recording may take %v; record on a machine that does nothing else", command, took.Seconds(), longest-rest)
	}
	return os.WriteFile(out, drawSVG(lines, took+rest, title), 0o644)
}

// replay returns the lines of a recording of script, and its duration.
func replay(text, timing []byte) ([]line, time.Duration, error) {
	_, text, found := bytes.Cut(text, []byte("\n")) // script's own first line
	if !found {
		return nil, 0, errors.New("the recording is empty")
	}
	var t terminal
	var now time.Duration
	for entry := range strings.Lines(string(timing)) {
		var seconds float64
		var n int
		if _, err := fmt.Sscan(entry, &seconds, &n); err != nil || n > len(text) {
			return nil, 0, fmt.Errorf("entry %q of the timing: %v", entry, err)
		}
		now += time.Duration(seconds * float64(time.Second))
		t.write(now, text[:n])
		text = text[n:]
	}
	return t.finish(now), now, nil
}
