// Package promtooltest runs promtool, Prometheus' own checker of metrics and rules, in tests.
//
//	promtooltest.Run(t, exposition, "check", "metrics")
//
// It never skips: without promtool the test fails with a hint on what to install.
package promtooltest

import (
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// Run runs promtool with in as its standard input, which may be nil, and fails the test if promtool reports a
// problem.
func Run(t testing.TB, in io.Reader, args ...string) {
	t.Helper()
	cmd := exec.Command(Find(t, "promtool"), args...)
	cmd.Stdin = in
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("promtool %v: %v\n%s", args, err, out)
	}
}

// Find returns the path of promtool or prometheus, and fails the test if it is missing.
func Find(t testing.TB, program string) string {
	t.Helper()
	if path, err := exec.LookPath(program); err == nil {
		return path
	}
	cache, err := os.UserCacheDir()
	if err == nil {
		path := filepath.Join(cache, "leafsql", "promtool", program)
		if _, err = os.Stat(path); err == nil {
			return path
		}
	}
	t.Fatalf("%[1]s is missing; run testutil/promtooltest/install.sh %[1]s: %[2]v", program, err)
	return ""
}
