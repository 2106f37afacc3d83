package worker

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/internal/part"
)

var (
	errClosed      = errors.New("leafsql: the worker id was given back; open the pool or the generator again")
	errInUse       = errors.New("in use already") // a fixed worker id, or its local state, by another process or pool
	errContended   = errors.New("another process was there at the same time")
	errUnconfirmed = errors.New("the take is not confirmed yet")
	errVoid        = errors.New("the registry may have changed since it was read")
	errMissing     = errors.New("its document is missing")
	errOlder       = errors.New("an older document of this process is there")
	errLate        = errors.New("too late, as somebody else may have the worker id by now")
	errClone       = errors.New("a copy of this process is running, with its memory")
)

// awayError is the end of a search in which the registry did not answer at all.
type awayError struct{ error }

func (e *awayError) Unwrap() error { return e.error }

// UnusableError marks the error of a source that can't be a registry for this
// process, however often it is asked: a wrong password, a server that does not
// compare, a registry used with another lease or layout. Somebody has to mend
// it, and a Keeper tries again after 30 to 60 s. Sources give it from their opening
// and from Get and Put.
type UnusableError struct {
	Err error // what is wrong, and the way out; the text is its alone
}

func (e *UnusableError) Error() string { return e.Err.Error() }

func (e *UnusableError) Unwrap() error { return e.Err }

// advice is the error of a source whose text ends with a way out. Unlike an
// UnusableError it is tried again at the usual pace.
type advice interface {
	error
	WayOut() string
}

// NotWrittenError marks the error of a Put that has certainly written nothing,
// now or later: nothing was sent, or the server denied it. After any other error
// of a Put its document may be there.
type NotWrittenError struct {
	Err error // what happened; the text is its alone
}

func (e *NotWrittenError) Error() string { return e.Err.Error() }

func (e *NotWrittenError) Unwrap() error { return e.Err }

// termsError says that the registry is used with another lease or layout than
// this process's. With two of them worker ids would not be safe.
func termsError(registry, theirs, ours string) error {
	return &UnusableError{fmt.Errorf("leafsql: the registry of worker ids%s is used with %q, this process has %q; give all processes of a table the same leafLease and leafSnowflake; to change them, see \"Changing the lease or the layout\" in docs/operations.md",
		inParentheses(registry), theirs, ours)}
}

// UnavailableError says why no id may be issued under a worker id now. Wait
// returns it, and snowflake.LeaseError wraps it. The Keeper goes on by itself.
type UnavailableError struct {
	// Reason is one of these:
	//
	//	"taken"       every worker id is held by somebody: stop processes that
	//	              need none, or use a layout with more worker bits
	//	"ahead"       the worker id was used with a clock far ahead of this
	//	              machine's: set the clock right, or wait until Until
	//	"quarantine"  a worker id is held, but somebody may still issue ids
	//	              under it: wait until Until
	//	"lost"        the lease could not be kept, and another worker id is
	//	              searched: look at the registry
	Reason string

	Worker int       // 0 … Config.Workers-1; of several the one that is free first
	Owner  string    // who holds it, or used it, as its document says; "" if nobody is known
	Until  time.Time // when it may be had, or its ids are safe, by this machine's clock; zero for "lost"
	Cause  error     // for "lost", why the lease could not be renewed; may be nil

	text string
}

func (e *UnavailableError) Error() string { return e.text }

func (e *UnavailableError) Unwrap() error { return e.Cause }

// takenError says that all of so many worker ids are held: d, of one of them, is
// the document whose owner's time ends first. It may be taken over at until,
// unless it is renewed.
func takenError(of, worker int, d Doc, until time.Time) error {
	e := &UnavailableError{Reason: "taken", Worker: worker, Owner: d.Owner, Until: until}
	if of == 1 {
		e.text = fmt.Sprintf("leafsql: worker id %d is held by %s; stop that process, or wait until %s if it is gone",
			worker, owner(d.Owner), until.Format(time.RFC3339))
	} else {
		e.text = fmt.Sprintf("leafsql: all %d worker ids are held: the oldest, %d of %s, is free at %s unless renewed; stop processes that need none, or use a layout with more worker bits",
			of, worker, owner(d.Owner), until.Format(time.RFC3339))
	}
	return e
}

// aheadError says that a worker id was used, as d says, with a clock far ahead of
// this machine's, which shows now.
func aheadError(worker int, d Doc, now time.Time) error {
	return &UnavailableError{Reason: "ahead", Worker: worker, Owner: d.Owner, Until: d.HighWater,
		text: fmt.Sprintf("leafsql: worker id %d was used by %s up to %v ahead of this machine's clock; set the clock right, or wait that long",
			worker, owner(d.Owner), d.HighWater.Sub(now).Round(time.Millisecond))}
}

// lostError is the end of a lease that could not be kept: d is the document that
// is in the place of this process's, a zero one if the bound simply ended.
func lostError(worker int, d Doc, cause error) *UnavailableError {
	e := &UnavailableError{Reason: "lost", Worker: worker, Cause: cause}
	why := "its bound ended before a renewal was confirmed"
	if d.Nonce != "" {
		e.Owner = owner(d.Owner)
		why = fmt.Sprintf("it is held by %s now", e.Owner)
		if d.Free {
			why = fmt.Sprintf("a free document of %s is in its place", e.Owner)
		}
	}
	if cause != nil {
		why += ": " + part.Text(cause)
	}
	e.text = fmt.Sprintf("leafsql: worker id %d was lost: %s; another one is searched", worker, why)
	return e
}

// refusedError says what was in the place of h's document when a renewal was refused.
func refusedError(h *hold, r reading) error {
	switch {
	case r.ver == "":
		return errMissing
	case h.wrote(r.doc):
		return errOlder
	}
	return fmt.Errorf("a document of %s is there", owner(r.doc.Owner))
}

// quarantineError says that a worker id is held and no id can be issued yet. It
// is unknown what was issued under it, or it was used up to until.
func quarantineError(worker int, until time.Time, unknown bool) error {
	why := "it was used up to then"
	if unknown {
		why = "nothing is known of its past, and a former owner that the registry has lost may use it up to then"
	}
	return &UnavailableError{Reason: "quarantine", Worker: worker, Until: until,
		text: fmt.Sprintf("leafsql: worker id %d is held, its ids are safe from %s on: %s; wait until then",
			worker, until.Format(time.RFC3339), why)}
}

func owner(s string) string {
	return cmp.Or(s, "an unnamed owner")
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
