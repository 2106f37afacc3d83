package worker

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/leafsql/leafsql/internal/part"
)

// Config says how a worker id is leased. The zero value is good for a layout
// with 10 worker bits.
type Config struct {
	// Workers is how many worker ids the layout has: 0 … Workers-1 are leased.
	// 0 means 1024.
	Workers int

	// Lease is how far beyond now a confirmed renewal carries the bound, and so
	// how long the registry may be away: 6 s … 1 h, 0 means 60 s. It is renewed
	// every sixth of it. All processes of a registry use the same; another is
	// refused. static, env and ordinal have 3 s of their own.
	Lease time.Duration

	// Layout says how ids are made of the worker id. All processes of a
	// registry use the same; another is refused. snowflake.New sets it.
	Layout string

	// NewRegistry declares that the registry is new and nobody is running, so
	// that this start need not wait out unknown history, for one and a quarter
	// leases plus 60 s: 135 s by default. It is for a first roll-out and for
	// tests, not to be left on.
	NewRegistry bool

	// AnyClock has a worker id taken though this machine's clock is more than a
	// minute ahead of the registry's, which is an UnusableError otherwise. It is
	// for a registry whose own clock is wrong and can't be set right now. With a
	// clock of one's own that is ahead, worker ids are taken from those who hold
	// them, and blocked until that time has come.
	AnyClock bool

	// State is a directory for static, env and ordinal, for which it is the
	// registry. It must be on a local disk that is never copied, rolled back or
	// shared. Other sources keep nothing there; "" means none.
	State string

	// Owner is written into the slot for people to read; "" means host and
	// process id.
	Owner string

	// Check, if set, is asked before every search: while it gives an error no
	// worker id is taken. snowflake.New sets it to hold the layout's years
	// against the clock.
	Check func(now time.Time) error

	// Issued, if set, gives the latest time that was put into an id or is about
	// to be, of whatever worker id. Nil means: all that was allowed. It is asked
	// when the worker id is given back. snowflake.New sets it.
	Issued func() time.Time

	// Logger gets what happens in the background; nil means slog.Default().
	Logger *slog.Logger

	host    host    // nil: this machine; the simulation has its own
	lengths lengths // zero: those that follow from Lease
}

// complete fills the defaults in.
func (c *Config) complete() error {
	c.Workers = cmp.Or(c.Workers, 1024)
	c.Lease = cmp.Or(c.Lease, time.Minute)
	if c.Workers < 0 {
		return fmt.Errorf("leafsql: leases of %d worker ids: must be 1 or more; 0 means 1024", c.Workers)
	}
	if c.Lease < 6*time.Second || c.Lease > time.Hour {
		return fmt.Errorf("leafsql: a lease of %v: out of range; choose 6s … 1h", c.Lease)
	}
	if c.Owner == "" {
		name, _ := os.Hostname()
		c.Owner = fmt.Sprintf("%s:%d", name, os.Getpid())
	}
	if c.Check == nil {
		c.Check = func(time.Time) error { return nil }
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.lengths = cmp.Or(c.lengths, lengthsFor(c.Lease))
	c.host = cmp.Or[host](c.host, machine{began: time.Now()})
	return nil
}

// The phases of a Keeper, as Status.Phase says them.
const (
	phaseIdle      = "idle"
	phaseSearching = "searching"
	phaseWaiting   = "waiting"
	phaseHolding   = "holding"
	phaseClosed    = "closed"
)

// Status is what a Keeper knows at one moment. It never changes; the Keeper
// publishes another one.
//
// Whoever issues ids takes a time from Start to Limit, marks it where
// Config.Issued finds it, and asks for the status again: the id is good only if
// the status that is there by then allows it.
type Status struct {
	// Phase is what the Keeper does, one of these:
	//
	//	"idle"       nothing: nobody has wanted an id yet
	//	"searching"  no worker id is held; Err says why, once a search has failed
	//	"waiting"    one is held, and its ids are safe from Start on
	//	"holding"    ids may be issued with times from Start to Limit
	//	"closed"     nothing any more: the worker id was given back
	Phase string

	Worker   int       // the worker id held, or held last; -1: none yet
	Owner    string    // as it is written into the slot
	Registry string    // where worker ids come from, for people; "" until that was opened
	Since    time.Time // when the worker id was taken
	Start    time.Time // the first time that may go into an id
	Limit    time.Time // the last; zero while none may

	// Ahead is how far beyond the Keeper's time a burst should go, so that it
	// does not run into Limit, which rises in steps.
	Ahead time.Duration

	// Err is what the last search found or why the last renewal failed; nil
	// while nothing has failed since the start, or since a worker id was lost.
	Err  error
	Next time.Time // when the next search or renewal is

	// ClockOffset is how far this machine's clock is ahead of the registry's, as
	// of the last look; 0 where the registry shows none.
	ClockOffset time.Duration

	quarantine error         // why Phase is "waiting"
	changed    chan struct{} // closed when another status is there
}

// Changed is closed when the Keeper has published another status.
func (s *Status) Changed() <-chan struct{} { return s.changed }

// Reason says why no id may be issued.
func (s *Status) Reason() string {
	switch {
	case s.Err != nil && s.Phase == phaseSearching:
		return fmt.Sprintf("%s (the next search is at %s)", part.Text(s.Err), s.Next.Format(time.TimeOnly))
	case s.Err != nil:
		return part.Text(s.Err)
	case s.Phase == phaseWaiting:
		return part.Text(s.quarantine)
	}
	return "the search for a worker id goes on"
}

// tick is the unit of timestamps in ids.
const tick = time.Millisecond

// lengths are the protocol's.
type lengths struct {
	lease    time.Duration // how far a renewal carries the bound beyond now
	renew    time.Duration // from one renewal to the next
	grace    time.Duration // an expired slot is left to its owner this long; where it is below the skew, nothing is put back
	skew     time.Duration // at least the difference of two machines' clocks plus the life of a message
	call     time.Duration // what one call to the registry may take
	courtesy time.Duration // how long a process that starts leaves slots of unknown history alone, for holders to put theirs back
	ahead    time.Duration // how far beyond now a lease is to be used up in a burst
	pause    time.Duration // between tries, at least; others are multiples of it
}

// lengthsFor gives those of a registry on the network.
func lengthsFor(lease time.Duration) lengths {
	return lengths{lease: lease, renew: lease / 6, grace: 2 * lease, skew: time.Minute, call: lease / 12, courtesy: lease/6 + lease/12, ahead: lease / 2, pause: 250 * time.Millisecond}
}

// localLengths are for a registry on the same machine, held under a lock of the
// operating system: one clock, no messages, and a write takes milliseconds.
var localLengths = lengths{lease: 3 * time.Second, renew: time.Second, call: time.Second, ahead: 1500 * time.Millisecond, pause: 250 * time.Millisecond}

// jitter is a random length, lo … hi.
func jitter(h host, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(h.random()%uint64(hi-lo+1)).Truncate(tick)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func earliest(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }
