// Package leasetest has helpers that the tests of this module's sources of worker ids
// share. The tests that every source must pass are in package workertest.
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

// patience is how long what takes a moment may take on a busy machine.
const patience = 30 * time.Second

// Open is how a Keeper opens a source.
type Open = func(context.Context) (worker.Source, error)

// Keep gives a Keeper that holds a worker id, and is closed with the test. What it gives back can be used again at once. Searches
// that fail, as on a busy machine, are followed by others.
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

// Wait waits for a worker id, however often a search fails, unless the source says that it can't be used.
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

// NotWritten reports whether the error of a Put says that certainly nothing was written.
func NotWritten(err error) bool {
	_, ok := errors.AsType[*worker.NotWrittenError](err)
	return ok
}

// InUse makes a registry one that was used before: the documents of all worker ids are there, and free. On a busy machine an
// answer may be late.
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

// Eventually waits for what is there in a moment.
func Eventually(tb testing.TB, what string, ok func() bool) {
	tb.Helper()
	for until := time.Now().Add(patience); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(until) {
			tb.Fatalf("not seen within %v: %s", patience, what)
		}
	}
}
