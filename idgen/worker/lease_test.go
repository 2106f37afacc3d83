package worker

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestDoneErrAndClose(t *testing.T) {
	for _, tt := range []struct {
		name string
		end  func(t *testing.T, f *fake, l *Lease)
		is   func(error) bool
	}{
		{"closed", func(t *testing.T, f *fake, l *Lease) {
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}, func(err error) bool { return err == ErrClosed }},
		{"closed while the registry is away", func(t *testing.T, f *fake, l *Lease) {
			f.set(fakeFaults{away: true})
			if err := l.Close(); err != nil {
				t.Error(err)
			}
		}, func(err error) bool { return err == ErrClosed }},
		{"lost, its bound ended", func(t *testing.T, f *fake, l *Lease) {
			lose(t, f, l)
		}, func(err error) bool {
			e, ok := errors.AsType[*LostError](err)
			return ok && e.Owner == "" && errors.Is(err, errAway)
		}},
		{"lost to another", func(t *testing.T, f *fake, l *Lease) {
			f.write(l.Worker(), Doc{Nonce: "other", HW: time.Now().Add(time.Hour).UnixMilli(), Owner: "shop-2"})
			<-l.Done()
		}, func(err error) bool {
			e, ok := errors.AsType[*LostError](err)
			return ok && e.Owner == "shop-2" && e.Cause != nil
		}},
		{"lost to nobody known", func(t *testing.T, f *fake, l *Lease) {
			f.write(l.Worker(), Doc{Nonce: "other", HW: time.Now().Add(time.Hour).UnixMilli()})
			<-l.Done()
		}, func(err error) bool {
			e, ok := errors.AsType[*LostError](err)
			return ok && e.Owner == "an unnamed owner"
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(4)
				l := leased(t, Source{Slots: f}, Config{Workers: 4})
				time.Sleep(25 * time.Second)
				select {
				case <-l.Done():
					t.Error("over before its end")
				default:
				}
				if l.Err() != nil || l.Limit() < l.Now() {
					t.Errorf("before its end: limit %d at %d, %v", l.Limit(), l.Now(), l.Err())
				}
				var lastly int64
				l.Bind(func() int64 { lastly = l.Limit(); return l.Now() })
				tt.end(t, f, l)
				select {
				case <-l.Done():
				default:
					t.Error("not over at its end")
				}
				err := l.Err()
				if !tt.is(err) || l.Limit() > 0 {
					t.Errorf("at its end: limit %d, %v", l.Limit(), err)
				}
				if e, ok := errors.AsType[*LostError](err); ok && e.Worker != l.Worker() {
					t.Errorf("worker id %d lost %d", l.Worker(), e.Worker)
				}
				if lastly > 0 {
					t.Errorf("asked for its last timestamp while the limit was %d", lastly)
				}
				// It stays so.
				time.Sleep(10 * time.Minute)
				first, second := l.Close(), l.Close()
				if first != nil || second != nil || l.Err() != err || l.Limit() > 0 {
					t.Errorf("later: limit %d, %v", l.Limit(), l.Err())
				}
			})
		})
	}
}

func TestBindOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leased(t, Source{Slots: newFake(1)}, Config{Workers: 1})
		if err := l.Bind(l.Now); err != nil {
			t.Fatal(err)
		}
		if err := l.Bind(l.Now); err == nil || !strings.Contains(err.Error(), "worker id 0 already has a generator") {
			t.Errorf("a second Bind: %v", err)
		}
	})
}

// What a lease gives back covers every id issued, and no more than that.
func TestGivenBackWithLast(t *testing.T) {
	for name, bound := range map[string]func(l *Lease) (last func() int64){
		"no generator":        func(l *Lease) func() int64 { return nil },
		"nothing issued":      func(l *Lease) func() int64 { return func() int64 { return l.Start() - 1 } },
		"a nonsense":          func(l *Lease) func() int64 { return func() int64 { return 0 } },
		"issued up to now":    func(l *Lease) func() int64 { return l.Now },
		"issued to the limit": func(l *Lease) func() int64 { limit := l.Limit(); return func() int64 { return limit } },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				l := leased(t, Source{Slots: f}, Config{Workers: 1, Owner: "me"})
				time.Sleep(time.Second)
				held, want := f.doc(0), l.Start()-1
				if last := bound(l); last != nil {
					want = max(want, last())
					l.Bind(last)
				}
				l.Close()
				if got := (Doc{Nonce: held.Nonce, HW: want, Free: true, Owner: "me"}); f.doc(0) != got {
					t.Errorf("given back as %+v; want %+v", f.doc(0), got)
				}
			})
		})
	}
}

// A registry that hangs does not keep an application from ending.
func TestCloseDoesNotHang(t *testing.T) {
	for _, bound := range []time.Duration{6 * time.Second, time.Minute, time.Hour} {
		for _, tt := range []struct {
			name string
			cfg  Config
			held func(context.Context, Holding)
			most time.Duration
		}{
			{"plainly", Config{}, nil, 5 * time.Second},
			{"with local state", Config{Registry: "r"}, nil, 5 * time.Second},
			{"with a console", Config{}, func(ctx context.Context, _ Holding) { <-ctx.Done() }, 7 * time.Second},
		} {
			t.Run(fmt.Sprint(tt.name, ", ", bound), func(t *testing.T) {
				if tt.cfg.Registry != "" {
					tt.cfg.State = t.TempDir()
				}
				synctest.Test(t, func(t *testing.T) {
					f := newFake(1)
					cfg := tt.cfg
					cfg.Workers, cfg.Bound = 1, bound
					l := leased(t, Source{Slots: f, Held: tt.held}, cfg)
					f.set(fakeFaults{hangs: true})
					time.Sleep(bound/6 + 100*time.Millisecond) // a renewal is under way
					began := time.Now()
					closed := make(chan struct{})
					go func() {
						defer close(closed)
						l.Close()
					}()
					<-l.Done()
					if took := time.Since(began); took > 0 {
						t.Errorf("ids could be issued for another %v", took)
					}
					<-closed
					if took := time.Since(began); took > tt.most {
						t.Errorf("took %v", took)
					}
				})
			})
		}
	}
}

func TestSuccessor(t *testing.T) {
	successor := func(t *testing.T, l *Lease) (*Lease, error) {
		return keep(t, func() (*Lease, error) { return l.Successor(t.Context()) })
	}
	refused := func(t *testing.T, l *Lease, when string) {
		t.Helper()
		if next, err := successor(t, l); err == nil || !strings.HasPrefix(err.Error(), fmt.Sprintf("leafsql: no successor of worker id %d: ", l.Worker())) {
			t.Errorf("%s: a successor %v, %v", when, next, err)
		}
	}
	for _, state := range []bool{false, true} {
		t.Run(fmt.Sprintf("local state %v", state), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f, cfg := newFake(4), Config{Workers: 4}
				if state {
					cfg.State, cfg.Registry = t.TempDir(), "r"
				}
				l := leased(t, Source{Slots: f}, cfg)
				refused(t, l, "while it is held")
				limit := l.Limit()
				f.set(fakeFaults{away: true})
				<-l.Done()
				if _, err := successor(t, l); !errors.Is(err, errAway) {
					t.Errorf("while the registry is away: %v", err)
				}
				f.set(fakeFaults{})
				next, err := successor(t, l)
				if err != nil {
					t.Fatal(err)
				}
				if next.Start() <= limit || next.Limit() < next.Now() || next.Workers() != l.Workers() || next.Ahead() != l.Ahead() {
					t.Errorf("it starts at %d, up to %d; the one before could go up to %d", next.Start(), next.Limit(), limit)
				}
				refused(t, l, "after it had one")
				time.Sleep(10 * time.Minute)
				if next.Err() != nil || l.Limit() > 0 {
					t.Errorf("later: %v, the one before up to %d", next.Err(), l.Limit())
				}
				next.Close()
				refused(t, next, "of a closed one")
				refused(t, l, "after the source was closed")

				lost := leased(t, Source{Slots: f}, cfg)
				lose(t, f, lost)
				lost.Close()
				refused(t, lost, "of a lost one that was closed")
			})
		})
	}
}

// A lease has one successor and its source one owner, whatever is called at
// the same time.
func TestSuccessorRaces(t *testing.T) {
	for name, other := range map[string]func(l *Lease) (*Lease, error){
		"another Successor": func(l *Lease) (*Lease, error) { return l.Successor(context.Background()) },
		"Close":             func(l *Lease) (*Lease, error) { return nil, errors.Join(l.Close(), errors.New("closed")) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(4)
				l := leased(t, Source{Slots: f}, Config{Workers: 4})
				lose(t, f, l)
				f.set(fakeFaults{delay: 100 * time.Millisecond})
				var (
					all [2]*Lease
					wg  sync.WaitGroup
				)
				wg.Go(func() { all[0], _ = l.Successor(t.Context()) })
				wg.Go(func() { time.Sleep(50 * time.Millisecond); all[1], _ = other(l) })
				wg.Wait()
				if all[0] != nil && all[1] != nil {
					t.Error("two successors")
				}
				for _, next := range all {
					if next != nil {
						next.Close()
					}
				}
				for i := range 4 {
					if d := f.doc(i); !d.Free && d.Nonce != f.puts[0].doc.Nonce {
						t.Errorf("slot %d stays held: %+v", i, d)
					}
				}
				if f.timesClosed() != 1 {
					t.Errorf("the source was closed %d times", f.timesClosed())
				}
			})
		})
	}
}

func TestBoundIsInRange(t *testing.T) {
	for bound, ok := range map[time.Duration]bool{
		-1: false, 1: false, 6*time.Second - 1: false, 6 * time.Second: true, time.Minute: true, time.Hour: true, time.Hour + 1: false, 0: true,
	} {
		synctest.Test(t, func(t *testing.T) {
			l, err := tryLease(t, Source{Slots: newFake(1)}, Config{Workers: 1, Bound: bound})
			if (err == nil) != ok || err != nil && !strings.Contains(err.Error(), "6s … 1h") {
				t.Errorf("a bound of %v: %v", bound, err)
			}
			if bound == 0 {
				bound = time.Minute
			}
			if err == nil && (l.Limit() != l.Now()+bound.Milliseconds() || l.Ahead() != bound/2) {
				t.Errorf("a bound of %v: up to %v ahead, bursts %v", bound, l.Limit()-l.Now(), l.Ahead())
			}
		})
	}
}

func TestConfigDefaults(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1024)
		l := leased(t, Source{Slots: f}, Config{})
		host, _ := os.Hostname()
		if d := f.doc(l.Worker()); d.Owner != fmt.Sprintf("%s:%d", host, os.Getpid()) || l.Workers() != 1024 {
			t.Errorf("worker id %d of %d, held as %+v", l.Worker(), l.Workers(), d)
		}
		if l.Now() != time.Now().UnixMilli() || l.Start() != l.Now() {
			t.Errorf("starts at %d, now is %d", l.Start(), l.Now())
		}
	})
}

// An unknown history is waited out, which is said once, with the way out; not
// so where the registry is declared new.
func TestUnknownHistory(t *testing.T) {
	const hint = "leafNewRegistry=true declares that nobody is running"
	for _, bound := range []time.Duration{6 * time.Second, time.Minute, time.Hour} {
		for _, fresh := range []bool{false, true} {
			t.Run(fmt.Sprintf("%v, new %v", bound, fresh), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					var j journal
					began := time.Now()
					l := leased(t, Source{Slots: &fake{}}, Config{Workers: 4, Bound: bound, NewRegistry: fresh, Logger: j.logger()})
					waited, want, said := time.Since(began), bound+time.Minute, 1
					if fresh {
						want, said = 500*time.Millisecond, 0 // for other creators
					}
					if waited < want || waited > want+time.Millisecond {
						t.Errorf("waited %v; want %v", waited, want)
					}
					if l.Start() > l.Now() || l.Limit() < l.Now() || l.Limit() > l.Now()+bound.Milliseconds() {
						t.Errorf("%d … %d at %d", l.Start(), l.Limit(), l.Now())
					}
					if n := j.count("waiting before the first id"); n != said || j.count(hint) != said || said > 0 && j.count(fmt.Sprintf("wait=%v", want+time.Millisecond)) != 1 {
						t.Errorf("said %d times: %s", n, &j.text)
					}
				})
			})
		}
	}
}

// Acquire ends with its context wherever it waits, says why, and leaves
// nothing behind.
func TestAcquireEndsWithItsContext(t *testing.T) {
	for _, tt := range []struct {
		name  string
		f     *fake
		wants []string
		free  bool // a slot was taken and is given back
	}{
		{"waiting for the first id", &fake{}, []string{"worker id 0: its ids are safe only in 1m50.001s: ", "; give the start that long"}, true},
		{"the registry is away", &fake{faults: fakeFaults{away: true}}, []string{"the registry is away"}, false},
		{"the registry hangs", &fake{faults: fakeFaults{hangs: true}}, nil, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
				defer cancel()
				began := time.Now()
				l, err := Acquire(ctx, Source{Slots: tt.f}, Config{Workers: 1, Logger: quiet()})
				if err == nil {
					t.Fatalf("worker id %d", l.Worker())
				}
				if took := time.Since(began); took != 10*time.Second {
					t.Errorf("took %v of 10s", took)
				}
				for _, want := range append(tt.wants, "leafsql: ", context.DeadlineExceeded.Error()) {
					if !strings.Contains(err.Error(), want) {
						t.Errorf("%v; want %q", err, want)
					}
				}
				if !errors.Is(err, context.DeadlineExceeded) {
					t.Errorf("%v is no deadline", err)
				}
				// What was taken may be used no sooner than it could have been before.
				d := tt.f.doc(0)
				if tt.free && (!d.Free || d.HW < began.Add(2*time.Minute).UnixMilli()) || !tt.free && d != (Doc{}) {
					t.Errorf("left behind: %+v", d)
				}
			})
		})
	}
}
