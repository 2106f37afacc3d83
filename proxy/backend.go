package proxy

import (
	"errors"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/wire"
)

// A backend is the server's side of a session: the client's connection to the server, with what both agreed on. Package driver uses
// it as a connection, for the statements that it fills and for its questions about the session: see conn.go.
type backend struct {
	end
	client *client // sends the commands, and gets the answers

	maxPacket    int    // how long a command may be
	caps         uint32 // that client and server agreed on
	noAttributes []byte // the bytes before a text without attributes

	status      uint16 // in the server's last answer
	stale       bool   // status is the login's, which servers write before they run init_connect, or that of a session before
	modeChanged bool   // the bit of sql_mode in status has changed since the login: see fill.Session.SetNoBackslashEscapes

	lastSeq byte  // number of the last frame that the server sent
	lost    error // why the server's connection cannot be used any more; nil: it can

	// Of the command in progress: the bytes before its text, attributes after its
	// arguments, and the transactions that internal statements committed.
	attributes []byte
	extra      []wire.Param
	gtids      []byte
}

// errServerGone is for a connection that the server ended. The time that the proxy gave it is another error.
var errServerGone = errors.New("the server ended the connection")

func serverGone(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return errors.Join(errServerGone, err)
}

func (b *backend) deprecatesEOF() bool { return b.caps&wire.DeprecateEOF != 0 }

// sees notes the status in an answer.
func (b *backend) sees(status uint16) {
	b.modeChanged = b.modeChanged || (status^b.status)&wire.NoBackslashEscapes != 0
	b.status, b.stale = status, false
}

// start sends the server a command.
func (b *backend) start(command []byte) error {
	switch b.seq = 0; {
	case b.lost != nil:
		return mysql.ErrInvalidConn
	case len(command) >= b.maxPacket: // the server would end the connection
		return errTooLarge
	}
	if err := b.send(command); err != nil {
		return b.lose(serverGone(err))
	}
	return nil
}

// lose notes why the server's connection cannot be used any more, for session.run, and returns the error
// of a connection of go-sql-driver.
func (b *backend) lose(cause error) error {
	if b.lost == nil {
		b.lost = cause
	}
	return mysql.ErrInvalidConn
}

// forward sends the server the client's next packet as it comes. Its frames are numbered from seq on. It returns the packet's length.
func (b *backend) forward(seq byte) (total int, err error) {
	b.seq = seq
	for length := wire.MaxFrame; length == wire.MaxFrame; total += length {
		if length, seq, err = b.client.header(); err != nil {
			return 0, err
		}
		b.client.seq = seq + 1
		b.client.buffered()[3] = b.seq
		b.seq++
		for left := wire.HeaderLen + length; left > 0; {
			p, err := b.client.need(1)
			if err != nil {
				return 0, err
			}
			n := min(left, len(p))
			if err := b.write(p[:n]); err != nil {
				return 0, serverGone(err)
			}
			b.client.take(n)
			left -= n
		}
	}
	b.client.release()
	return total, nil
}

// passFile passes the client's answer to LOCAL INFILE on: packets up to an empty one.
func (b *backend) passFile() error {
	b.client.bounded = false // a file may be read slowly
	defer func() { b.client.bounded = true }()
	for seq, length := b.lastSeq+1, 1; length > 0; seq = b.seq {
		_, _, err := b.client.header()
		if errors.Is(err, os.ErrDeadlineExceeded) { // set by hangUp: the server's answer gives the reason
			return nil
		}
		if length, err = b.forward(seq); err != nil {
			return err
		}
	}
	return nil
}

// lastWords passes on the error that the server sent before it ended the connection.
func (b *backend) lastWords() error {
	b.raw.SetReadDeadline(time.Now().Add(time.Second))
	if p, err := b.packet(readBuffer); err == nil {
		b.client.send(p)
	}
	return errServerGone
}
