package worker

import (
	"context"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// TestMain finds goroutines that outlive the tests. The test binary is also
// the second process in tests that need one.
func TestMain(m *testing.M) {
	if dir := os.Getenv(holdsVar); dir != "" {
		os.Exit(holds(dir))
	}
	goleak.VerifyTestMain(m)
}

const holdsVar = "LEAFSQL_TEST_HOLDS"

// holds takes worker id 3 on the file in dir, prints its limit, and keeps it
// until the standard input ends or the process is killed.
func holds(dir string) int {
	k, err := Keep(func(context.Context) (Source, error) { return fixedSource(3), nil }, Config{State: dir, NewRegistry: true, Logger: discardLogger()})
	if err != nil {
		fmt.Println(err)
		return 1
	}
	s, err := k.Wait(context.Background())
	if err != nil {
		fmt.Println(err)
		return 1
	}
	fmt.Println(s.Limit.UnixMilli())
	io.Copy(io.Discard, os.Stdin)
	return 0
}
