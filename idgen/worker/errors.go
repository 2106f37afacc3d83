package worker

import (
	"errors"
	"fmt"
	"time"
)

// ErrClosed is the end of a lease that was given back with Close.
var ErrClosed = errors.New("leafsql: the worker id was given back; open another lease")

// ErrInUse says that another process, or another pool of this one, uses the
// same fixed worker id or local state.
var ErrInUse = errors.New("in use already")

var (
	errContended = errors.New("another process was there at the same time")
	errVoid      = errors.New("the registry may not be the one that was read")
	errClone     = errors.New("a copy of this process is running, with its memory")
)

// awayError is the end of a search in which the registry did not answer at all.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

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

// LostError is the end of a lease that could not be kept.
type LostError struct {
	Worker int
	Owner  string // who holds the worker id now; "" if the bound simply ended
	Cause  error  // why it could not be renewed; may be nil
}

func (e *LostError) Error() string {
	why := "its bound ended before the registry confirmed another"
	if e.Owner != "" {
		why = fmt.Sprintf("it is held by %s now", e.Owner)
	}
	if e.Cause != nil {
		why += ": " + e.Cause.Error()
	}
	return fmt.Sprintf("leafsql: worker id %d was lost: %s; take a successor, which needs the registry", e.Worker, why)
}

func (e *LostError) Unwrap() error { return e.Cause }

func owner(s string) string {
	if s == "" {
		return "an unnamed owner"
	}
	return s
}
