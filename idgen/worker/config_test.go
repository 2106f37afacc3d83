package worker

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

func TestLeaseIsInRange(t *testing.T) {
	for lease, ok := range map[time.Duration]bool{
		-1: false, 1: false, 6*time.Second - 1: false, 6 * time.Second: true, time.Minute: true, time.Hour: true, time.Hour + 1: false, 0: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			cfg := Config{Workers: 1, Lease: lease, Logger: discardLogger()}
			k, err := Keep(nil, cfg)
			if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "6s … 1h") {
				t.Errorf("a lease of %v: err = %v, want accepted = %t, or an error with the range 6s … 1h", lease, err, ok)
			}
			if err != nil {
				return
			}
			k.Close()
			if lease == 0 {
				lease = time.Minute
			}
			s := mustHold(t, newFakeOf(1, cfg).source(), cfg).Status()
			if !s.Limit.Equal(nowMilli().Add(lease)) || s.Ahead != lease/2 {
				t.Errorf("a lease of %v: limit %v ahead, bursts of %v, want %v and %v", lease, s.Limit.Sub(nowMilli()), s.Ahead, lease, lease/2)
			}
		})
	}
	if _, err := Keep(nil, Config{Workers: -1}); err == nil || !errorForm.MatchString(err.Error()) {
		t.Errorf("Keep(-1 worker ids) = %v, want an error of the form \"leafsql: …\"", err)
	}
}

func TestConfigHasDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1024)
		s := mustHold(t, f.source(), Config{}).Status()
		host, _ := os.Hostname()
		owner := fmt.Sprintf("%s:%d", host, os.Getpid())
		if d := f.doc(s.Worker); d.Owner != owner || s.Owner != owner || s.Registry != "fake" {
			t.Errorf("%+v, held as %+v, want d.Owner = %v, s.Owner = %v and s.Registry = \"fake\"", s, d, owner, owner)
		}
		if !s.Start.Equal(nowMilli()) || !s.Since.Equal(nowMilli()) {
			t.Errorf("Start = %v, Since = %v, want both %v", s.Start, s.Since, nowMilli())
		}
	})
}

// TestReasonNamesThePhase: Reason returns the text for each phase.
func TestReasonNamesThePhase(t *testing.T) {
	next := time.Date(2026, 3, 1, 12, 0, 5, 0, time.UTC)
	for _, tt := range []struct {
		s    Status
		want string
	}{
		{Status{Phase: phaseSearching}, "the search for a worker id is in progress"},
		{Status{Phase: phaseSearching, Err: errAway, Next: next}, "the registry is away (the next search is at 12:00:05)"},
		{Status{Phase: phaseWaiting, quarantine: quarantineError(3, next)}, "worker id 3 is held, its ids are safe from 2026-03-01T12:00:05Z on: it was used up to that time; wait until then"},
		{Status{Phase: phaseClosed, Err: errClosed}, errprefix.TrimText(errClosed)},
	} {
		if got := tt.s.Reason(); got != tt.want {
			t.Errorf("%v: %q, want %q", tt.s.Phase, got, tt.want)
		}
	}
}
