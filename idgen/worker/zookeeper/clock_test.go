package zookeeper

import (
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/testutil/zktest"
)

// TestClock compares the server's clock with this machine's, which it runs on: each time it is asked.
func TestClock(t *testing.T) {
	t.Parallel()
	cfg := Config{Servers: []string{zktest.Start(t, zktest.Config{}).Addr}}
	src, err := Open(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer src.Close()
	if at, err := src.Time(t.Context()); err == nil {
		t.Errorf("%v where there is no registry", at)
	}
	leasetest.InUse(t, opening(cfg), worker.Config{Workers: 1})
	for range 3 {
		before := time.Now().Truncate(time.Millisecond)
		if at, err := src.Time(t.Context()); err != nil || at.Before(before) || at.After(time.Now()) {
			t.Errorf("%v, %v; asked at %v", at, err, before)
		}
	}
}
