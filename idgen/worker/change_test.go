package worker

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// A registry that replaces another one has the same worker ids. No time is
// issued twice with a worker id if processes of the new registry start as
// docs/worker-ids.md requires: a lease and 60 s after those of the old one have been
// stopped or cut off. The clocks of the two processes are 40 s apart.
func TestNewRegistryRepeatsNoTime(t *testing.T) {
	for _, lease := range []time.Duration{6 * time.Second, time.Minute, time.Hour} {
		for _, tt := range []struct {
			name string
			wait time.Duration
			safe bool
		}{
			{"after the wait", lease + time.Minute, true},
			{"one process after the other", 0, false},
		} {
			for at := range 5 { // fifths of the time between two renewals
				t.Run(fmt.Sprint(lease, " ", tt.name, " ", at), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						clockOff := func(d time.Duration) *adjustableHost {
							h := &adjustableHost{host: machine{began: time.Now()}}
							h.offset.Store(int64(d))
							return h
						}
						before, after := newFakeOf(1, Config{Lease: lease}), &fakeRegistry{}
						old := mustHold(t, before.source(), Config{Workers: 1, Lease: lease, host: clockOff(20 * time.Second)})
						time.Sleep(lease + time.Duration(at)*lease/30)
						before.set(fakeFaults{away: true})
						limit := old.Status().Limit
						time.Sleep(tt.wait)
						start := mustHold(t, after.source(), Config{Workers: 1, Lease: lease, NewRegistry: true, host: clockOff(-20 * time.Second)}).Status().Start
						if safe := start.After(limit); safe != tt.safe {
							t.Errorf("ids of the new registry begin %v after the last possible one of the old, want safe = %v", start.Sub(limit), tt.safe)
						}
					})
				})
			}
		}
	}
}
