package proxytest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// The status flags that determine how an answer continues.
const (
	InTransaction = 0x0001
	Autocommit    = 0x0002
	MoreResults   = 0x0008
	CursorExists  = 0x0040
	LastRowSent   = 0x0080
	OutParams     = 0x1000
)

// An Answer is the server's answer to one command.
type Answer struct {
	Name    string
	Packets []Packet
	Closed  error  // why the answer ends: the connection is closed, or a packet is not valid here
	hidden  string // see Client.Hide
}

var errEmpty = errors.New("an empty packet")

// readNext reads a packet of an answer.
func (c *Client) readNext(a *Answer, kind Kind) ([]byte, error) {
	c.Conn.SetReadDeadline(time.Now().Add(Timeout))
	p, err := c.readPacket()
	if err != nil {
		return nil, err
	}
	p.Kind = kind
	a.Packets = append(a.Packets, p)
	if len(p.Payload) == 0 {
		return nil, errEmpty
	}
	return p.Payload, nil
}

// readFirst reads the first packet of an answer, or of a part of it, and returns its kind.
func (c *Client) readFirst(a *Answer) (Kind, []byte, error) {
	p, err := c.readNext(a, Count)
	if err != nil {
		return "", nil, err
	}
	kind := Count
	switch p[0] {
	case 0x00:
		kind = OK
	case 0xFF:
		kind = Err
	case 0xFB:
		kind = Local
	case 0xFE:
		kind = EOF
	}
	a.Packets[len(a.Packets)-1].Kind = kind
	return kind, p, nil
}

// readResults reads the answer to a statement: one result or several.
func (c *Client) readResults(a *Answer, row Kind) error {
	for {
		kind, p, err := c.readFirst(a)
		if err != nil {
			return err
		}
		status := uint16(0)
		switch kind {
		case OK:
			status = statusOf(p, false)
		case Local:
			c.sendFile(string(p[1:]))
			continue
		case Count:
			if status, err = c.readResultSet(a, p, row); err != nil {
				return err
			}
		}
		if status&MoreResults == 0 {
			return nil
		}
	}
}

func (c *Client) readResultSet(a *Answer, count []byte, row Kind) (uint16, error) {
	r := cursor{count}
	n, _ := r.lenenc()
	if !c.has(OptionalMetadata|CacheMetadata) || r.uint(1) == 1 {
		for range n {
			if _, err := c.readNext(a, Column); err != nil {
				return 0, err
			}
		}
	}
	out := uint16(0)
	if !c.has(DeprecateEOF) {
		p, err := c.readNext(a, EOF)
		if err != nil {
			return 0, err
		}
		status := statusOf(p, true)
		if status&CursorExists != 0 {
			return status, nil
		}
		if status&OutParams != 0 {
			out = status & MoreResults // MySQL does not repeat this flag after the row, although an OK follows
		}
	}
	status, err := c.readRows(a, row)
	return status | out, err
}

// readRows reads packets of a kind and the end after them, and returns its status.
func (c *Client) readRows(a *Answer, kind Kind) (uint16, error) {
	for {
		p, err := c.readNext(a, kind)
		if err != nil {
			return 0, err
		}
		last := &a.Packets[len(a.Packets)-1]
		switch {
		case p[0] == 0xFF:
			last.Kind = Err
			return 0, nil
		case p[0] == 0xFE && !c.has(DeprecateEOF) && len(p) < 9:
			last.Kind = EOF
			return statusOf(p, true), nil
		case p[0] == 0xFE && c.has(DeprecateEOF) && len(p) < maxFrame:
			last.Kind = OK
			return statusOf(p, false), nil
		}
	}
}

// statusOf returns the status in an EOF or an OK.
func statusOf(p []byte, eof bool) uint16 {
	r := cursor{p[min(statusAt(p, eof), len(p)):]}
	return uint16(r.uint(2))
}

// statusAt returns the position of the status in an EOF or an OK.
func statusAt(p []byte, eof bool) int {
	if eof {
		return 3
	}
	r := cursor{p[1:]}
	r.lenenc()
	r.lenenc()
	return len(p) - len(r.p)
}

func (c *Client) readPrepared(a *Answer) error {
	kind, p, err := c.readFirst(a)
	if err != nil || kind == Err {
		return err
	}
	a.Packets[len(a.Packets)-1].Kind = Prepared
	columns, params := binary.LittleEndian.Uint16(p[5:]), binary.LittleEndian.Uint16(p[7:])
	if c.has(OptionalMetadata) && len(p) > 12 && p[12] == 0 {
		return nil
	}
	for _, n := range []uint16{params, columns} {
		for range n {
			if _, err := c.readNext(a, Column); err != nil {
				return err
			}
		}
		if n > 0 && !c.has(DeprecateEOF) {
			if _, err := c.readNext(a, EOF); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *Client) sendFile(name string) {
	var out []byte
	if c.File != nil {
		for _, frame := range c.File(name) {
			out = append(out, frames(&c.seq, frame)...)
		}
	}
	c.write(append(out, frames(&c.seq, nil)...))
}

// last returns the last packet of a kind.
func (a *Answer) last(kind Kind) []byte {
	for i := len(a.Packets) - 1; i >= 0; i-- {
		if a.Packets[i].Kind == kind {
			return a.Packets[i].Payload
		}
	}
	return nil
}

// Err returns the number and the text of the error in the answer, or 0.
func (a *Answer) Err() (number int, text string) {
	p := a.last(Err)
	if len(p) < 3 {
		return 0, ""
	}
	return int(binary.LittleEndian.Uint16(p[1:])), string(p[3:])
}

// An Okay has the contents of an OK.
type Okay struct {
	Affected, ID uint64
	Status       uint16
	Warnings     uint16
	Rest         string // info and session changes
}

// OKs returns every OK of the answer.
func (a *Answer) OKs() (all []Okay) {
	for _, p := range a.Packets {
		if p.Kind == OK {
			all = append(all, readOK(p.Payload))
		}
	}
	return all
}

// OK returns the last OK of the answer.
func (a *Answer) OK() Okay {
	p := a.last(OK)
	if p == nil {
		return Okay{}
	}
	return readOK(p)
}

func readOK(p []byte) (k Okay) {
	r := cursor{p[1:]}
	k.Affected, _ = r.lenenc()
	k.ID, _ = r.lenenc()
	k.Status, k.Warnings = uint16(r.uint(2)), uint16(r.uint(2))
	k.Rest = string(r.p)
	return k
}

// Rows returns the values of the rows as texts, with the rows of all results.
func (a *Answer) Rows() (rows [][]string) {
	var types []byte
	for _, p := range a.Packets {
		switch p.Kind {
		case Count:
			types = nil
		case Column:
			types = append(types, typeOf(p.Payload))
		case Row:
			var row []string
			for r := (cursor{p.Payload}); len(r.p) > 0; {
				s, null := r.text()
				if null {
					s = "NULL"
				}
				row = append(row, s)
			}
			rows = append(rows, row)
		case BinaryRow:
			rows = append(rows, binaryRow(p.Payload, types))
		}
	}
	return rows
}

// columnName returns the name of a column.
func columnName(p []byte) (name string) {
	r := cursor{p}
	for range 5 { // catalog, database, table's alias, table, name
		name, _ = r.text()
	}
	return name
}

// typeOf returns the type in a column's definition. The last 12 bytes of the packet are the character set (2 bytes), length (4),
// type (1), flags (2), decimals (1), and 2 unused bytes.
func typeOf(column []byte) byte { return column[len(column)-6] }

// fixed has the lengths of types with a fixed length in the binary protocol; other values begin with their
// length.
var fixed = map[byte]int{0x01: 1, 0x02: 2, 0x0D: 2, 0x03: 4, 0x09: 4, 0x04: 4, 0x05: 8, 0x08: 8}

func binaryRow(p []byte, types []byte) (row []string) {
	nulls := p[1 : 1+(len(types)+9)/8]
	r := cursor{p[1+len(nulls):]}
	for i, typ := range types {
		switch n := fixed[typ]; {
		case nulls[(i+2)/8]&(1<<((i+2)%8)) != 0:
			row = append(row, "NULL")
		case n > 0 && typ != 0x04 && typ != 0x05:
			row = append(row, strconv.FormatUint(r.uint(n), 10))
		case n > 0:
			row = append(row, fmt.Sprintf("%x", r.bytes(n)))
		default:
			s, _ := r.text()
			row = append(row, s)
		}
	}
	return row
}
