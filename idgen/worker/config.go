package worker

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

// Config configures the lease of a worker id. The zero value suits a layout
// with 10 worker bits.
type Config struct {
	// Workers is the number of worker ids: 0 … Workers-1 are leased.
	// 0 means 1024.
	Workers int

	// Lease is the time for which a renewal confirms the worker id, 6 s … 1 h; 0 means 60 s.
	// While the registry does not answer, ids are issued for this time. The worker id is renewed
	// after a sixth of it, or up to a quarter of that earlier. All processes of a registry must use the same Lease;
	// a different one is refused. static, env and ordinal ignore it and use 3 s.
	Lease time.Duration

	// Layout names the layout of the ids. All processes of a registry must use the
	// same layout; a different one is refused. snowflake.New sets it.
	Layout string

	// NewRegistry declares that the registry is new and that no process is running. Without it, the
	// first id is delayed until unknown leases have ended: for 60 s plus 1.25 times
	// the lease, which is 135 s by default. It is for a first roll-out and for
	// tests, and must not stay set.
	NewRegistry bool

	// AnyClock allows a worker id to be taken if this machine's clock is more than a
	// minute ahead of the registry's. Without it, the search fails with an UnusableError. It is
	// for a registry whose own clock is wrong and can't be set now. If this
	// machine's clock is wrong instead, the process takes worker ids that others hold, and
	// these worker ids are blocked until the other clocks reach its time.
	AnyClock bool

	// State is the directory that static, env and ordinal use as their registry; "" means none. It must be on a
	// local disk that is never copied, rolled back or shared. Other sources ignore it.
	State string

	// Owner is written into the worker id's document, for people; "" means host and
	// process id.
	Owner string

	// Check, if set, is called before every search. No worker id is taken while it returns an
	// error. snowflake.New sets it to compare the clock with the layout's years.
	Check func(now time.Time) error

	// Issued, if set, returns the latest time in the ids that were issued or are being issued,
	// with any worker id. It is called when the worker id is released. If it is nil, all times
	// that were allowed count as issued. snowflake.New sets it.
	Issued func() time.Time

	// Logger logs background events; nil means slog.Default().
	Logger *slog.Logger

	host   host   // nil: this machine; the simulation sets its own
	timing timing // zero: derived from Lease
}

// complete sets the defaults, or returns an error for a value out of range.
func (c *Config) complete() error {
	c.Workers = cmp.Or(c.Workers, 1024)
	c.Lease = cmp.Or(c.Lease, time.Minute)
	if c.Workers < 0 {
		return fmt.Errorf("leafsql: Workers is %d: it must be 1 or more; 0 means 1024", c.Workers)
	}
	if c.Lease < 6*time.Second || c.Lease > time.Hour {
		return fmt.Errorf("leafsql: Lease is %v: it is out of range; choose 6s … 1h", c.Lease)
	}
	if c.Owner == "" {
		name, _ := os.Hostname()
		c.Owner = fmt.Sprintf("%s:%d", name, os.Getpid())
	}
	if c.Check == nil {
		c.Check = func(time.Time) error { return nil }
	}
	c.Logger = cmp.Or(c.Logger, slog.Default())
	c.timing = cmp.Or(c.timing, timingFor(c.Lease))
	c.host = cmp.Or[host](c.host, machine{began: time.Now()})
	return nil
}

// The values of Status.Phase.
const (
	phaseIdle      = "idle"
	phaseSearching = "searching"
	phaseWaiting   = "waiting"
	phaseHolding   = "holding"
	phaseClosed    = "closed"
)

// Status is a snapshot of a Keeper's state. It never changes: the Keeper
// publishes a new one instead.
//
// A generator chooses a time from Start to Limit, records it where
// Config.Issued finds it, and then reads the status again: the id is valid only if
// this later status allows its time.
type Status struct {
	// Phase is one of these:
	//
	//	"idle"       no id has been requested yet
	//	"searching"  no worker id is held; after a failed search Err is the cause;
	//	             a Start in the future is when ids will probably be issued
	//	"waiting"    a worker id is held; its ids are safe from Start on
	//	"holding"    ids may be issued with times from Start to Limit
	//	"closed"     the Keeper is closed; it holds no worker id
	Phase string

	Worker   int       // the worker id held, or held last; -1: none yet
	Owner    string    // the owner in the worker id's document: Config.Owner, or host and process id
	Registry string    // name of the registry, for people; "" until it was opened
	Since    time.Time // when the worker id was taken
	Start    time.Time // the first time that may go into an id; zero if unknown
	Limit    time.Time // the last time that may go into an id; zero: no id may be issued

	// Ahead is how far a burst may run ahead of the Keeper's time without reaching
	// Limit, which rises in steps.
	Ahead time.Duration

	// Err is the error of the last search or renewal that failed. It is nil before the first
	// failure since the start or the loss of a worker id, and after the next success.
	Err  error
	Next time.Time // time of the next search or renewal

	// ClockOffset is how far this machine's clock was ahead of the registry's at the
	// last comparison; 0 if the registry has no clock.
	ClockOffset time.Duration

	quarantine error         // reason of a Start in the future; nil if there was none
	changed    chan struct{} // closed when the next status is published
}

// Changed returns a channel that is closed when the Keeper has published the next status.
func (s *Status) Changed() <-chan struct{} { return s.changed }

// Reason returns why no id may be issued.
func (s *Status) Reason() string {
	switch {
	case s.Err != nil && s.Phase == phaseSearching:
		return fmt.Sprintf("%s (the next search is at %s)", errprefix.TrimText(s.Err), s.Next.Format(time.TimeOnly))
	case s.Err != nil:
		return errprefix.TrimText(s.Err)
	case s.quarantine != nil:
		return errprefix.TrimText(s.quarantine)
	}
	return "the search for a worker id is in progress"
}

// tick is the unit of timestamps in ids.
const tick = time.Millisecond

// timing holds the durations of the protocol.
type timing struct {
	lease       time.Duration // time from a renewal to the end of the lease that it confirms
	renewEvery  time.Duration // longest time from one renewal to the next
	renewSpread time.Duration // a renewal is up to renewSpread earlier
	grace       time.Duration // time after the end of a lease during which its slot is left to its owner; if it is shorter than skew, lost documents are not put back
	skew        time.Duration // upper limit of the difference of two machines' clocks plus the life of a message
	callTimeout time.Duration // timeout of one call to the registry
	restoreWait time.Duration // time for which a starting process takes no slot of unknown history, so that holders can put back lost documents
	maxAhead    time.Duration // how far a burst may run ahead of the clock
	minPause    time.Duration // shortest pause between attempts; longer pauses are multiples of it
}

// timingFor returns the durations for a registry on the network.
func timingFor(lease time.Duration) timing {
	return timing{lease: lease, renewEvery: lease / 6, renewSpread: lease / 24, grace: 2 * lease, skew: time.Minute, callTimeout: lease / 12, restoreWait: lease/6 + lease/12, maxAhead: lease / 2, minPause: 250 * time.Millisecond}
}

// localTiming holds the durations for a registry on the same machine that is protected by a lock of the
// operating system: there is one clock, there are no messages, and a write takes milliseconds.
var localTiming = timing{lease: 3 * time.Second, renewEvery: time.Second, renewSpread: time.Second / 4, callTimeout: time.Second, maxAhead: 1500 * time.Millisecond, minPause: 250 * time.Millisecond}

// jitter returns a random duration, lo … hi.
func jitter(h host, lo, hi time.Duration) time.Duration {
	return lo + time.Duration(h.random()%uint64(hi-lo+1)).Truncate(tick)
}

func latest(times ...time.Time) time.Time { return slices.MaxFunc(times, time.Time.Compare) }

func earliest(times ...time.Time) time.Time { return slices.MinFunc(times, time.Time.Compare) }
