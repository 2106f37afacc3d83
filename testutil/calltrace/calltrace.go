// Package calltrace lists the functions of this module that a call runs, with their files:
//
//	if !calltrace.RunInstrumented(t) {
//		return
//	}
//	passed := calltrace.RecordCalls(func() { db.Exec("INSERT …") }, "ResetSession")
//
// A closure counts as part of the function that it is written in.
package calltrace

import (
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
)

const (
	pkg    = "github.com/leafsql/leafsql/testutil/calltrace"
	inside = "LEAFSQL_TEST_CALLTRACE" // set in the build with functions that call Enter
)

// RunInstrumented returns true in the instrumented build, in which every function of this module that the test's
// package uses calls Enter. In any other build it runs the calling test again in an instrumented build,
// reports the outcome of this run as the outcome of the test, and returns false.
func RunInstrumented(t *testing.T) bool {
	t.Helper()
	if os.Getenv(inside) != "" {
		return true
	}
	again := exec.CommandContext(t.Context(), "go", "test", "-overlay="+writeOverlay(t), "-vet=off", "-count=1", "-v", "-run=^"+t.Name()+"$", ".")
	again.Env = append(os.Environ(), inside+"=1")
	out, err := again.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%s: %v", strings.Join(again.Args, " "), err)
	}
	return false
}

var (
	tracing  atomic.Bool
	recorded []string // like ignored, used only by the goroutine in RecordCalls
	ignored  []string
)

// RecordCalls runs call and returns the functions that run, as file:function, in the order of their first calls.
// It omits other goroutines, the functions and methods named in without, and the functions that these call.
func RecordCalls(call func(), without ...string) []string {
	recorded, ignored = nil, without
	tracing.Store(true)
	defer tracing.Store(false)
	call()
	return recorded
}

// Enter records a function, as file:function. Every function of the build for RunInstrumented
// calls it.
func Enter(function string) {
	if !tracing.Load() {
		return
	}
	callers := make([]uintptr, 256)
	frames := runtime.CallersFrames(callers[:runtime.Callers(2, callers)])
	for {
		frame, more := frames.Next()
		if frame.Function == pkg+".RecordCalls" {
			if !slices.Contains(recorded, function) {
				recorded = append(recorded, function)
			}
			return
		}
		if !more || slices.Contains(ignored, frame.Function[strings.LastIndex(frame.Function, ".")+1:]) {
			return
		}
	}
}
