// Package leasetest has helpers for tests of the sources of worker ids. The tests that every source must
// pass are in package workertest.
//
//	leasetest.InUse(t, open, cfg)     // the registry was used before
//	k := leasetest.Keep(t, open, cfg) // and a worker id is held
//
// It starts no server.
package leasetest

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// patience is the longest time that a short operation may take on a busy machine.
const patience = 30 * time.Second

// Open opens a source for a Keeper.
type Open = func(context.Context) (worker.Source, error)

// Keep returns a Keeper that holds a worker id and is closed at the end of the test. After that, the worker id can be reused at
// once. Keep retries a search that fails, for example on a busy machine.
func Keep(tb testing.TB, open Open, cfg worker.Config) *worker.Keeper {
	tb.Helper()
	cfg.Issued = time.Now
	k, err := worker.Keep(open, cfg)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { k.Close() })
	if _, err := Wait(tb, k); err != nil {
		tb.Error(err)
	}
	return k
}

// Wait waits for a worker id and retries failed searches, unless a search fails with a
// *worker.UnusableError.
func Wait(tb testing.TB, k *worker.Keeper) (*worker.Status, error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), patience)
	defer cancel()
	for {
		s, err := k.Wait(ctx)
		if _, unusable := errors.AsType[*worker.UnusableError](err); err == nil || s == nil || unusable {
			return s, err
		}
		select {
		case <-s.Changed():
		case <-ctx.Done():
			return s, err
		}
	}
}

// NotWritten reports whether the error of a Put means that certainly nothing was written.
func NotWritten(err error) bool {
	_, ok := errors.AsType[*worker.NotWrittenError](err)
	return ok
}

// InUse prepares a registry that looks used: the documents of all worker ids exist and are free. It retries, because a
// response may be late on a busy machine.
func InUse(tb testing.TB, open Open, cfg worker.Config) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), 4*patience)
	defer cancel()
	for ; ; time.Sleep(100 * time.Millisecond) {
		cfg.NewRegistry = true
		err := worker.Prepare(ctx, open, cfg)
		if err == nil {
			return
		}
		if ctx.Err() != nil {
			tb.Fatalf("slots are not made: %v", err)
		}
	}
}

// Eventually waits until a condition holds.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			tb.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}
