package proxy

import (
	"errors"
	"os"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// A link is a client's connection and the one to the server that it has for its life, with
// what both agreed on.
type link struct {
	*counters
	client, server end

	maxPacket    int    // how long a command may be
	caps         uint32 // that client and server agreed on
	noAttributes []byte // what stands before a text without attributes

	status      uint16 // in the server's last answer
	stale       bool   // status is the login's, which servers write before they run init_connect, or that of a session before
	modeChanged bool   // what status says of sql_mode has changed since the login: see fill.Session.SetNoBackslashEscapes

	serverSeq byte  // of the last frame that the server sent
	lost      error // why the server's connection cannot be used any more

	// Of the command that is being run: what stands before its text, attributes behind its
	// arguments, and the transactions that statements of leafsql's own committed.
	attributes []byte
	extra      []wire.Param
	gtids      []byte
}

// errServerGone says that the server ended the connection, and not the time that the proxy
// gave it.
var errServerGone = errors.New("the server ended the connection")

func serverGone(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return errors.Join(errServerGone, err)
}

func (l *link) deprecatesEOF() bool { return l.caps&wire.DeprecateEOF != 0 }

// sees notes the status in an answer.
func (l *link) sees(status uint16) {
	l.modeChanged = l.modeChanged || (status^l.status)&wire.NoBackslashEscapes != 0
	l.status, l.stale = status, false
}

// forward sends the client's command to the server as it comes.
func (l *link) forward() error {
	for length := wire.MaxFrame; length == wire.MaxFrame; {
		var seq byte
		var err error
		if length, seq, err = l.client.header(); err != nil {
			return err
		}
		l.client.seq = seq + 1
		if err := l.forwardFrame(length); err != nil {
			return err
		}
	}
	l.client.release()
	return nil
}

// forwardFrame sends the server the client's next frame, header and all, as it comes.
func (l *link) forwardFrame(length int) error {
	for left := wire.HeaderLen + length; left > 0; {
		b, err := l.client.need(1)
		if err != nil {
			return err
		}
		n := min(left, len(b))
		if err := l.server.write(b[:n]); err != nil {
			return serverGone(err)
		}
		l.client.take(n)
		left -= n
	}
	return nil
}

// send sends the server a command.
func (l *link) send(command []byte) error {
	l.server.seq = 0
	return serverGone(l.server.send(command))
}

// passFile passes the client's answer to LOCAL INFILE on: packets up to an empty one.
func (l *link) passFile() error {
	l.client.bounded = false // a file may be read slowly
	defer func() { l.client.bounded = true }()
	l.server.seq = l.serverSeq + 1
	for full := false; ; { // full: the frame before was, so that its packet goes on
		length, seq, err := l.client.header()
		if errors.Is(err, os.ErrDeadlineExceeded) { // set by hangUp: the server's answer gives the reason
			return nil
		} else if err != nil {
			return err
		}
		l.client.seq = seq + 1
		l.client.buffered()[3] = l.server.seq
		l.server.seq++
		if err := l.forwardFrame(length); err != nil {
			return err
		}
		if length == 0 && !full {
			return nil
		}
		full = length == wire.MaxFrame
	}
}

// lastWords passes on the error that the server sent before it ended the connection.
func (l *link) lastWords() error {
	l.server.raw.SetReadDeadline(time.Now().Add(time.Second))
	if p, err := l.server.packet(readBuffer); err == nil {
		l.client.send(p)
	}
	return errServerGone
}

// fail sends the client an error.
func (l *link) fail(number uint16, state, message string) error {
	e := wire.Err{Number: number, Message: message}
	copy(e.State[:], state)
	return l.client.send(e.Append(nil))
}

// malformed is the error for a command that is none.
func (l *link) malformed() error {
	return l.fail(1835, "HY000", "Malformed communication packet.")
}
