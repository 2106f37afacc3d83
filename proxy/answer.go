package proxy

import (
	"encoding/binary"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/wire"
)

// A state is the kind of packet that comes next in an answer.
type state byte

const (
	head           state = iota // the first packet of a result
	preparedHead                // the first packet that answers COM_STMT_PREPARE
	definitions                 // of columns and parameters
	definitionsEnd              // the EOF after them
	rows                        // or the end of the rows
	anyPacket                   // the only packet of an answer whose content does not matter
)

// An answer is the server's to one command. It is followed up to its end, and of each packet only the front is read.
type answer struct {
	state   state
	more    bool // another answer to the same command follows, and the last packet has to announce it
	execute bool // of COM_STMT_EXECUTE: a cursor may take the place of rows

	columns uint64 // definitions that are still to come
	behind  uint64 // definitions of a prepared statement's columns, after those of its parameters
	out     bool   // the rows are the values of OUT parameters: another result follows
	file    bool   // the last packet asks for a file

	// Of an answer that is passed on, as it comes:
	left      int  // bytes of the frame in progress that are passed on unread
	continued bool // the frame's payload continues in the next frame
	ended     bool // the answer ends with the payload

	ok      wire.OK // the last one in the answer
	failure error   // the error that ended the answer, with only the front of its text if the answer is passed on
	stmt    wire.PreparedOK
}

// front is how much of a packet reads has to see: the numbers in an OK.
const front = 1 + 9 + 9 + 2 + 2

// reads follows an answer over its next packet, of that length, and reports whether the answer ends with it. p is the packet or its
// front. If another answer follows, that is noted in it.
func (b *backend) reads(a *answer, p []byte, length int) (ends bool, err error) {
	switch {
	case a.state == anyPacket:
		return true, nil
	case length == 0:
		return false, wire.ErrMalformed
	case p[0] == wire.FirstErr:
		e, err := wire.ParseErr(p)
		a.failure = &mysql.MySQLError{Number: e.Number, SQLState: e.State, Message: e.Message}
		return true, err
	}
	switch a.state {
	case head:
		switch p[0] {
		case wire.FirstOK, wire.FirstEOF:
			return b.ends(a, p, length)
		case wire.FirstLocalInfile:
			a.file = true
			return false, nil
		}
		a.state = definitions
		a.columns, _, err = wire.LenEnc(p)
	case preparedHead:
		a.stmt, err = wire.ParsePreparedOK(p)
		a.state, a.columns, a.behind = definitions, uint64(a.stmt.Params), uint64(a.stmt.Columns)
		if a.columns == 0 {
			return a.defined(), err
		}
	case definitions:
		switch {
		case a.columns > 1:
			a.columns--
		case b.deprecatesEOF():
			return a.defined(), nil
		default:
			a.state = definitionsEnd
		}
	case definitionsEnd:
		if length < 5 {
			return false, wire.ErrMalformed
		}
		b.sees(binary.LittleEndian.Uint16(p[wire.EOFStatusAt:]))
		if a.execute && b.status&wire.CursorExists != 0 {
			return true, nil
		}
		a.out = b.status&wire.OutParams != 0
		a.announce(p[wire.EOFStatusAt:])
		return a.defined(), nil
	case rows:
		if p[0] == wire.FirstEOF && (length < 9 || b.deprecatesEOF() && length < wire.MaxFrame) { // or the OK in its place
			return b.ends(a, p, length)
		}
	}
	return false, err
}

// defined follows an answer over the end of definitions, and reports whether it ends there.
func (a *answer) defined() (ends bool) {
	switch {
	case a.behind > 0:
		a.state, a.columns, a.behind = definitions, a.behind, 0
	case a.stmt.ID != 0:
		return true
	default:
		a.state = rows
	}
	return false
}

// ends reads the OK or EOF that ends a result. If another result follows, the answer does not end with it.
func (b *backend) ends(a *answer, p []byte, length int) (ends bool, err error) {
	if length < 5 {
		return false, wire.ErrMalformed
	}
	at := wire.EOFStatusAt
	if p[0] == wire.FirstOK || b.deprecatesEOF() {
		if a.ok, err = wire.ParseOK(p); err != nil {
			return false, err
		}
		at = a.ok.StatusAt
	}
	b.sees(binary.LittleEndian.Uint16(p[at:]))
	if b.status&wire.MoreResults != 0 || a.out { // MySQL does not announce the result after the values of OUT parameters
		a.out, a.state = false, head
		return false, nil
	}
	a.announce(p[at:])
	return true, nil
}

// announce changes the status of a packet if another answer follows.
func (a *answer) announce(status []byte) {
	if a.more {
		status[0] |= wire.MoreResults
	}
}
