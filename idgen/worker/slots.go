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

// Version identifies one state of a document in its backend: a
// content hash, a row version, a counter. It is opaque; "" means that the
// document is missing.
type Version string

// Doc is the content of a slot: the owner of one worker id, and the latest time in the owner's ids.
type Doc struct {
	// Nonce is 128 random bits in hex, new with every take of a slot. It distinguishes
	// owners. If versions are content hashes, it also gives each state of a slot its own version.
	Nonce string

	// HighWater is the latest time that the owner may put into an id, to the
	// millisecond. In a free document it is the latest time in an id that may have been issued.
	HighWater time.Time

	Free  bool   // no process holds the slot
	Owner string // for people: host and process id; never compared

	// Registry is the identity of the registry when the document was written.
	// If the registry has another identity now, earlier owners are unknown: the registry was wiped
	// while this document was being written, or the document is older than a fail-over that lost writes.
	Registry string
}

// The nonces of documents that no process has used.
const (
	initialNonce = "initial"
	spareNonce   = "spare"
)

// initialDoc returns the document for creating a missing slot. It means "free, earlier owners unknown". Its text is
// the same for all processes, so several processes can create it at once without harm.
func initialDoc() Doc { return Doc{Nonce: initialNonce, HighWater: time.UnixMilli(0), Free: true} }

// IsInitial reports whether d is the document that a slot is created with. Such a document does not
// name earlier owners.
func (d Doc) IsInitial() bool { return d.Nonce == initialNonce }

// isUnused reports whether d was written when its slot was created or prepared, and not by an owner.
func (d Doc) isUnused() bool { return d.Nonce == initialNonce || d.Nonce == spareNonce }

// docText is the JSON of a Doc. The order of the fields is part of the format,
// since backends compare texts.
type docText struct {
	Nonce    string `json:"nonce"`
	HW       int64  `json:"hw"` // Unix ms
	Free     bool   `json:"free"`
	Owner    string `json:"owner,omitempty"`
	Registry string `json:"registry,omitempty"`
}

// Encode returns the text of d for backends that store texts. Equal documents have equal texts.
func (d Doc) Encode() string {
	b, err := json.Marshal(docText{d.Nonce, max(d.HighWater.UnixMilli(), 0), d.Free, strings.ToValidUTF8(d.Owner, "?"), d.Registry})
	if err != nil { // impossible for strings, an integer and a bool
		panic(err)
	}
	return string(b)
}

// Decode sets d from a text that Encode wrote. A text that cannot be parsed is an error, never
// a free slot, and leaves d unchanged.
func (d *Doc) Decode(text string) error {
	t := docText{HW: -1} // a missing value must not be read as 0
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
		return errors.New("leafsql: not a worker slot's document: no nonce, or a negative hw")
	case read.IsInitial() && (t.HW != 0 || !t.Free):
		return errors.New("leafsql: not a worker slot's document: it is initial but has an hw")
	}
	*d = read
	return nil
}

// outcome is the result of a Put.
type outcome int

const (
	unclear outcome = iota // perhaps written: the reply was lost, late or unclear
	refused                // certainly not written
	swapped                // written at the expected version
)

// outcomeOf returns the outcome for the results of Slots.Put.
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

// RegistrySlot is the number of the only document that is not a slot: the
// registry's own. It has the registry's identity and the terms of its
// leases. Slots stores it like any other document.
const RegistrySlot = -1

// Slots is a registry of worker ids. It has one document for each worker id, 0 … Workers-1, and
// one for RegistrySlot. Documents are changed only by compare-and-set. The package relies only on
// Puts that return true; reads may be stale, or even return documents that were never written.
// Methods must be safe for concurrent use and return soon after
// ctx is done. ctx always has a deadline.
type Slots interface {
	// Get returns a document. For a missing document it returns a zero Doc and Version "" without an
	// error. A document that cannot be parsed is an error.
	Get(ctx context.Context, slot int) (Doc, Version, error)

	// Put writes d if the document is at the expected version, where "" means
	// missing. It returns the new version, which must differ from the expected one.
	//
	// Put may return true only if comparing and writing were one atomic step. False without an error means
	// that the document was at another version: d was not written and never
	// will be. After a NotWrittenError, d was not written and never will be either. After any other error
	// d may have been written, or may still be written. Put must not retry by
	// itself.
	//
	// In some backends, such as Nacos, a put succeeds whenever the document is missing, whatever version is
	// expected. Put of such a backend may return true in this case too, but then
	// Source.Inserts must be set.
	Put(ctx context.Context, slot int, d Doc, expected Version) (after Version, swapped bool, err error)
}
