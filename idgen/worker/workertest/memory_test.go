package workertest

import (
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestMemory(t *testing.T) {
	for name, f := range map[string]Faults{
		"Good":   {},
		"Slow":   {Delay: 20 * time.Millisecond},
		"Insert": {Insert: true},
	} {
		t.Run(name, func(t *testing.T) {
			RunInBubble(t, func(testing.TB) Fixture {
				m := &Memory{faults: f}
				return m.Fixture()
			})
		})
	}
}

// TestBroken has registries that are none: the kit must see it.
func TestBroken(t *testing.T) {
	for name, f := range map[string]Faults{
		"AlwaysOK":   {AlwaysOK: true},
		"NoCompare":  {NoCompare: true},
		"LoseWrites": {LoseWrites: true},
	} {
		for _, p := range parts {
			if !slices.Contains([]string{"WrongVersion", "Chain", "OneWinner"}, p.name) {
				continue
			}
			t.Run(name+"/"+p.name, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					m := &Memory{faults: f}
					r := &recorder{T: t}
					done := make(chan struct{})
					go func() {
						defer close(done)
						p.run(r, m.Fixture(), true)
					}()
					<-done
					if !r.failed.Load() {
						t.Error("the kit saw nothing wrong")
					}
				})
			})
		}
	}
}

// recorder is a test whose failure is what is wanted.
type recorder struct {
	*testing.T
	failed atomic.Bool
}

func (r *recorder) Errorf(string, ...any) { r.failed.Store(true) }
func (r *recorder) Error(...any)          { r.failed.Store(true) }
func (r *recorder) FailNow()              { r.failed.Store(true); runtime.Goexit() }
func (r *recorder) Fatalf(string, ...any) { r.FailNow() }
func (r *recorder) Fatal(...any)          { r.FailNow() }
