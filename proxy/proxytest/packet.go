package proxytest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
)

// A Kind is the kind of a server's packet in its answer.
type Kind string

// The kinds of packets.
const (
	Greeting  Kind = "greeting"
	Auth      Kind = "authentication"
	OK        Kind = "OK"
	Err       Kind = "ERR"
	EOF       Kind = "EOF"
	Local     Kind = "LOCAL INFILE"
	Count     Kind = "column count"
	Column    Kind = "column"
	Row       Kind = "row"
	BinaryRow Kind = "binary row"
	Prepared  Kind = "prepared"
	Field     Kind = "field"
	Text      Kind = "text"
)

// A Packet is one payload from the server.
type Packet struct {
	Kind    Kind
	Seq     byte // number of its first frame
	Payload []byte
}

// maxFrame is the longest payload of one frame. A payload of this length or more continues in further frames.
const maxFrame = 1<<24 - 1

// readPacket reads one payload. The numbers of its frames must begin with c.seq.
func (c *Client) readPacket() (Packet, error) {
	p := Packet{Seq: c.seq}
	for {
		var head [4]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return p, err
		}
		n := int(head[0]) | int(head[1])<<8 | int(head[2])<<16
		if head[3] != c.seq && c.compression == nil { // servers write other numbers into compressed frames
			return p, fmt.Errorf("%w: a frame of %d bytes has the number %d, not %d", errSequence, n, head[3], c.seq)
		}
		c.seq++
		before := p.Payload
		p.Payload = make([]byte, len(before)+n)
		if _, err := io.ReadFull(c.in, p.Payload[copy(p.Payload, before):]); err != nil {
			return p, err
		}
		if n < maxFrame {
			return p, nil
		}
	}
}

var errSequence = errors.New("out of sequence")

// frames divides a payload, after the bytes of head, into frames with numbers from *seq on.
func frames(seq *byte, payload []byte, head ...byte) []byte {
	length := len(head) + len(payload)
	out := make([]byte, 0, length+4*(length/maxFrame+1))
	for {
		n := min(length, maxFrame)
		out = append(out, byte(n), byte(n>>8), byte(n>>16), *seq)
		out = append(out, head...)
		out = append(out, payload[:n-len(head)]...)
		*seq++
		if payload, head, length = payload[n-len(head):], nil, length-n; n < maxFrame {
			return out
		}
	}
}

// A cursor reads the fields of a payload. Bytes after its end are zero.
type cursor struct{ p []byte }

func (r *cursor) bytes(n int) []byte {
	if n < 0 || n > len(r.p) {
		n = len(r.p)
	}
	b := r.p[:n]
	r.p = r.p[n:]
	return b
}

func (r *cursor) uint(n int) uint64 {
	var b [8]byte
	copy(b[:], r.bytes(n))
	return binary.LittleEndian.Uint64(b[:])
}

// lenenc reads a length-encoded integer. null is set for the NULL of a row's value.
func (r *cursor) lenenc() (n uint64, null bool) {
	switch first := r.uint(1); first {
	case 0xFB:
		return 0, true
	case 0xFC:
		return r.uint(2), false
	case 0xFD:
		return r.uint(3), false
	case 0xFE:
		return r.uint(8), false
	default:
		return first, false
	}
}

func (r *cursor) text() (s string, null bool) {
	n, null := r.lenenc()
	return string(r.bytes(int(n))), null
}

func (r *cursor) zero() string {
	for i, b := range r.p {
		if b == 0 {
			s := string(r.p[:i])
			r.p = r.p[i+1:]
			return s
		}
	}
	return string(r.bytes(len(r.p)))
}

func appendLenenc(b []byte, n uint64) []byte {
	switch {
	case n < 251:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xFC, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(b, 0xFD, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xFE), n)
}

func appendText(b []byte, s string) []byte { return append(appendLenenc(b, uint64(len(s))), s...) }
