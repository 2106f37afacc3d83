package main

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"
)

// TestReplayShowsRedrawnLines: a line that the program draws again has two periods, and sequences that are split between two
// writes are interpreted.
func TestReplayShowsRedrawnLines(t *testing.T) {
	writes := []string{"\x1b[1mtitle\x1b[0m\r\n", "\r   mysql \x1b[32m█", "\xe2\x96", "\x91\x1b[0m\x1b[K\r\n", "\x1b[", "1A\r   mysql \x1b[32m██\x1b[0m\x1b[K\r\n", "\r\nend\r\n"}
	var timing string
	for i, w := range writes {
		timing += fmt.Sprintln([]float64{1, 1, 0, 0, 2, 0, 1}[i], len(w))
	}
	lines, took, err := replay([]byte("Script started\n"+strings.Join(writes, "")+"Script done\n"), []byte(timing))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, l := range lines {
		got = append(got, fmt.Sprintf("%d: %v from %v to %v", l.row, l.spans, l.from, l.to))
	}
	want := []string{
		"1: [{   mysql  0} {█░ 32}] from 2s to 4s",
		"0: [{title 1}] from 1s to 0s",
		"1: [{   mysql  0} {██ 32}] from 4s to 0s",
		"3: [{end 0}] from 5s to 0s",
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") || took != 5*time.Second {
		t.Errorf("replay() = %s in %v, want %s in 5s", strings.Join(got, "\n"), took, strings.Join(want, "\n"))
	}
}

// TestDemoRecordingIsSmall: the recording in README.md is small and short, and its last screen has the demo's result.
func TestDemoRecordingIsSmall(t *testing.T) {
	picture, err := os.ReadFile("../../docs/demo.svg")
	if err != nil {
		t.Fatal(err)
	}
	if len(picture) > 300<<10 {
		t.Errorf("docs/demo.svg has %d bytes, want at most %d", len(picture), 300<<10)
	}
	for d := xml.NewDecoder(strings.NewReader(string(picture))); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatalf("docs/demo.svg: %v, want well-formed XML", err)
		}
	}
	m := regexp.MustCompile(`animation:([\d.]+)s`).FindSubmatch(picture)
	if m == nil {
		t.Fatal("docs/demo.svg has no animation, want one")
	}
	if seconds, _ := strconv.ParseFloat(string(m[1]), 64); seconds > longest.Seconds() {
		t.Errorf("docs/demo.svg takes %v s, want at most %v", seconds, longest)
	}
	if !strings.Contains(string(picture), "duplicates</tspan>") {
		t.Error("docs/demo.svg lacks the table of the last step, want the whole demo")
	}
}
