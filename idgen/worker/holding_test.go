package worker

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// A renewed lease's limit only grows, is never further ahead than the bound,
// and never behind the time, so that what the registry does goes unnoticed.
func TestLimit(t *testing.T) {
	for _, tt := range []struct {
		name   string
		f      *fake
		faults func(second int) fakeFaults
		state  bool
	}{
		{"plainly", newFake(1), func(int) fakeFaults { return fakeFaults{} }, false},
		{"200 ms an answer", newFake(1), func(int) fakeFaults { return fakeFaults{delay: 200 * time.Millisecond} }, false},
		{"4 s an answer", newFake(1), func(int) fakeFaults { return fakeFaults{delay: 4 * time.Second} }, false},
		{"replies are lost", newFake(1), func(int) fakeFaults { return fakeFaults{lose: 3} }, false},
		{"right versions are refused", newFake(1), func(int) fakeFaults { return fakeFaults{deny: 3} }, false},
		{"replies are lost, with local state", newFake(1), func(int) fakeFaults { return fakeFaults{lose: 3} }, true},
		{"refused for 15 s in 97", newFake(1), func(s int) fakeFaults {
			if s%97 < 15 {
				return fakeFaults{deny: 1}
			}
			return fakeFaults{}
		}, false},
		{"away for 30 s in 97", newFake(1), func(s int) fakeFaults { return fakeFaults{away: s%97 < 30} }, false},
		{"hangs for 30 s in 97", newFake(1), func(s int) fakeFaults { return fakeFaults{hangs: s%97 < 30} }, false},
		{"away for 30 s in 97, with local state", newFake(1), func(s int) fakeFaults { return fakeFaults{away: s%97 < 30} }, true},
		{"after an unknown history", &fake{}, func(int) fakeFaults { return fakeFaults{} }, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cfg, ahead := Config{Workers: 1}, time.Minute
				if tt.state {
					cfg.State, cfg.Registry, ahead = t.TempDir(), "r", reserve*time.Millisecond
				}
				l := leased(t, Source{Slots: tt.f}, cfg)
				was := l.Limit()
				for i := range 4 * 15 * 60 { // a quarter of an hour
					if i%4 == 0 {
						tt.f.set(tt.faults(i / 4))
					}
					time.Sleep(250 * time.Millisecond)
					limit, now := l.Limit(), time.Now().UnixMilli()
					switch {
					case limit < was:
						t.Fatalf("after %d s the limit fell by %v", i/4, ms(was-limit))
					case limit > now+ahead.Milliseconds():
						t.Fatalf("after %d s the limit is %v ahead", i/4, ms(limit-now))
					case limit < now || l.Err() != nil:
						t.Fatalf("after %d s the limit is %v behind, %v", i/4, ms(now-limit), l.Err())
					}
					was = limit
				}
				tt.f.set(fakeFaults{})
			})
		})
	}
}

// A lease costs one write a renewal, and a renewal is a sixth of the bound:
// one write per worker and 10 s.
func TestWritesOfALease(t *testing.T) {
	for _, bound := range []time.Duration{6 * time.Second, time.Minute, time.Hour} {
		for _, delay := range []time.Duration{0, 200 * time.Millisecond} {
			for _, state := range []bool{false, true} {
				if state && bound > 6*time.Second {
					continue // it is saved every second: only the disk would be at work
				}
				t.Run(fmt.Sprintf("%v, %v an answer, local state %v", bound, delay, state), func(t *testing.T) {
					synctest.Test(t, func(t *testing.T) {
						cfg := Config{Workers: 1, Bound: bound}
						if state {
							cfg.State, cfg.Registry = t.TempDir(), "r"
						}
						f := newFake(1)
						f.set(fakeFaults{delay: delay})
						l := leased(t, Source{Slots: f}, cfg)
						began, was := time.Now().Add(1), l.Limit() // after the take
						time.Sleep(60*bound + bound/12)            // an hour, for the usual bound
						puts := f.since(began, func(int) bool { return true })
						if len(puts) != 360 {
							t.Errorf("%d writes in 360 sixths of the bound", len(puts))
						}
						for i, p := range puts {
							if p.result != OK || p.doc.Free || i > 0 && p.at.Sub(puts[i-1].at) != bound/6 {
								t.Fatalf("write %d: %+v, %v after the one before", i, p, p.at.Sub(puts[max(i, 1)-1].at))
							}
							if hw := p.at.Add(bound).UnixMilli(); p.doc.HW != hw {
								t.Fatalf("write %d: hw is %v off now+%v", i, ms(p.doc.HW-hw), bound)
							}
						}
						if l.Limit() <= was {
							t.Error("no renewal raised the limit")
						}
						end := time.Now()
						l.Close()
						if puts := f.since(end, func(int) bool { return true }); len(puts) != 1 || !puts[0].doc.Free {
							t.Errorf("writes to give it back: %+v", puts)
						}
					})
				})
			}
		}
	}
}

// Spare documents are written once, soon after the start, and never by a
// source that names its worker ids.
func TestWritesOfSpares(t *testing.T) {
	others := func(f *fake, l *Lease, from time.Time) []written {
		return f.since(from, func(slot int) bool { return slot != l.Worker() })
	}
	for name, tt := range map[string]struct {
		f           *fake
		least, most int // slots written, besides the lease's own
	}{
		"an empty registry":  {&fake{}, 256, 272},
		"documents ready":    {newFake(1024), 0, 0},
		"few documents":      {newFake(8), 248, 272},
		"documents but five": {newFake(1019), 0, 5},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				l := leased(t, Source{Slots: tt.f}, Config{NewRegistry: true})
				time.Sleep(3 * time.Hour)
				puts := others(tt.f, l, began)
				slots := map[int]int{}
				for _, p := range puts {
					slots[p.slot]++
					if !p.doc.Free {
						t.Errorf("a spare document that is held: %+v", p)
					}
					// Two writes, of which the second says nothing that an unknown owner could contradict.
					if d := p.doc; !d.IsInitial() && d.HW < p.at.Add(2*time.Minute).UnixMilli() {
						t.Errorf("a spare document that is free too soon: %+v", p)
					}
				}
				if len(slots) < tt.least || len(slots) > tt.most || len(puts) > 2*len(slots) {
					t.Errorf("%d writes for %d slots; want %d … %d slots", len(puts), len(slots), tt.least, tt.most)
				}
				if late := others(tt.f, l, began.Add(5*time.Minute)); len(late) > 0 {
					t.Errorf("%d writes of spares after 5 minutes, the first %+v", len(late), late[0])
				}
				free := 0
				for i := range 1024 {
					if d := tt.f.doc(i); d.Free && !d.IsInitial() {
						free++
					}
				}
				if free < 256 {
					t.Errorf("%d free documents are ready", free)
				}
			})
		})
	}
	synctest.Test(t, func(t *testing.T) {
		f, all := &fake{}, []int{0, 1, 2}
		workers := func(context.Context) ([]int, error) { return all, nil }
		l := leased(t, Source{Slots: f, Workers: workers}, Config{NewRegistry: true})
		began := time.Now().Add(1) // after the take
		time.Sleep(time.Hour)
		if puts := others(f, l, began); len(puts) > 0 {
			t.Errorf("%d writes of spares", len(puts))
		}
	})
}

// The registry may be away for most of the bound, from any moment on.
func TestAwayIsNotNoticed(t *testing.T) {
	for phase := time.Duration(0); phase < 10*time.Second; phase += 1700 * time.Millisecond {
		for _, away := range []fakeFaults{{away: true}, {hangs: true}, {deny: 1}} {
			t.Run(fmt.Sprintf("%+v at %v", away, phase), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f := newFake(1)
					l := leased(t, Source{Slots: f}, Config{Workers: 1})
					time.Sleep(time.Minute + phase)
					f.set(away)
					for i := range 300 * 10 {
						if i == 300 {
							f.set(fakeFaults{})
						}
						time.Sleep(100 * time.Millisecond)
						if l.Err() != nil || l.Limit() < l.Now() {
							t.Fatalf("%v after it went: limit %d at %d, %v", time.Duration(i)*100*time.Millisecond, l.Limit(), l.Now(), l.Err())
						}
					}
				})
			})
		}
	}
}

// Away for longer than the bound, the lease is lost when that ends, and not
// before.
func TestAwayTooLong(t *testing.T) {
	for _, tt := range []struct {
		faults fakeFaults
		notice time.Duration // how long after its bound the end is told: ids are not issued then
	}{
		{fakeFaults{away: true}, 1500 * time.Millisecond},
		{fakeFaults{hangs: true}, 11500 * time.Millisecond},
		{fakeFaults{deny: 1}, 1500 * time.Millisecond},
		{fakeFaults{delay: 5200 * time.Millisecond}, 12 * time.Second}, // an OK later than D is none
	} {
		for _, state := range []bool{false, true} {
			t.Run(fmt.Sprintf("%+v, local state %v", tt.faults, state), func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					f, cfg := newFake(2), Config{Workers: 2}
					if state {
						cfg.State, cfg.Registry = t.TempDir(), "r"
					}
					l := leased(t, Source{Slots: f}, cfg)
					time.Sleep(63 * time.Second) // the last renewal was 3 s ago
					bound := time.Now().Add(57 * time.Second)
					f.set(tt.faults)
					for l.Err() == nil {
						if now := time.Now(); now.Before(bound) && l.Limit() < now.UnixMilli() {
							t.Fatalf("%v before its bound the limit is %d at %d", bound.Sub(now), l.Limit(), now.UnixMilli())
						}
						if l.Limit() > bound.UnixMilli() {
							t.Fatalf("the limit is %v beyond the bound", ms(l.Limit()-bound.UnixMilli()))
						}
						time.Sleep(100 * time.Millisecond)
					}
					if late := time.Since(bound); late <= 0 || late > tt.notice+100*time.Millisecond {
						t.Errorf("told %v after its bound", late)
					}
					lost, ok := errors.AsType[*LostError](l.Err())
					if !ok || lost.Worker != l.Worker() || lost.Owner != "" || lost.Cause == nil || l.Limit() > 0 {
						t.Errorf("limit %d, %v", l.Limit(), l.Err())
					}
					time.Sleep(time.Until(bound.Add(33 * time.Second))) // 90 s in all
					f.set(fakeFaults{})
					began := time.Now()
					next, err := keep(t, func() (*Lease, error) { return l.Successor(t.Context()) })
					if err != nil || next.Limit() < next.Now() || next.Start() <= bound.UnixMilli() {
						t.Fatalf("a successor: %v", err)
					}
					if took := time.Since(began); took > 3*time.Second {
						t.Errorf("a successor took %v", took)
					}
				})
			})
		}
	}
}

// slowDisk is local state whose removal takes its time.
type slowDisk struct {
	store
	removing bool
	mixed    bool // saved while it was being removed, which may remove what was saved
}

func (d *slowDisk) save(r record) error {
	d.mixed = d.mixed || d.removing
	return d.store.save(r)
}

func (d *slowDisk) remove() error {
	d.removing = true
	defer func() { d.removing = false }()
	time.Sleep(time.Second)
	return d.store.remove()
}

// A lost lease removes its local state, and not that of its successor.
func TestStateOfASuccessor(t *testing.T) {
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		f := newFake(2)
		c, err := newChain(Source{Slots: f}, Config{Workers: 2, State: dir, Registry: "r", Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		disk := &slowDisk{store: c.engine.state}
		c.engine.state = disk
		l, err := keep(t, func() (*Lease, error) { return c.take(t.Context(), nil) })
		if err != nil {
			t.Fatal(err)
		}
		f.write(l.Worker(), Doc{Nonce: "other", HW: time.Now().Add(time.Hour).UnixMilli()})
		<-l.Done()
		if left := files(t, dir); len(left) != 1 {
			t.Errorf("a lost lease leaves %v; want the lock alone", left)
		}
		if _, err := keep(t, func() (*Lease, error) { return l.Successor(t.Context()) }); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		if disk.mixed {
			t.Error("the successor's record was saved while the one before was being removed")
		}
	})
}

// paused is a host on which the process stops before one of the clock's readings.
type paused struct {
	host
	after atomic.Int64 // readings to come before that
}

func (p *paused) wall() int64 {
	if p.after.Add(-1) == 0 {
		time.Sleep(100 * time.Second)
	}
	return p.host.wall()
}

// A process that pauses past its bound has lost the lease, wherever in a
// renewal that was: the put that follows may find the registry wiped.
func TestPausedWhileRenewing(t *testing.T) {
	for reading := range int64(8) {
		t.Run(fmt.Sprint("before reading ", reading+1), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := newFake(1)
				c, err := newChain(Source{Slots: f}, Config{Workers: 1, Logger: quiet()})
				if err != nil {
					t.Fatal(err)
				}
				p := &paused{host: c.engine.host}
				c.engine.host = p
				l, err := keep(t, func() (*Lease, error) { return c.take(t.Context(), nil) })
				if err != nil {
					t.Fatal(err)
				}
				time.Sleep(25 * time.Second)
				p.after.Store(reading + 1)
				time.Sleep(6 * time.Second)
				went := l.Limit()
				time.Sleep(2 * time.Minute)
				if _, lost := errors.AsType[*LostError](l.Err()); !lost || went > time.Now().Add(-time.Minute).UnixMilli() {
					t.Errorf("limit %d at %d, %v; it was %d when the process stopped", l.Limit(), l.Now(), l.Err(), went)
				}
			})
		})
	}
}

// TestClone: a virtual machine's snapshot is started beside it. Both have the
// nonce; the first to see what it never wrote ends.
func TestClone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, err := newChain(Source{Slots: newFake(4)}, Config{Workers: 4, Logger: quiet()})
		if err != nil {
			t.Fatal(err)
		}
		h, err := c.engine.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		clone := &holding{engine: h.engine, slot: h.slot, start: h.start, doc: h.doc, sure: h.sure, ver: h.ver, sent: h.sent, bound: h.bound}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		over := make(chan error, 2)
		go func() { over <- h.keep(ctx) }()
		time.Sleep(3 * time.Second)
		go func() { over <- clone.keep(ctx) }()
		time.Sleep(15 * time.Second)
		select {
		case err := <-over:
			if _, ok := errors.AsType[*LostError](err); !ok || !errors.Is(err, errClone) {
				t.Errorf("lost by %v", err)
			}
		default:
			t.Error("both go on with one worker id")
		}
	})
}

// servesRefused refuses one put and serves what it held until the next is done.
type servesRefused struct {
	*fake
	n    int
	doc  Doc
	mu   sync.Mutex
	puts int
}

func (s *servesRefused) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, Result, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.puts++; s.puts == s.n {
		s.doc = d
		return "", Refused, nil
	}
	v, res, err := s.fake.Put(ctx, slot, d, expected)
	if res == OK {
		s.doc = Doc{}
	}
	return v, res, err
}

func (s *servesRefused) Get(ctx context.Context, slot int) (Doc, Version, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doc.Nonce != "" {
		return s.doc, "of what was refused", nil
	}
	return s.fake.Get(ctx, slot)
}

// TestRefusedAndServed: a renewal is refused for no reason and read all the
// same; the lease goes on from what was confirmed.
func TestRefusedAndServed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := leased(t, Source{Slots: &servesRefused{fake: newFake(1), n: 3}}, Config{Workers: 1})
		time.Sleep(2 * time.Minute)
		if l.Err() != nil || l.Limit() < l.Now()+40_000 {
			t.Errorf("limit now+%d ms, %v", l.Limit()-l.Now(), l.Err())
		}
	})
}

// TestCloneGivesNothingBack: who ends must not free what its copy goes on with.
func TestCloneGivesNothingBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(1)
		l := leased(t, Source{Slots: f}, Config{Workers: 1})
		d, v, _ := f.memory.Get(t.Context(), 0)
		d.HW += 5000 // the copy's renewal
		f.memory.Put(t.Context(), 0, d, v)
		l.Close()
		if got := f.doc(0); got.Free {
			t.Errorf("freed: %+v", got)
		}
	})
}
