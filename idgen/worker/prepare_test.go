package worker

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestPrepareChecksTermsAndContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeRegistry{}
		open := func(context.Context) (Source, error) { return f.source(), nil }
		cfg := Config{Workers: 100, Layout: "l", NewRegistry: true, Logger: discardLogger()}
		for range 2 { // the second call finds all documents
			if err := Prepare(t.Context(), open, cfg); err != nil {
				t.Fatal(err)
			}
		}
		cfg.NewRegistry = false
		if k := mustHold(t, f.source(), cfg); k.Status().Start.Sub(k.Status().Since) > time.Second {
			t.Errorf("k.Status() = %+v, want k.Status().Start.Sub(k.Status().Since) at most 1s", k.Status())
		}
		cfg.Layout = "other"
		if _, ok := errors.AsType[*UnusableError](Prepare(t.Context(), open, cfg)); !ok {
			t.Error("Prepare() with other terms did not fail with an UnusableError")
		}
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := Prepare(ctx, open, Config{Layout: "l", Workers: 200}); err == nil {
			t.Error("Prepare() with an ended context = <nil>, want an error")
		}
	})
}

// hookedRegistry is a registry with a hook before each put.
type hookedRegistry struct {
	*fakeRegistry
	before func(ctx context.Context, slot int, d Doc) error
}

func (m hookedRegistry) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, bool, error) {
	if err := m.before(ctx, slot, d); err != nil {
		return "", false, err
	}
	return m.fakeRegistry.Put(ctx, slot, d, expected)
}

// TestWipedRegistryIsPreparedAgain: a registry that is wiped during Prepare is prepared again, and no longer counts as declared new.
func TestWipedRegistryIsPreparedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, batches := &fakeRegistry{}, 0
		m := hookedRegistry{fakeRegistry: f, before: func(_ context.Context, slot int, d Doc) error {
			if slot == RegistrySlot && d.Registry != "" {
				if batches++; batches == 2 {
					f.wipe()
				}
			}
			return nil
		}}
		open := func(context.Context) (Source, error) { return Source{Slots: m}, nil }
		if err := Prepare(t.Context(), open, Config{Workers: 3 * prepareBatch, NewRegistry: true, Logger: discardLogger()}); err != nil {
			t.Fatal(err)
		}
		for slot := range 3 * prepareBatch {
			if d := f.doc(slot); d.Nonce != spareNonce || d.HighWater.Before(nowMilli().Add(2*time.Minute)) {
				t.Errorf("slot %d = %+v, want a spare that is free in 2m0s or later", slot, d)
			}
		}
	})
}

// TestPrepareFailsSoonIfDenied: for a registry that refuses writes Prepare returns an error soon, without thousands of attempts.
func TestPrepareFailsSoonIfDenied(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, tries := newFakeOf(0, Config{}), 0
		m := hookedRegistry{fakeRegistry: f, before: func(_ context.Context, slot int, d Doc) error {
			if slot == RegistrySlot {
				tries++
				return &NotWrittenError{Err: errors.New("leafsql: denied")}
			}
			return nil
		}}
		open := func(context.Context) (Source, error) { return Source{Slots: m}, nil }
		err := Prepare(t.Context(), open, Config{Workers: 4, Logger: discardLogger()})
		if err == nil || !strings.Contains(err.Error(), "denied") || tries > 30 {
			t.Errorf("%v after %d tries, want an error with \"denied\" and tries at most 30", err, tries)
		}
	})
}
