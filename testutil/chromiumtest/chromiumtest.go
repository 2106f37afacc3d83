// Package chromiumtest displays pages in a real browser.
//
//	seen := chromiumtest.OpenPage(t, server.URL, chromiumtest.Window{Width: 390, Dark: true})
//	// seen.DOM after the page's scripts, seen.Console with the browser's errors, seen.PNG
//
// It never skips: without Chromium the test fails with a hint on what to install.
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

// A Window describes how a page is displayed. The zero value is a desktop in light
// mode.
type Window struct {
	Width, Height int
	Dark          bool
	Language      string        // language that the browser prefers, such as zh-CN
	For           time.Duration // time for the page's scripts, by the page's clock; default 1 s
}

// Result is the page as the browser rendered it.
type Result struct {
	DOM     string
	Console []string
	PNG     []byte
}

// OpenPage opens a page in a browser and returns the result after its scripts ran.
func OpenPage(t testing.TB, url string, w Window) Result {
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
	seen := Result{DOM: dom}
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
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute) // takes seconds, unless the machine is busy
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
