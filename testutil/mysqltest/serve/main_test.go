//go:build unix

package main

import (
	"os"
	"os/exec"
	"testing"
	"time"
)

const envServe = "LEAFSQL_TEST_SERVE"

func TestMain(m *testing.M) {
	if os.Getenv(envServe) != "" {
		main()
	}
	os.Exit(m.Run())
}

// TestServeRemovesTemporaryFiles: the files of a command in its temporary folder are removed when serve ends,
// however it ends.
func TestServeRemovesTemporaryFiles(t *testing.T) {
	for name, command := range map[string]string{
		"end":  "touch $TMPDIR/file",
		"fail": "touch $TMPDIR/file; exit 7",
		"kill": "touch $TMPDIR/file; kill -9 $PPID",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tmp := t.TempDir()
			cmd := exec.CommandContext(t.Context(), os.Args[0], "-mysql", "--", "sh", "-c", command)
			cmd.Env = append(os.Environ(), envServe+"=1", "TMPDIR="+tmp, "LEAFSQL_TEST_DSN=somewhere", "LEAFSQL_TEST_MYSQL_DSN=somewhere")
			out, err := cmd.CombinedOutput()
			if status := cmd.ProcessState.ExitCode(); status != map[string]int{"end": 0, "fail": 7, "kill": -1}[name] {
				t.Errorf("%s: exit status = %d, %v, want %d: %s", name, status, err, map[string]int{"end": 0, "fail": 7, "kill": -1}[name], out)
			}
			for deadline := time.Now().Add(20 * time.Second); ; time.Sleep(20 * time.Millisecond) {
				left, err := os.ReadDir(tmp)
				if err == nil && len(left) == 0 {
					return
				}
				if time.Now().After(deadline) {
					t.Fatalf("files after the end = %v, %v, want none", left, err)
				}
			}
		})
	}
}
