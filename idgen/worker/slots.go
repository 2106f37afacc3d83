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

// Version names one state of a slot, as its backend tells states apart: a
// content hash, a row version, a counter. It is opaque; "" says that the slot
// is missing.
type Version string

// Doc is what a slot holds: who may use the worker id, and up to when.
type Doc struct {
	Nonce string // 128 random bits in hex, one value for each life of a process
	HW    int64  // the highest timestamp the owner may put into an id, in Unix ms
	Free  bool   // nobody holds the slot; ids up to HW may have been issued
	Owner string // for people: host, process id; never compared

	// Anchor is the registry's (see Anchorer) when the slot was taken, "" where
	// it has none or the slot was not taken yet. A document with another one
	// tells nothing: a message that is underway while the registry is wiped
	// writes it, as if nobody had had the slot since it was sent.
	Anchor string
}

// initialNonce marks the one document that says nothing about the past.
const initialNonce = "initial"

// Initial is the document a missing slot is created with. It is the same text
// whoever creates it, so that several creators told OK do no harm, and means
// "free, history unknown": whoever takes it starts above any bound that an
// owner unknown to the registry could still hold.
func Initial() Doc { return Doc{Nonce: initialNonce, Free: true} }

// IsInitial reports whether d is the document of unknown history.
func (d Doc) IsInitial() bool { return d.Nonce == initialNonce }

// Same reports whether d and e are the same state of a slot. Owner is not
// looked at.
func (d Doc) Same(e Doc) bool { return d.Nonce == e.Nonce && d.HW == e.HW && d.Free == e.Free }

// docText is the JSON of a Doc. The order of the fields is part of the format:
// backends compare texts.
type docText struct {
	Nonce string `json:"nonce"`
	HW    int64  `json:"hw"`
	Free  bool   `json:"free"`
	Owner string `json:"owner,omitempty"`

	Anchor string `json:"anchor,omitempty"`
}

// Encode gives the one text of d that every backend storing texts writes.
func (d Doc) Encode() string {
	d.Owner = strings.ToValidUTF8(d.Owner, "?")
	b, err := json.Marshal(docText(d))
	if err != nil { // strings, an integer and a bool always marshal
		panic(err)
	}
	return string(b)
}

// ParseDoc reads what Encode wrote. A text it cannot read is an error, never
// a free slot.
func ParseDoc(text string) (Doc, error) {
	t := docText{HW: -1} // one without is not to be taken for 0
	dec := json.NewDecoder(strings.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(&t); err != nil {
		return Doc{}, fmt.Errorf("leafsql: not a worker slot's document: %w", err)
	}
	d := Doc(t)
	switch _, err := dec.Token(); {
	case err != io.EOF:
		return Doc{}, errors.New("leafsql: not a worker slot's document: text after its end")
	case d.Nonce == "" || d.HW < 0:
		return Doc{}, errors.New("leafsql: not a worker slot's document: no nonce, or hw below 0")
	case d.IsInitial() && (d.HW != 0 || !d.Free):
		return Doc{}, errors.New("leafsql: not a worker slot's document: initial, but with a bound")
	}
	return d, nil
}

// Result is what became of a Put.
type Result int

const (
	Refused Result = iota // not written: the slot was not at the expected version
	OK                    // written, and the slot was at the expected version
	Unknown               // perhaps written: the reply was lost, late or unclear
)

func (r Result) String() string {
	switch r {
	case OK:
		return "ok"
	case Refused:
		return "refused"
	}
	return "unknown"
}

// Slots is a registry of worker ids: one document for each, changed only by
// compare-and-set. The engine trusts nothing but a Put told OK; reads may be
// stale and may even show what was never written. Methods are called from
// several goroutines at once and must return soon after ctx is done.
type Slots interface {
	// Get reads a slot. A missing one is a zero Doc and Version "", not an
	// error. A document that cannot be read is an error.
	Get(ctx context.Context, slot int) (Doc, Version, error)

	// Put writes d if the slot is at the expected version, "" being missing,
	// and gives the new version. OK is promised only if that was checked and
	// done as one step. An error comes with Refused if d was certainly not
	// written (nothing was sent), else with Unknown; no error is needed with
	// either. Put must not send d a second time on its own.
	Put(ctx context.Context, slot int, d Doc, expected Version) (Version, Result, error)
}

// Anchorer is for Slots whose Put on a missing slot writes whatever version it
// expected. Anchor gives a text that stays the same until the registry is
// wiped, creating a random one if there is none; it is read before and after
// a take, and a change makes the take void. Documents carry it. It is never
// read while a lease is held: a registry may go to other servers to find it.
type Anchorer interface {
	Anchor(ctx context.Context) (string, error)
}

// timed gives every call to a registry its time.
type timed struct {
	Slots
	d time.Duration
}

func (t timed) Get(ctx context.Context, slot int) (Doc, Version, error) {
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return t.Slots.Get(ctx, slot)
}

func (t timed) Put(ctx context.Context, slot int, d Doc, expected Version) (Version, Result, error) {
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return t.Slots.Put(ctx, slot, d, expected)
}

func (t timed) Anchor(ctx context.Context) (string, error) {
	a, ok := t.Slots.(Anchorer)
	if !ok {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, t.d)
	defer cancel()
	return a.Anchor(ctx)
}
