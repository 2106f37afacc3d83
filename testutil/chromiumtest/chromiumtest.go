// Package chromiumtest looks at pages in a real browser.
//
//	seen := chromiumtest.Look(t, server.URL, chromiumtest.Window{Width: 390, Dark: true})
//	// seen.DOM after the page's scripts, seen.Console with what the browser complained of, seen.PNG
//
// It never skips: without Chromium the test fails and says what to install.
package chromiumtest

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"
)

// A Window is how a page is looked at. Zero values are a desktop's, in the light.
type Window struct {
	Width, Height int
	Dark          bool
	Language      string        // which the browser asks for, such as zh-CN
	For           time.Duration // how long the page's scripts run, in the page's own time; 1 s
}

// Seen is what the browser made of a page.
type Seen struct {
	DOM     string
	Console []string
	PNG     []byte
}

// Look opens a page.
func Look(t testing.TB, url string, w Window) Seen {
	t.Helper()
	if w.Width == 0 {
		w.Width = 1280
	}
	if w.Height == 0 {
		w.Height = 900
	}
	if w.For == 0 {
		w.For = time.Second
	}
	args := []string{
		fmt.Sprintf("--window-size=%d,%d", w.Width, w.Height),
		fmt.Sprintf("--virtual-time-budget=%d", w.For.Milliseconds()),
	}
	if w.Language != "" {
		args = append(args, "--accept-lang="+w.Language)
	}
	if w.Dark {
		args = append(args, "--blink-settings=preferredColorScheme=0")
	}
	file := filepath.Join(t.TempDir(), "page.png")
	dom, log := run(t, append(args, "--dump-dom", "--enable-logging=stderr", "--screenshot="+file, url))
	seen := Seen{DOM: dom}
	for _, m := range regexp.MustCompile(`CONSOLE[:(]\d+\)?\] (.*)`).FindAllStringSubmatch(log, -1) {
		seen.Console = append(seen.Console, m[1])
	}
	png, err := os.ReadFile(file)
	if err != nil {
		t.Fatalf("chromiumtest: no picture of %s: %v", url, err)
	}
	seen.PNG = png
	return seen
}

func run(t testing.TB, args []string) (stdout, stderr string) {
	t.Helper()
	shell, err := exec.LookPath("chromium-headless-shell")
	if err != nil {
		t.Fatalf("chromiumtest: %v; run testutil/chromiumtest/install.sh (Debian's package chromium-headless-shell)", err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // seconds, unless the machine is busy
	defer cancel()
	profile := t.TempDir()
	cmd := exec.CommandContext(ctx, shell, append([]string{
		"--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync",
		"--disable-dev-shm-usage", "--hide-scrollbars", "--user-data-dir=" + profile,
	}, args...)...)
	var out, log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &log
	if err := cmd.Run(); err != nil {
		t.Fatalf("chromiumtest: %v\n%s", err, log.String())
	}
	return out.String(), log.String()
}
