package proxytest

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
)

// A Twin is a server that is reached in two ways. One script runs both ways, through the proxy first, and all
// payloads must be equal, with the numbers of their frames. The allowed differences are:
//   - the greeting's connection id, scramble and capabilities, and the scramble of an authentication;
//   - the ids of statements, which MariaDB counts for all connections;
//   - whether a statement used no index, or no good one: background statistics may change the plan between the two ways;
//   - if IDs is set, generated keys, and whether a column is AUTO_INCREMENT;
//   - the numbers in answers that the script hides (Client.Hide);
//   - the way in which a connection was closed.
type Twin struct {
	Direct, Through string // addresses
	Options         Options
	Setup           func(through bool) // called before the script runs in each way

	// Keys from IDs on are generated keys. They are compared by the order in which they first occur in the answers of each
	// way: the first generated key is #1, and so on.
	IDs uint64
	// Keys are the names of the columns that contain generated keys.
	Keys []string
}

// Compared and Different count the payloads of all twins of a process.
var Compared, Different atomic.Int64

// Run runs the script both ways and compares the payloads. The connection of the script ends with it.
func (w *Twin) Run(t testing.TB, script func(c *Client)) {
	t.Helper()
	got := w.record(t, true, script)
	want := w.record(t, false, script)
	for i := range max(len(want), len(got)) {
		Compared.Add(1)
		a, b := "(nothing)", "(nothing)"
		if i < len(want) {
			a = want[i]
		}
		if i < len(got) {
			b = got[i]
		}
		if a != b {
			Different.Add(1)
			a, b = shortenBoth(a, b)
			t.Errorf("payload %d of %d, behind\n%.1000s\ndirectly: %s\nthrough:  %s", i, len(want), strings.Join(got[max(0, min(i, len(got))-5):min(i, len(got))], "\n"), a, b)
			return
		}
	}
}

// shortenBoth returns the parts of two long texts at their first difference.
func shortenBoth(a, b string) (string, string) {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	cut := func(s string) string {
		if len(s) < 600 {
			return s
		}
		return fmt.Sprintf("%s … (%d bytes, from %d on) %.400s", s[:min(at, 200)], len(s), max(at-100, 0), s[max(at-100, 0):])
	}
	return cut(a), cut(b)
}

func (w *Twin) record(t testing.TB, through bool, script func(c *Client)) []string {
	t.Helper()
	if w.Setup != nil {
		w.Setup(through)
	}
	addr, way := w.Direct, "directly"
	if through {
		addr, way = w.Through, "through"
	}
	c, err := Dial(addr, w.Options)
	if c == nil {
		t.Fatalf("%s: %v", way, err)
	}
	if through {
		w.Options.Unrequested |= ^c.Offered // to compare answers, not the capabilities that both sides offer
	}
	if err == nil {
		script(c)
		c.Close()
	}
	n := normalizer{twin: w, numbers: map[uint64]int{}}
	var lines []string
	for _, a := range c.Answers {
		if a.Closed != nil && !isDisconnect(a.Closed) && a.Name != "login" {
			t.Errorf("%s: %s: %v", way, a.Name, a.Closed)
		}
		for _, p := range a.Packets {
			lines = append(lines, fmt.Sprintf("%s: %s, frame %d: %s", a.Name, p.Kind, p.Seq, quotePayload(n.normalize(p, a.hidden != ""))))
		}
		if a.Closed != nil {
			lines = append(lines, a.Name+": closed")
		}
	}
	if len(w.Keys) > 0 && len(n.numbers) == 0 {
		t.Errorf("%s: generated keys in the answers = 0, want at least one", way)
	}
	return lines
}

// quotePayload returns a payload as text for comparison. Long payloads are shortened and have a checksum.
func quotePayload(b []byte) string {
	if len(b) < 4096 {
		return strconv.Quote(string(b))
	}
	return fmt.Sprintf("%q … %q, %d bytes with the checksum %x", b[:64], b[len(b)-64:], len(b), crc32.Checksum(b, castagnoli))
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// A normalizer changes payloads so that they can be compared.
type normalizer struct {
	twin    *Twin
	numbers map[uint64]int // generated keys, in the order in which they were seen
	columns []string
	types   []byte
}

// The status flags of a statement that did not use an index, or not a good one.
const badIndex, noIndex = 0x10, 0x20

// hideNumbers returns a payload with # for each sequence of digits, points and control characters. A regular expression would
// take most of the time of a test with large payloads.
func hideNumbers(b []byte) []byte {
	out, hidden := make([]byte, 0, len(b)), false
	for _, x := range b {
		isNumber := x < 0x20 || '0' <= x && x <= '9' || x == '.'
		switch {
		case !isNumber:
			out = append(out, x)
		case !hidden:
			out = append(out, '#')
		}
		hidden = isNumber
	}
	return out
}

func (v *normalizer) normalize(p Packet, hidden bool) []byte {
	b := p.Payload
	if p.Kind == OK || p.Kind == EOF {
		if at := statusAt(b, p.Kind == EOF); at < len(b) {
			b = slices.Clone(b)
			b[at] &^= badIndex | noIndex
		}
	}
	switch {
	case hidden:
		return hideNumbers(b)
	case p.Kind == Greeting:
		return clearConnectionID(b)
	case p.Kind == Auth && b[0] == 0xFE:
		return b[:bytes.IndexByte(b, 0)] // another plugin; a scramble follows
	case p.Kind == Prepared:
		return b[5:]
	case v.twin.IDs == 0:
		return b
	}
	switch p.Kind {
	case OK:
		k := readOK(b)
		return fmt.Appendf(nil, "%#x affected %d id %s status %#x warnings %d %s", b[0], k.Affected, v.keyText(k.ID), k.Status, k.Warnings, k.Rest)
	case Count:
		v.columns, v.types = nil, nil
	case Column:
		v.columns, v.types = append(v.columns, columnName(b)), append(v.types, typeOf(b))
		b = slices.Clone(b)
		b[len(b)-4] &^= 0x12 // AUTO_INCREMENT, and NO_DEFAULT_VALUE, which keys without AUTO_INCREMENT have
		return b
	case Field:
		r := cursor{b}
		for range 6 {
			r.text()
		}
		b = slices.Clone(b)
		b[len(b)-len(r.p)+9] &^= 0x12
		return b
	case Row, BinaryRow:
		a := Answer{Packets: []Packet{{Kind: p.Kind, Payload: b}}}
		if p.Kind == BinaryRow {
			a.Packets = nil
			for _, typ := range v.types {
				a.Packets = append(a.Packets, Packet{Kind: Column, Payload: []byte{typ, 0, 0, 0, 0, 0}})
			}
			a.Packets = append(a.Packets, p)
		}
		row := a.Rows()[0]
		for i, value := range row {
			if i < len(v.columns) && slices.Contains(v.twin.Keys, v.columns[i]) {
				if n, err := strconv.ParseUint(value, 10, 64); err == nil {
					row[i] = v.keyText(n)
				}
			}
		}
		return fmt.Appendf(nil, "%q", row)
	}
	return b
}

func (v *normalizer) keyText(id uint64) string {
	if id < v.twin.IDs {
		return strconv.FormatUint(id, 10)
	}
	if v.numbers[id] == 0 {
		v.numbers[id] = len(v.numbers) + 1
	}
	return "#" + strconv.Itoa(v.numbers[id])
}

// clearConnectionID removes the connection's id, the scramble and the capabilities.
func clearConnectionID(b []byte) []byte {
	b = slices.Clone(b)
	at := 1 + bytes.IndexByte(b[1:], 0) + 1 // after the version
	for _, part := range [][2]int{{at, at + 12}, {at + 13, at + 15}, {at + 18, at + 20}, {at + 27, at + 43}} {
		clear(b[min(part[0], len(b)):min(part[1], len(b))])
	}
	return b
}
