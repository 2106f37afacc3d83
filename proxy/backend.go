package proxy

import (
	"errors"
	"os"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/wire"
)

// A backend is the server's side of a session: the client's connection to the server, and its negotiated
// settings. Package driver uses it as a connection, for the statements that it fills and for its queries about
// the session: see conn.go.
type backend struct {
	frameConn
	client *client // sends the commands, and receives the answers

	maxPacket    int    // maximum length of a command
	caps         uint32 // capabilities that client and server agreed on
	noAttributes []byte // the bytes before a text without attributes

	status        uint16 // status in the server's last answer
	isStatusStale bool   // status is from a previous session, or from the login; servers run init_connect only after their answer to the login
	modeChanged   bool   // the sql_mode flag in status has changed since the login: see fill.Session.SetBackslashEscapes

	waits fillContext // limits the waits of package driver

	lastSeq byte  // number of the last frame from the server
	lostErr error // the reason why the server's connection can no longer be used; nil if it can be used

	// State of the command in progress: the bytes before its text, the attributes after its arguments, and the
	// ids (GTIDs) of the transactions that internal statements committed.
	attributes  []byte
	extraParams []wire.Param
	gtids       []byte
}

// errServerGone means that the server ended the connection. After a timeout of the proxy, another error is returned.
var errServerGone = errors.New("the server ended the connection")

func wrapServerGone(err error) error {
	if err == nil || errors.Is(err, os.ErrDeadlineExceeded) {
		return err
	}
	return errors.Join(errServerGone, err)
}

func (b *backend) deprecatesEOF() bool { return b.caps&wire.DeprecateEOF != 0 }

// setStatus records the status in an answer.
func (b *backend) setStatus(status uint16) {
	b.modeChanged = b.modeChanged || (status^b.status)&wire.NoBackslashEscapes != 0
	b.status, b.isStatusStale = status, false
}

// sendCommand sends the server a command.
func (b *backend) sendCommand(command []byte) error {
	b.waits.reset()
	switch b.seq = 0; {
	case b.lostErr != nil:
		return mysql.ErrInvalidConn
	case len(command) >= b.maxPacket: // the server would end the connection
		return errTooLarge
	}
	if err := b.send(command); err != nil {
		return b.markLost(wrapServerGone(err))
	}
	return nil
}

// markLost records why the server's connection can no longer be used, for session.run, and returns
// go-sql-driver's error for a broken connection.
func (b *backend) markLost(cause error) error {
	if b.lostErr == nil {
		b.lostErr = cause
	}
	return mysql.ErrInvalidConn
}

// forward sends the server the client's next packet while it arrives. Its frames are numbered from seq on. It
// returns the packet's length.
func (b *backend) forward(seq byte) (total int, err error) {
	b.seq = seq
	for length := wire.MaxFrame; length == wire.MaxFrame; total += length {
		if length, seq, err = b.client.peekHeader(); err != nil {
			return 0, err
		}
		b.client.seq = seq + 1
		b.client.buffered()[3] = b.seq
		b.seq++
		for left := wire.HeaderLen + length; left > 0; {
			p, err := b.client.readAtLeast(1)
			if err != nil {
				return 0, err
			}
			n := min(left, len(p))
			if err := b.write(p[:n]); err != nil {
				return 0, wrapServerGone(err)
			}
			b.client.discard(n)
			left -= n
		}
	}
	b.client.release()
	return total, nil
}

// passFile passes the client's answer to LOCAL INFILE on to the server: all packets up to an empty packet.
func (b *backend) passFile() error {
	b.client.hasFrameTimeout = false // the client may read the file slowly
	defer func() { b.client.hasFrameTimeout = true }()
	for seq, length := b.lastSeq+1, 1; length > 0; seq = b.seq {
		_, _, err := b.client.peekHeader()
		if errors.Is(err, os.ErrDeadlineExceeded) { // hangUp set the deadline: the server's answer has the reason
			return nil
		}
		if length, err = b.forward(seq); err != nil {
			return err
		}
	}
	return nil
}

// passFinalError passes on the error that the server sent before it ended the connection.
func (b *backend) passFinalError() error {
	b.raw.SetReadDeadline(time.Now().Add(time.Second))
	if p, err := b.readPacket(readBufferSize); err == nil {
		b.client.send(p)
	}
	return errServerGone
}
