package worker

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// The source is opened once, when the first id is requested.
func TestKeeperIsLazy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, opened := newFake(1), 0
		k, err := Keep(func(context.Context) (Source, error) { opened++; return f.source(), nil }, Config{Workers: 1, Logger: discardLogger()})
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		if s := k.Status(); opened != 0 || s.Phase != phaseIdle || s.Worker != -1 || s.Err != nil || !s.Limit.IsZero() {
			t.Errorf("before the first call: opened %d times, Status() = %+v, want 0 times and an idle status without worker id", opened, s)
		}
		for range 3 {
			if s, err := k.Wait(t.Context()); err != nil || s.Phase != phaseHolding || s.Worker != 0 {
				t.Errorf("Wait() = %+v, %v, want Phase = %v, Worker = 0 and no error", s, err, phaseHolding)
			}
		}
		k.Close()
		if opened != 1 || f.closed != 1 {
			t.Errorf("opened %d times, closed %d times, want opened = 1 and f.closed = 1", opened, f.closed)
		}
		if s, err := k.Wait(t.Context()); s.Phase != phaseClosed || !errors.Is(err, errClosed) {
			t.Errorf("after Close: %+v, %v, want s.Phase = %v and errClosed", s, err, phaseClosed)
		}
	})
}

// Wait waits until the first failure. After it Wait fails at once,
// with the error of the last search and the time of the next one.
func TestWaitFailsAfterTheFirstFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		f.set(fakeFaults{hangs: true})
		k := mustKeep(t, f.source(), Config{Workers: 2})
		began := time.Now()
		s, err := k.Wait(t.Context())
		if took := time.Since(began); err == nil || took != 5*time.Second || s.Phase != phaseSearching || s.Err != err || s.Next.Before(time.Now()) {
			t.Errorf("first search of a registry that hangs: Wait() = %+v, %v after %v, want an error after 5s, which the status shows with the time of the next search", s, err, took)
		}
		for range 1000 { // a minute and a half in which other calls begin and end
			began := time.Now()
			if s, err := k.Wait(t.Context()); err == nil || time.Since(began) > 0 || s.Next.Before(time.Now().Add(-6*time.Second)) {
				t.Fatalf("later search: Wait() = %v after %v, want an error at once", err, time.Since(began))
			}
			time.Sleep(87 * time.Millisecond)
		}
		f.set(fakeFaults{})
		s = k.waitForPhase(phaseHolding)
		if got, err := k.Wait(t.Context()); got != s || err != nil {
			t.Errorf("with the registry back: %+v, %v, want got = %v and no error", got, err, s)
		}

		// The worker id is lost because the registry is away. Wait fails at once until a search has
		// succeeded after the registry's return.
		f.set(fakeFaults{hangs: true})
		k.waitForPhase(phaseSearching)
		began = time.Now()
		s, err = k.Wait(t.Context())
		if e, ok := errors.AsType[*UnavailableError](err); !ok || e.Reason != "lost" || e.Worker != s.Worker || !isNoAnswer(err) || time.Since(began) > 0 {
			t.Errorf("after the loss: Wait() = %v after %v, want an UnavailableError with the reason lost at once", err, time.Since(began))
		}
		time.Sleep(6 * time.Second)
		if s, err = k.Wait(t.Context()); !isNoAnswer(err) || s.Worker < 0 || time.Since(began) > 6*time.Second {
			t.Errorf("with the registry away: Wait() = %+v, %v, want the last worker id and \"no answer\" within 6s", s, err)
		}
		f.set(fakeFaults{})
		k.waitForPhase(phaseHolding)

		// The worker id is lost to another process. The search of a registry that answers takes little time.
		id := k.Status().Worker
		f.set(fakeFaults{delay: 100 * time.Millisecond})
		f.write(id, otherDoc(nowMilli().Add(time.Hour), "shop-2"))
		s = k.waitForPhase(phaseSearching)
		if s.Err != nil || s.Worker != id {
			t.Errorf("lost to another: %+v, want no s.Err and s.Worker = %v", s, id)
		}
		began = time.Now()
		if s, err = k.Wait(t.Context()); err != nil || s.Worker == id || time.Since(began) > time.Second {
			t.Errorf("another worker id: %+v, %v after %v, want s.Worker other than %v, time.Since(began) at most 1s and no error", s, err, time.Since(began), id)
		}
	})
}

// The error of a deadline contains the reason why there is no id yet, and the time when there will be.
func TestWaitEndsWithItsContext(t *testing.T) {
	for _, tt := range []struct {
		name  string
		f     *fakeRegistry
		wants []string
	}{
		{"a new registry", &fakeRegistry{}, []string{"is new or has lost documents", "up to 2000-01-01T00:02:15Z", "leafsql init -new-registry"}},
		{"used ahead of time", func() *fakeRegistry { f := newFake(1); f.write(0, freeDoc(milliTime(946684800000+60_000))); return f }(),
			[]string{"worker id 0", "safe from 2000-01-01T00:01:00Z on", "it was used up to that time"}},
		{"made for who comes", func() *fakeRegistry {
			f := newFake(1)
			f.write(0, Doc{Nonce: spareNonce, HighWater: milliTime(946684800000 + 60_000), Free: true, Registry: "r"})
			return f
		}(), []string{"is new or has lost documents", "up to 2000-01-01T00:01:00Z"}},
		{"a search that hangs", func() *fakeRegistry { f := newFake(1); f.set(fakeFaults{hangs: true}); return f }(), []string{"the search for a worker id is in progress"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Local = time.UTC
				k := mustKeep(t, tt.f.source(), Config{Workers: 1})
				ctx, cancel := context.WithTimeout(t.Context(), 4*time.Second)
				defer cancel()
				began := time.Now()
				_, err := k.Wait(ctx)
				if !errors.Is(err, context.DeadlineExceeded) || time.Since(began) != 4*time.Second {
					t.Fatalf("%v after %v, want context.DeadlineExceeded and time.Since(began) = 4s", err, time.Since(began))
				}
				for _, want := range append(tt.wants, "leafsql: no worker id yet: ") {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v; want %q", err, want)
					}
				}
			})
		})
	}
}

// After an outage in which the worker id was lost, calls do not
// wait for a slot with ids that are not safe yet.
func TestCallsDoNotWaitForAQuarantine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		k := mustHold(t, f.source(), Config{Workers: 1})
		lose(t, f, k)
		f.wipe()
		f.set(fakeFaults{})
		s := k.waitForPhase(phaseWaiting)
		began := time.Now()
		_, err := k.Wait(t.Context())
		if q, ok := errors.AsType[*UnavailableError](err); !ok || q.Reason != "quarantine" || !strings.Contains(q.Error(), "has lost documents") || !q.Until.Equal(s.Start) || time.Since(began) > 0 {
			t.Errorf("Wait() = %v after %v, want an UnavailableError with the reason quarantine at once", err, time.Since(began))
		}
		k.waitForPhase(phaseHolding)
		if waited := time.Since(began); waited < 2*time.Minute {
			t.Errorf("an unknown history was waited out for %v, want at least 2*time.Minute", waited)
		}
	})
}

// The log has a line for each change, and no others.
func TestEachChangeIsLoggedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var j logRecorder
		f := newFake(2)
		cfg := Config{Workers: 2, Logger: j.logger()}
		f.set(fakeFaults{away: true})
		k := mustKeep(t, f.source(), cfg)
		said := func(when string, lines map[string]int) {
			t.Helper()
			synctest.Wait()
			all := 0
			for what, n := range lines {
				all += n
				if got := j.count(what); got != n {
					t.Errorf("%s: %q is in the log %d times, want %d", when, what, got, n)
				}
			}
			if got := j.count("\n"); got != all {
				t.Errorf("%s: %d lines, want %d:\n%s", when, got, all, j.String())
			}
			j.mu.Lock()
			j.text.Reset()
			j.mu.Unlock()
		}
		k.start()
		time.Sleep(10 * time.Minute)
		said("away at the start", map[string]int{"level=WARN msg=\"leafsql: no worker id: registry of worker ids (fake): reading its document: the registry is away; check that it runs and can be reached": 1})
		f.set(fakeFaults{})
		k.waitForPhase(phaseHolding)
		time.Sleep(10 * time.Minute)
		said("held", map[string]int{"level=INFO msg=\"leafsql: worker id acquired\" worker_id=": 1})
		f.set(fakeFaults{away: true})
		time.Sleep(40 * time.Second)
		synctest.Wait()
		if got := j.count(" err=\"the registry is away\"\n"); got != 1 {
			t.Errorf("the cause is the end of %d lines, want 1: the write and the read fail in the same way:\n%s", got, j.String())
		}
		said("away", map[string]int{"level=WARN msg=\"leafsql: the worker id's lease cannot be renewed; ids are issued until it ends\" worker_id=": 1})
		f.set(fakeFaults{})
		time.Sleep(10 * time.Minute)
		said("back", map[string]int{"level=INFO msg=\"leafsql: the worker id's lease is renewed again\"": 1})
		lose(t, f, k)
		time.Sleep(10 * time.Minute)
		said("lost", map[string]int{"lease cannot be renewed": 1, "level=WARN msg=\"leafsql: worker id lost\"": 1,
			"no worker id: registry of worker ids (fake): reading its document: the registry is away; check that it runs and can be reached": 1})
		for i := range 2 {
			f.write(i, otherDoc(nowMilli().Add(150*time.Second), "shop-2"))
		}
		f.set(fakeFaults{})
		time.Sleep(2 * time.Minute)
		said("all taken", map[string]int{"no worker id: all 2 worker ids are held: ": 1})
		k.waitForPhase(phaseHolding)
		said("taken over", map[string]int{"worker id acquired": 1})
		k.Close()
		said("closed", map[string]int{})
	})
}

// A process that waits because its registry is new has the time of its first id in its status and in one
// warning, from its first search on.
func TestNewRegistryIsLoggedWithTheEndOfTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Local = time.UTC
		var j logRecorder
		f := &fakeRegistry{}
		k := mustKeep(t, f.source(), Config{Workers: 1, Logger: j.logger()})
		k.start()
		time.Sleep(5 * time.Second)
		started := time.Now().Add(-5 * time.Second)
		s := k.Status()
		if wait := s.Start.Sub(started); s.Phase != phaseSearching || s.Worker != -1 || wait < 135*time.Second || wait > 136*time.Second {
			t.Errorf("Status() = %+v, want Start about 135 s after the start, and no worker id", s)
		}
		const line = "msg=\"leafsql: the registry of worker ids (fake) is new or has lost documents: "
		until := "until=" + s.Start.Format("2006-01-02T15:04")
		if got := j.String(); j.count("level=WARN "+line) != 1 || !strings.Contains(got, until) || !strings.Contains(got, "leafsql init -new-registry") {
			t.Errorf("log = %s\nwant one warning %q with %s and leafsql init -new-registry", got, line, until)
		}
		held := k.waitForPhase(phaseWaiting)
		if held.Start.Sub(s.Start).Abs() > 2*time.Second || !strings.Contains(held.Reason(), "has lost documents") {
			t.Errorf("Status() with a worker id = %+v, want a Start near %v and the same reason", held, s.Start)
		}
		k.waitForPhase(phaseHolding)
		if got := time.Since(started); got.Round(time.Second) != held.Start.Sub(started).Round(time.Second) {
			t.Errorf("ids were issued after %v, want %v", got, held.Start.Sub(started))
		}
		if n := j.count("level=WARN " + line); n != 1 {
			t.Errorf("the log has %d warnings of the wait, want 1:\n%s", n, j.String())
		}
	})
}

// Opening a source is retried, and its error is part of every error.
func TestOpeningASourceIsRetried(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, opened := newFake(1), 0
		away := errors.New("leafsql: nobody is there")
		k, err := Keep(func(ctx context.Context) (Source, error) {
			if _, ok := ctx.Deadline(); !ok {
				t.Error("the source was opened with a context without deadline, want a deadline")
			}
			if opened++; opened < 5 {
				return Source{}, away
			}
			return f.source(), nil
		}, Config{Workers: 1, Logger: discardLogger()})
		if err != nil {
			t.Fatal(err)
		}
		defer k.Close()
		if _, err := k.Wait(t.Context()); !errors.Is(err, away) {
			t.Error(err)
		}
		began := time.Now()
		k.waitForPhase(phaseHolding)
		if took := time.Since(began); took > 8*time.Second || opened != 5 {
			t.Errorf("opened %d times in %v, want took at most 8s and opened = 5", opened, took)
		}
	})
	synctest.Test(t, func(t *testing.T) {
		k := mustKeep(t, Source{}, Config{})
		if _, err := k.Wait(t.Context()); err == nil || !errorForm.MatchString(err.Error()) {
			t.Errorf("source without slots: Wait() = %v, want an error of the form \"leafsql: …\"", err)
		}
	})
}

// The pauses between failing searches grow. They are seconds at
// first, so that the end of an outage is noticed soon, and long if retrying soon does
// not help.
func TestPausesBetweenSearchesGrow(t *testing.T) {
	for name, tt := range map[string]struct {
		err         error
		least, most int // searches in the second to the fifth minute
	}{
		"away":     {errAway, 60, 480},
		"unusable": {fmt.Errorf("opening: %w", &UnusableError{errors.New("leafsql: a wrong password")}), 4, 9},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var opened []time.Time
				k, err := Keep(func(context.Context) (Source, error) {
					opened = append(opened, time.Now())
					return Source{}, tt.err
				}, Config{Logger: discardLogger()})
				if err != nil {
					t.Fatal(err)
				}
				k.start()
				time.Sleep(5 * time.Minute)
				k.Close()
				n := len(slices.DeleteFunc(opened, func(at time.Time) bool { return time.Since(at) > 4*time.Minute }))
				if n < tt.least || n > tt.most {
					t.Errorf("%d searches in four minutes, want n at least %v and n at most %v", n, tt.least, tt.most)
				}
			})
		})
	}
}

// isNoAnswer reports whether err means that the registry did not answer. It must differ from the error
// of an ended context of the caller.
func isNoAnswer(err error) bool {
	return err != nil && strings.Contains(err.Error(), "no answer within") && !errors.Is(err, context.DeadlineExceeded)
}
