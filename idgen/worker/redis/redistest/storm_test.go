//go:build unix && storm

package redistest

import (
	"testing"
	"time"
)

func TestStormFailOverLosesWhatThePrimaryAloneAcknowledged(t *testing.T) {
	t.Parallel() // the test mostly waits
	began := time.Now()
	r := StartReplicated(t, Config{})
	t.Logf("ready after %v", time.Since(began).Round(time.Millisecond))
	c := client(t, r.Options())
	set(t, c, "kept", "1")
	if n, err := c.Do(t.Context(), "WAIT", 2, 5000).Int(); n != 2 || err != nil {
		t.Fatalf("%d replicas have the write, %v, want n = 2 and no error", n, err)
	}
	do(t, r.CutReplication)
	if n, err := c.IncrBy(t.Context(), "lost", 1000).Result(); n != 1000 || err != nil {
		t.Fatalf("the write is not acknowledged: %d, %v, want n = 1000 and no error", n, err)
	}
	if n, err := c.Do(t.Context(), "WAIT", 1, 100).Int(); n != 0 || err != nil {
		t.Fatalf("%d replicas have the write, %v, want n = 0 and no error", n, err)
	}
	began = time.Now()
	was, err := r.FailOver()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("another primary after %v", time.Since(began).Round(time.Millisecond))
	set(t, c, "new", "1")
	want(t, c, "kept", "1")
	want(t, c, "lost", "")

	began = time.Now()
	do(t, r.Start)
	t.Logf("the old primary is a replica after %v", time.Since(began).Round(time.Millisecond))
	now, err := r.Primary()
	if err != nil || now == was {
		t.Fatalf("the primary is %s again, %v, want now other than %v and no error", was.Addr, err, was)
	}
	if n, err := c.Do(t.Context(), "WAIT", 2, 5000).Int(); n != 2 || err != nil {
		t.Errorf("%d replicas in the end, %v, want n = 2 and no error", n, err)
	}
}

func TestStormThawedPrimaryAcknowledgesWhatIsLost(t *testing.T) {
	t.Parallel()
	r := StartReplicated(t, Config{})
	old, err := r.Primary()
	if err != nil {
		t.Fatal(err)
	}
	do(t, old.Freeze)
	began := time.Now()
	for now := old; now == old; {
		if now, err = r.Primary(); err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("a frozen primary is replaced after %v", time.Since(began).Round(time.Millisecond))
	do(t, old.Thaw)
	c := client(t, old.Options())
	if err := c.Set(t.Context(), "lost", "1", 0).Err(); err != nil {
		t.Fatalf("the old primary: %v", err)
	}
	do(t, r.Await)
	want(t, c, "lost", "")
	want(t, client(t, r.Options()), "lost", "")
}
