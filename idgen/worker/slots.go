package worker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"
)

// Version names one state of a document, as its backend tells states apart: a
// content hash, a row version, a counter. It is opaque; "" says that the
// document is missing.
type Version string

// Doc is what a slot holds: who may use the worker id, and up to when.
type Doc struct {
	// Nonce is 128 random bits in hex, new with every take of a slot. It tells
	// owners apart, and states of a slot where versions are content hashes.
	Nonce string

	// HighWater is the latest time that the owner may put into an id, to the
	// millisecond; in a free document, that may have been put into one.
	HighWater time.Time

	Free  bool   // nobody holds the slot
	Owner string // for people: host and process id. Never compared

	// Registry is the identity of the registry when the document was written.
	// One with another identity does not tell what was before it: a write that
	// was under way while the registry was wiped, or the state before a
	// fail-over that lost writes.
	Registry string
}

// The nonces of documents that nobody has used.
const (
	initialNonce = "initial"
	spareNonce   = "spare"
)

// initial is the document a missing slot is created with. It is the same text
// whoever creates it, so that several creators told true do no harm, and means
// "free, history unknown".
func initial() Doc { return Doc{Nonce: initialNonce, HighWater: time.UnixMilli(0), Free: true} }

// IsInitial reports whether d is the document of unknown history.
func (d Doc) IsInitial() bool { return d.Nonce == initialNonce }

// unused reports whether nobody ever had the slot, as far as d tells.
func (d Doc) unused() bool { return d.Nonce == initialNonce || d.Nonce == spareNonce }

// docText is the JSON of a Doc. The order of the fields is part of the format:
// backends compare texts.
type docText struct {
	Nonce    string `json:"nonce"`
	HW       int64  `json:"hw"` // Unix ms
	Free     bool   `json:"free"`
	Owner    string `json:"owner,omitempty"`
	Registry string `json:"registry,omitempty"`
}

// Encode gives the one text of d that every backend storing texts writes.
func (d Doc) Encode() string {
	b, err := json.Marshal(docText{d.Nonce, max(d.HighWater.UnixMilli(), 0), d.Free, strings.ToValidUTF8(d.Owner, "?"), d.Registry})
	if err != nil { // strings, an integer and a bool always marshal
		panic(err)
	}
	return string(b)
}

// Decode makes d what Encode wrote. A text it cannot read is an error, never
// a free slot, and leaves d as it was.
func (d *Doc) Decode(text string) error {
	t := docText{HW: -1} // one without is not to be taken for 0
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return fmt.Errorf("leafsql: not a worker slot's document: %w", err)
	}
	read := Doc{t.Nonce, time.UnixMilli(t.HW), t.Free, t.Owner, t.Registry}
	switch _, err := dec.Token(); {
	case err != io.EOF:
		return errors.New("leafsql: not a worker slot's document: text after its end")
	case t.Nonce == "" || t.HW < 0:
		return errors.New("leafsql: not a worker slot's document: no nonce, or hw below 0")
	case read.IsInitial() && (t.HW != 0 || !t.Free):
		return errors.New("leafsql: not a worker slot's document: initial, but with a bound")
	}
	*d = read
	return nil
}

// outcome is what became of a Put.
type outcome int

const (
	unclear outcome = iota // perhaps written: the reply was lost, late or unclear
	refused                // certainly not written
	swapped                // written, and the document was at the expected version
)

// outcomeOf reads the answer of a Put.
func outcomeOf(ok bool, err error) outcome {
	_, notWritten := errors.AsType[*NotWrittenError](err)
	switch {
	case ok && err == nil:
		return swapped
	case !ok && (err == nil || notWritten):
		return refused
	}
	return unclear
}

// RegistrySlot is the number of the one document that is no slot: the
// registry's own, which says since when the registry is what it is and how its
// leases are made. Slots keep it like any other.
const RegistrySlot = -1

// Slots is a registry of worker ids: one document for each, 0 … Workers-1, and
// RegistrySlot, changed only by compare-and-set. The package trusts nothing but
// a Put told true; reads may be stale and may even show what was never written.
// Methods are called from several goroutines at once and must return soon after
// ctx is done; ctx always has a deadline.
type Slots interface {
	// Get reads a document. A missing one is a zero Doc and Version "", not an
	// error. One that cannot be read is an error.
	Get(ctx context.Context, slot int) (Doc, Version, error)

	// Put writes d if the document is at the expected version, "" being
	// missing, and gives the new version, which must be another one.
	//
	// True is promised only if both were one step. False without an error says
	// that the document was at another version, so that d is not there and never
	// will be; a NotWrittenError says so for another reason. After any other error
	// d may have been written, or be yet. Put must not send d a second time on its
	// own.
	//
	// A backend whose missing document takes a put at any version, as Nacos'
	// does, may say true, and its Source must say Inserts.
	Put(ctx context.Context, slot int, d Doc, expected Version) (after Version, swapped bool, err error)
}
