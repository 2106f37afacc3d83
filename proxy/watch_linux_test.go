package proxy

import (
	"math"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/stopwatch"
)

// TestWatchReusesTheLowestIDs: after the last id, the next connections get the lowest free ids.
func TestWatchReusesTheLowestIDs(t *testing.T) {
	w, err := newWatch()
	if err != nil {
		t.Fatal(err)
	}
	defer w.close()
	took := stopwatch.Start(t)
	w.lastID = math.MaxInt32 - 1
	w.callbacks[1] = func() { t.Error("callback of another connection was called, want the added one's alone") }
	for _, want := range []int32{math.MaxInt32, 2, 3} {
		client, server := connectSockets(t, "tcp")
		gone := make(chan bool)
		if id, err := w.add(client, func() { close(gone) }); id != want || err != nil {
			t.Errorf("add() = %d, %v, want %d, nil", id, err, want)
		}
		server.Close()
		<-gone
	}
	if took() > time.Second {
		t.Errorf("callbacks were called after %v, want at most 1s", took())
	}
}
