package worker

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/internal/errprefix"
)

var (
	errClosed          = errors.New("leafsql: the worker id was given back; open the pool or the generator again")
	errInUse           = errors.New("in use already") // another process or pool uses the fixed worker id, or its local state
	errContended       = errors.New("another process wrote at the same time")
	errUnconfirmed     = errors.New("the lease is not confirmed yet")
	errRegistryChanged = errors.New("the registry may have changed since it was read")
	errMissingDocument = errors.New("its document is missing")
	errOlderDocument   = errors.New("the registry has an older document of this process")
	errTooLate         = errors.New("it is too late, because another process may have the worker id by now")
	errClone           = errors.New("a copy of this process is running, such as a clone of its machine")
)

// unreachableError is the error of a search in which the registry did not answer at all.
type unreachableError struct{ error }

func (e *unreachableError) Unwrap() error { return e.error }

// UnusableError wraps the error of a source that this process cannot use until an operator
// changes something. Examples are a wrong password, a server without
// compare-and-set, and a registry that is used with another lease or layout. A Keeper
// retries after 30 to 60 s. Sources return it when they are opened
// and from Get and Put.
type UnusableError struct {
	Err error // the cause with a hint; its text is the whole text
}

func (e *UnusableError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *UnusableError) Unwrap() error { return e.Err }

// hintedError is an error of a source, with a text that ends with a hint. The Keeper retries at the
// usual pace, not as slowly as after an UnusableError.
type hintedError interface {
	error
	Hint() string
}

// missingHistoryError is returned by a search that found only slots of unknown history. Holders get the time
// of a renewal to write lost documents again; the search after that takes such a slot.
type missingHistoryError struct {
	error
	began time.Time // when the search began
}

func (e *missingHistoryError) Unwrap() error { return e.error }

// NotWrittenError wraps the error of a Put that certainly wrote nothing and will
// write nothing later: nothing was sent, or the server denied it. After any other error
// of a Put its document may have been written.
type NotWrittenError struct {
	Err error // the cause; its text is the whole text
}

func (e *NotWrittenError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *NotWrittenError) Unwrap() error { return e.Err }

// termsError returns the error for a registry that other processes use with another lease or layout.
// With two leases or layouts in a registry, worker ids would not be unique.
func termsError(registry, theirs, ours string) error {
	return &UnusableError{fmt.Errorf("leafsql: the registry of worker ids%s is used with %q, but this process is set to %q; give all processes of a table the same leafLease and leafSnowflake; to change them, see \"Changing the lease or the layout\" in docs/worker-ids.md",
		inParentheses(registry), theirs, ours)}
}

// UnavailableError is returned by Wait, and wrapped by snowflake.LeaseError, if no id may be issued
// now. The Keeper continues by itself.
type UnavailableError struct {
	// Reason is one of these:
	//
	//	"taken"       every worker id is held by another process: stop processes that
	//	              need none, or use a layout with more worker bits
	//	"ahead"       the worker id was used with a clock far ahead of this
	//	              machine's: set the clock right, or wait until Until
	//	"quarantine"  another process may still issue ids with this worker id, or
	//	              with any that the registry has lost: wait until Until
	//	"lost"        the lease has ended, and another worker id is being
	//	              searched for: check the registry
	Reason string

	Worker int       // 0 … Config.Workers-1, for "taken" the one that is free first; -1: none is held yet
	Owner  string    // the process that holds or used the worker id, according to its document; "" if unknown
	Until  time.Time // when the worker id is free, or its ids are safe, on this machine's clock; zero for "lost"
	Cause  error     // for "lost", the error of the renewal; may be nil

	text string
}

func (e *UnavailableError) Error() string { return e.text }

// Unwrap returns the Cause.
func (e *UnavailableError) Unwrap() error { return e.Cause }

// takenError returns the error if all of the of worker ids are held. worker is the worker id with the
// lease that ends first, and d is its document. Another process can take it at until,
// unless its lease is renewed.
func takenError(of, worker int, d Doc, until time.Time) error {
	e := &UnavailableError{Reason: "taken", Worker: worker, Owner: d.Owner, Until: until}
	if of == 1 {
		e.text = fmt.Sprintf("leafsql: worker id %d is held by %s; stop that process, or wait until %s if it has ended",
			worker, ownerOrUnnamed(d.Owner), until.Format(time.RFC3339))
	} else {
		e.text = fmt.Sprintf("leafsql: all %d worker ids are held: the first lease to end, of worker id %d held by %s, ends at %s unless renewed; stop processes that need no worker id, or use a layout with more worker bits",
			of, worker, ownerOrUnnamed(d.Owner), until.Format(time.RFC3339))
	}
	return e
}

// aheadError returns the error for a worker id that was used, according to d, with a clock far ahead of
// this machine's time now.
func aheadError(worker int, d Doc, now time.Time) error {
	return &UnavailableError{Reason: "ahead", Worker: worker, Owner: d.Owner, Until: d.HighWater,
		text: fmt.Sprintf("leafsql: worker id %d was used by %s until %v ahead of this machine's clock; set the clock, or wait that long",
			worker, ownerOrUnnamed(d.Owner), d.HighWater.Sub(now).Round(time.Millisecond))}
}

// lostError returns the error for a lease that has ended. d is the document of another process that
// replaced this process's document, or zero if the lease ended without a renewal.
func lostError(worker int, d Doc, cause error) *UnavailableError {
	e := &UnavailableError{Reason: "lost", Worker: worker, Cause: cause}
	why := "its lease ended before a renewal was confirmed"
	if d.Nonce != "" {
		e.Owner = ownerOrUnnamed(d.Owner)
		why = fmt.Sprintf("it is held by %s now", e.Owner)
		if d.Free {
			why = fmt.Sprintf("the registry has a free document of %s for it", e.Owner)
		}
	}
	if cause != nil {
		why += ": " + errprefix.TrimText(cause)
	}
	e.text = fmt.Sprintf("leafsql: worker id %d was lost: %s; the search for another one has begun", worker, why)
	return e
}

// refusedError returns the error for a renewal of h that was refused because of the document in r.
func refusedError(h *heldSlot, r reading) error {
	switch {
	case r.ver == "":
		return errMissingDocument
	case h.mayHaveWritten(r.doc):
		return errOlderDocument
	}
	return fmt.Errorf("the registry has a document of %s", ownerOrUnnamed(r.doc.Owner))
}

// quarantineError returns the error for a held worker id that may not be used before until, because ids up to
// until were issued with it.
func quarantineError(worker int, until time.Time) *UnavailableError {
	return &UnavailableError{Reason: "quarantine", Worker: worker, Until: until,
		text: fmt.Sprintf("leafsql: worker id %d is held, its ids are safe from %s on: it was used up to that time; wait until then",
			worker, until.Format(time.RFC3339))}
}

// unknownHistoryError returns the error for a registry in which processes may have used worker ids
// up to until without leaving documents. worker is the worker id that is held, or -1.
func unknownHistoryError(registry string, worker int, until time.Time) *UnavailableError {
	return &UnavailableError{Reason: "quarantine", Worker: worker, Until: until,
		text: fmt.Sprintf("leafsql: the registry of worker ids%s is new or has lost documents: processes that it has lost may issue ids up to %s; wait until then, or before a first roll-out run leafsql init -new-registry",
			inParentheses(registry), until.Format(time.RFC3339))}
}

func ownerOrUnnamed(s string) string {
	return cmp.Or(s, "an unnamed owner")
}

func inParentheses(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}
