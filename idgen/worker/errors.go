package worker

import (
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/internal/part"
)

// ErrClosed is the error of a Keeper that was closed.
var ErrClosed = errors.New("leafsql: the worker id was given back; open the pool or the generator again")

// ErrInUse says that another process, or another pool of this one, uses the
// same fixed worker id or local state.
var ErrInUse = errors.New("in use already")

var (
	errContended   = errors.New("another process was there at the same time")
	errUnconfirmed = errors.New("the take is not confirmed yet")
	errVoid        = errors.New("the registry may not be the one that was read")
	errClone       = errors.New("a copy of this process is running, with its memory")
)

// awayError is the end of a search in which the registry did not answer at all.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

// permanent errors of a source are those that trying again soon would not
// change: a wrong password, a server that can't be a registry. A Keeper tries
// again once a minute then.
type permanent interface {
	error
	Permanent() bool
}

// TermsError says that the registry is used with another lease or layout than
// this process's. With two of them worker ids would not be safe.
type TermsError struct {
	Registry     string // its name
	Theirs, Ours string
}

func (e *TermsError) Error() string {
	return fmt.Sprintf("leafsql: the registry of worker ids%s is used with %q, this process has %q; give all processes the same leafLease and leafSnowflake, or this one a registry of its own",
		inParentheses(e.Registry), e.Theirs, e.Ours)
}

// Permanent says that trying again soon does not help.
func (e *TermsError) Permanent() bool { return true }

// TakenError says that every worker id is held by somebody.
type TakenError struct {
	Of     int       // how many there are
	Worker int       // the one whose bound ends first
	Owner  string    // who holds that one, as its document says
	Until  time.Time // when that one may be taken over, unless it is renewed
}

func (e *TakenError) Error() string {
	if e.Of == 1 {
		return fmt.Sprintf("leafsql: worker id %d is held by %s; stop that process, or wait until %s if it is gone",
			e.Worker, owner(e.Owner), e.Until.Format(time.RFC3339))
	}
	return fmt.Sprintf("leafsql: all %d worker ids are held: the oldest, %d of %s, is free at %s unless renewed; stop processes that need none, or use a layout with more worker bits",
		e.Of, e.Worker, owner(e.Owner), e.Until.Format(time.RFC3339))
}

// ClockError says that the worker id was used with a clock far ahead of this
// machine's.
type ClockError struct {
	Worker int
	Owner  string        // who used it, as its document says
	Behind time.Duration // how far this machine's clock is behind what was used
}

func (e *ClockError) Error() string {
	return fmt.Sprintf("leafsql: worker id %d was used by %s up to %v ahead of this machine's clock; set the clock right, or wait that long",
		e.Worker, owner(e.Owner), e.Behind.Round(time.Millisecond))
}

// LostError is the end of a lease that could not be kept. Another worker id is
// searched then.
type LostError struct {
	Worker int
	Owner  string // who holds the worker id now; "" if the bound simply ended
	Cause  error  // why it could not be renewed; may be nil
}

func (e *LostError) Error() string {
	why := "its bound ended before a renewal was confirmed"
	if e.Owner != "" {
		why = fmt.Sprintf("it is held by %s now", e.Owner)
	}
	if e.Cause != nil {
		why += ": " + part.Text(e.Cause)
	}
	return fmt.Sprintf("leafsql: worker id %d was lost: %s; another one is searched", e.Worker, why)
}

func (e *LostError) Unwrap() error { return e.Cause }

// QuarantineError says that a worker id is held and no id can be issued yet.
type QuarantineError struct {
	Worker int
	Until  time.Time

	// Unknown says that nothing is known of what was issued under the worker
	// id; else it is known to have been used up to Until.
	Unknown bool
}

func (e *QuarantineError) Error() string {
	why := "it was used up to then"
	if e.Unknown {
		why = "nothing is known of its past, and an owner of before may use it up to then"
	}
	return fmt.Sprintf("leafsql: worker id %d is held, its ids are safe from %s on: %s; wait until then",
		e.Worker, e.Until.Format(time.RFC3339), why)
}

func owner(s string) string {
	if s == "" {
		return "an unnamed owner"
	}
	return s
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
