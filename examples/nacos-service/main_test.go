package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

func TestMain(m *testing.M) {
	if os.Getenv(serviceEnv) == "" {
		customerPause = 100 * time.Millisecond // the services have the race detector
		os.Exit(m.Run())
	}
	if err := serve(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func TestDemo(t *testing.T) {
	t.Setenv("LC_ALL", "C.UTF-8")
	t.Setenv("TMPDIR", t.TempDir())
	// Nacos' SDK, with which the services register, has races when it
	// reconnects. The services must not end because of them.
	t.Setenv("GORACE", "exitcode=0")
	var out bytes.Buffer
	if err := run(t.Context(), &out); err != nil {
		t.Fatalf("%v\n%s", err, &out)
	}
	t.Logf("\n%s", &out)
	for _, want := range []string{
		`(?m)^   b dead  127\.0\.0\.12:\d+ +\d+  `,
		`(?m)^   b       127\.0\.0\.14:\d+ +\d+  `,
		`(?m)^   c       127\.0\.0\.13:\d+ +\d+  [\d:]+, in 10m5`,
		`Worker id \d+ is free, but used up to`,
		`✓ [1-9]\d* orders while Nacos was away`,
		`✓ [1-9]\d* orders, [1-9]\d* different ids, 0 duplicates`,
	} {
		if !regexp.MustCompile(want).MatchString(out.String()) {
			t.Errorf("the output lacks %q", want)
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\r") {
		t.Error("codes for a terminal in a file")
	}
	for line := range strings.SplitSeq(out.String(), "\n") {
		if n := len([]rune(line)); n > 80 {
			t.Errorf("line of %d characters: %s", n, line)
		}
	}
	checkCleanedUp(t)
}

// stopAt cancels a context when a text was written.
type stopAt struct {
	text   string
	cancel func()
	bytes.Buffer
}

func (s *stopAt) Write(p []byte) (int, error) {
	if strings.Contains(string(p), s.text) {
		s.cancel()
	}
	return s.Buffer.Write(p)
}

func TestInterruptCleansUp(t *testing.T) {
	for _, text := range []string{"Starting Nacos", "2. b is killed"} {
		t.Run(text, func(t *testing.T) {
			t.Setenv("TMPDIR", t.TempDir())
			ctx, cancel := context.WithCancel(t.Context())
			out := &stopAt{text: text, cancel: cancel}
			if err := run(ctx, out); err == nil {
				t.Errorf("no error after an interrupt:\n%s", out)
			}
			checkCleanedUp(t)
		})
	}
}

// checkCleanedUp fails if the demo left a file of its servers or services.
func checkCleanedUp(t *testing.T) {
	t.Helper()
	left, err := filepath.Glob(filepath.Join(os.TempDir(), "*"))
	if err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
}
