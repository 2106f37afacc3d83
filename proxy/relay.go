package proxy

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/leafsql/leafsql/internal/wire"
)

// A state is told the front of each packet and its length. It says whether the answer ends
// with it.
type state func(a *answer, front []byte, length int) (ends bool, err error)

// An answer is the server's to one command, passed on to the client as it comes. Only what says
// where it ends is looked at. Frames are numbered as the client expects them.
type answer struct {
	*link
	state state
	more  bool // another answer to the same command follows, and the last packet has to say so

	columns uint64 // definitions that are to come
	behind  uint64 // and those of a prepared statement's columns, behind those of its parameters
	out     bool   // the rows are the values of OUT parameters, behind which another result follows
	execute bool   // of COM_STMT_EXECUTE: a cursor may take the place of rows

	// Of the frame that is being passed on.
	left      int  // bytes of it to pass on without a look
	continued bool // its payload goes on in the next frame
	ended     bool // the answer ends with its payload
	file      bool // its payload asks for a file

	failure error // error that ended the answer, with only the front of its text
	stmt    wire.PreparedOK
}

// relay passes on the server's answer to a command.
func (l *link) relay(a *answer) error {
	a.link = l
	for {
		b := l.server.buffered()
		n, err := a.scan(b)
		if err != nil {
			return err
		}
		if n > 0 {
			if err := l.client.write(b[:n]); err != nil {
				return err
			}
			l.server.take(n)
		}
		switch whole := a.left == 0 && !a.continued; { // a payload, nothing of which is missing
		case a.ended && whole:
			l.server.release()
			return nil
		case a.file && whole:
			a.file = false
			err = l.passFile()
		case a.left >= spliced && n == len(b):
			err = a.splice()
		default:
			_, err = l.server.need(len(b) - n + 1)
			err = serverGone(err)
		}
		if err != nil {
			return err
		}
	}
}

// pass sends the client's command to the server as it comes, and passes the answer on.
func (l *link) pass(a *answer) error {
	if err := l.forward(); err != nil {
		return err
	}
	l.passed.Add(1)
	return l.relay(a)
}

// resend sends the server the command that was read last, and passes the answer on.
func (l *link) resend(a *answer) error {
	var err error
	if l.client.frame != nil {
		err = serverGone(l.server.write(l.client.frame))
	} else {
		err = l.send(l.client.payload)
	}
	l.client.frame, l.client.payload = nil, nil
	if err != nil {
		return err
	}
	l.client.release()
	l.passed.Add(1)
	return l.relay(a)
}

// front is how much of a packet the states have to see: the numbers in an OK.
const front = 1 + 9 + 9 + 2 + 2

// scan looks at the frames in b, and says how much of it can be passed on now.
func (a *answer) scan(b []byte) (n int, err error) {
	for {
		skip := min(a.left, len(b)-n)
		n += skip
		a.left -= skip
		if a.left > 0 || (a.ended || a.file) && !a.continued || len(b)-n < wire.HeaderLen {
			return n, nil
		}
		length := int(binary.LittleEndian.Uint32(b[n:]) & wire.MaxFrame)
		if !a.continued {
			look := min(length, front)
			if len(b)-n < wire.HeaderLen+look {
				return n, nil
			}
			if a.ended, err = a.state(a, b[n+wire.HeaderLen:][:look], length); err != nil {
				return n, err
			}
		}
		a.serverSeq = b[n+3]
		b[n+3] = a.client.seq
		a.client.seq++
		a.continued = length == wire.MaxFrame
		a.left = length
		n += wire.HeaderLen
	}
}

// spliced is from how many bytes on the rest of a frame is copied by the kernel, atOnce how
// many have to be taken within writeTime.
const (
	spliced = 256 << 10
	atOnce  = 1 << 20
)

// splice passes on more of a frame of which nothing is in the buffer.
func (a *answer) splice() error {
	client, ok := a.client.copyable().(*net.TCPConn)
	if !ok {
		_, err := a.server.need(1)
		return serverGone(err)
	}
	a.client.extend()
	n, err := io.CopyN(client, a.server.copyable(), int64(min(a.left, atOnce)))
	a.left -= int(n)
	return err
}

// head is the state before the first packet of an answer.
func head(a *answer, p []byte, length int) (bool, error) {
	switch {
	case length == 0:
		return false, wire.ErrMalformed
	case p[0] == wire.FirstOK, p[0] == wire.FirstErr, p[0] == wire.FirstEOF:
		return a.last(p, length)
	case p[0] == wire.FirstLocalInfile:
		a.file = true
		return false, nil
	}
	columns, _, err := wire.LenEnc(p)
	a.columns = columns
	a.state = definition
	return false, err
}

// definition is the state before the definitions of columns and parameters.
func definition(a *answer, p []byte, length int) (bool, error) {
	if length > 0 && p[0] == wire.FirstErr {
		return a.last(p, length)
	}
	if a.columns > 0 {
		a.columns--
	}
	if a.columns > 0 {
		return false, nil
	}
	if a.deprecatesEOF() {
		return a.defined()
	}
	a.state = definitionsEnd
	return false, nil
}

// definitionsEnd is the state before the EOF behind them.
func definitionsEnd(a *answer, p []byte, length int) (bool, error) {
	if length < 5 || p[0] == wire.FirstErr {
		return a.last(p, length)
	}
	a.sees(binary.LittleEndian.Uint16(p[wire.EOFStatusAt:]))
	if a.execute && a.status&wire.CursorExists != 0 {
		return true, nil
	}
	a.out = a.status&wire.OutParams != 0
	if a.more {
		binary.LittleEndian.PutUint16(p[wire.EOFStatusAt:], a.status|wire.MoreResults)
	}
	return a.defined()
}

// defined is called behind definitions.
func (a *answer) defined() (bool, error) {
	switch {
	case a.behind > 0:
		a.columns, a.behind = a.behind, 0
		a.state = definition
	case a.stmt.ID != 0:
		return true, nil
	default:
		a.state = row
	}
	return false, nil
}

// row is the state before rows, and what ends them.
func row(a *answer, p []byte, length int) (bool, error) {
	if length == 0 {
		return false, wire.ErrMalformed
	}
	if p[0] == wire.FirstErr || a.endsRows(p[0], length) {
		return a.last(p, length)
	}
	return false, nil
}

// endsRows reports whether a packet is the EOF, or the OK in its place, after the last row.
func (l *link) endsRows(first byte, length int) bool {
	return first == wire.FirstEOF && (length < 9 || l.deprecatesEOF() && length < wire.MaxFrame)
}

// preparedHead is the state before the first packet that answers COM_STMT_PREPARE.
func preparedHead(a *answer, p []byte, length int) (ends bool, err error) {
	if length == 0 || p[0] != wire.FirstOK {
		return a.last(p, length)
	}
	if a.stmt, err = wire.ParsePreparedOK(p); err != nil {
		return false, err
	}
	a.columns, a.behind = uint64(a.stmt.Params), uint64(a.stmt.Columns)
	if a.columns == 0 {
		a.columns, a.behind = a.behind, 0
	}
	a.state = definition
	return a.columns == 0, nil
}

// anyPacket is the state before an answer of one packet that says nothing.
func anyPacket(*answer, []byte, int) (bool, error) { return true, nil }

// last reads a packet that ends an answer without rows, or the rows: OK, EOF or an error. If
// more results follow, the answer does not end with it.
func (a *answer) last(p []byte, length int) (ends bool, err error) {
	at := wire.EOFStatusAt
	switch {
	case length > 0 && p[0] == wire.FirstErr:
		a.failure, err = parseFailure(p)
		return true, err
	case length < 5:
		return false, wire.ErrMalformed
	case p[0] == wire.FirstOK || a.deprecatesEOF():
		ok, err := wire.ParseOK(p)
		if err != nil {
			return false, err
		}
		at = ok.StatusAt
	}
	a.sees(binary.LittleEndian.Uint16(p[at:]))
	if a.status&wire.MoreResults != 0 || a.out { // MySQL does not say so behind the values of OUT parameters
		a.out = false
		a.state = head
		return false, nil
	}
	if a.more {
		binary.LittleEndian.PutUint16(p[at:], a.status|wire.MoreResults)
	}
	return true, nil
}
