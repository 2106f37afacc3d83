package proxy

import (
	"encoding/binary"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/wire"
)

// A state is the kind of the next packet in an answer.
type state byte

const (
	head           state = iota // the first packet of a result
	preparedHead                // the first packet that answers COM_STMT_PREPARE
	definitions                 // definitions of columns and parameters
	definitionsEnd              // the EOF after the definitions
	rows                        // rows, or the end of the rows
	anyPacket                   // the only packet of an answer; its content does not matter
)

// An answer is the server's answer to one command. The proxy follows it packet by packet up to its end, and parses
// only the front of each packet.
type answer struct {
	state       state
	more        bool // another answer to the same command follows, and the last packet has to announce it
	isExecution bool // the answer is to COM_STMT_EXECUTE: a cursor may replace the rows

	columns      uint64 // number of definitions that have not arrived
	columnsAfter uint64 // number of definitions of a prepared statement's columns, which follow the definitions of its parameters
	hasOutParams bool   // the rows are the values of OUT parameters: another result follows
	requestsFile bool   // the last packet requests a file

	// Fields for an answer that is passed on while it arrives:
	remaining int  // remaining bytes of the frame in progress, which are passed on without parsing
	continued bool // the frame's payload continues in the next frame
	ended     bool // the answer ends with the current payload

	ok      wire.OK // the last OK in the answer
	failure error   // the error that ended the answer, with a truncated message if the answer is passed on
	stmt    wire.PreparedOK
}

// frontLength is the number of bytes at the front of a packet that followPacket needs: the numbers in an OK.
const frontLength = 1 + 9 + 9 + 2 + 2

// followPacket updates a for the next packet of the answer, and reports whether the answer ends with it. p is the
// packet or its front, and length is the length of the packet. If a.more is set, the last packet is changed to
// announce another answer.
func (b *backend) followPacket(a *answer, p []byte, length int) (ends bool, err error) {
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
			return b.parseEnd(a, p, length)
		case wire.FirstLocalInfile:
			a.requestsFile = true
			return false, nil
		}
		a.state = definitions
		a.columns, _, err = wire.ParseLenEnc(p)
	case preparedHead:
		a.stmt, err = wire.ParsePreparedOK(p)
		a.state, a.columns, a.columnsAfter = definitions, uint64(a.stmt.Params), uint64(a.stmt.Columns)
		if a.columns == 0 {
			return a.endDefinitions(), err
		}
	case definitions:
		switch {
		case a.columns > 1:
			a.columns--
		case b.deprecatesEOF():
			return a.endDefinitions(), nil
		default:
			a.state = definitionsEnd
		}
	case definitionsEnd:
		if length < 5 {
			return false, wire.ErrMalformed
		}
		b.setStatus(binary.LittleEndian.Uint16(p[wire.EOFStatusAt:]))
		if a.isExecution && b.status&wire.CursorExists != 0 {
			return true, nil
		}
		a.hasOutParams = b.status&wire.OutParams != 0
		a.announce(p[wire.EOFStatusAt:])
		return a.endDefinitions(), nil
	case rows:
		if p[0] == wire.FirstEOF && (length < 9 || b.deprecatesEOF() && length < wire.MaxFrame) { // an EOF, or the OK that replaces it
			return b.parseEnd(a, p, length)
		}
	}
	return false, err
}

// endDefinitions updates an answer at the end of definitions, and reports whether the answer ends there.
func (a *answer) endDefinitions() (ends bool) {
	switch {
	case a.columnsAfter > 0:
		a.state, a.columns, a.columnsAfter = definitions, a.columnsAfter, 0
	case a.stmt.StmtID != 0:
		return true
	default:
		a.state = rows
	}
	return false
}

// parseEnd parses the OK or EOF that ends a result. It returns false if another result of the same answer
// follows.
func (b *backend) parseEnd(a *answer, p []byte, length int) (ends bool, err error) {
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
	b.setStatus(binary.LittleEndian.Uint16(p[at:]))
	if b.status&wire.MoreResults != 0 || a.hasOutParams { // MySQL does not announce the result after the values of OUT parameters
		a.hasOutParams, a.state = false, head
		return false, nil
	}
	a.announce(p[at:])
	return true, nil
}

// announce sets the flag for more results in a packet's status if another answer follows.
func (a *answer) announce(status []byte) {
	if a.more {
		status[0] |= wire.MoreResults
	}
}
