package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/wire"
)

const (
	smallBuffer = 512      // that an idle connection keeps
	readBuffer  = 32 << 10 // while it is read

	// expected is how many bytes of a client's packet get a buffer before they come; readBuffer are those of a login. For a longer
	// packet the buffer grows to four times the data received, since a header costs its sender nothing.
	expected = 128 << 10

	// The next bytes of a command that has begun have to be there, and what is written has to be
	// taken, within these times: as long as servers wait by default.
	frameTime = 30 * time.Second
	writeTime = 60 * time.Second
)

var buffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// errTooLarge is for a packet that is longer than the server takes, with the server's own text.
var errTooLarge = sqlError(numberTooLarge, "08S01", "Got a packet bigger than 'max_allowed_packet' bytes")

// errNoMemory is for a packet that would exceed Config.ReadMemory.
var errNoMemory = sqlError(numberTooLarge, "08S01", "leafsql: the long commands of all clients fill the memory for them; send shorter commands, or raise -read-memory of leafsql proxy")

const numberTooLarge = 1153

func sqlError(number uint16, state, message string) *mysql.MySQLError {
	return &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte(state)), Message: message}
}

// An end is one of a session's two connections, with what was read of it and not yet used. It
// has a buffer from the pool only while it is read: what need, buffered and packet return is a part of
// that, and valid until the next read or release. What is to stay longer has to be copied.
type end struct {
	conn  net.Conn // through TLS and compression, if there are
	raw   net.Conn // below these
	under *end     // what compression reads; nil: there is none

	memory *budget // of buffers that are not from the pool
	buf    []byte  // nil: small
	r, w   int     // buf[r:w] is unread
	small  []byte  // the client's

	payload []byte // of the packet that was read last
	frame   []byte // that it came in, unless they were several

	// seq is the sequence number of the next frame that is written. packet, forward and passFile set it behind
	// the frames that they read, appendFrames and answer.scan count it on.
	seq     byte
	bounded bool // what has begun has to go on within frameTime

	writeBy time.Time
}

// buffered is what was read and not yet used.
func (e *end) buffered() []byte {
	if e.buf == nil {
		return e.small[e.r:e.w]
	}
	return e.buf[e.r:e.w]
}

// need reads until n bytes are there, and returns all that are. It is called for what has begun: where
// nothing may come for long, before a command, idle waits.
func (e *end) need(n int) ([]byte, error) {
	if e.w-e.r >= n {
		return e.buffered(), nil
	}
	first := readBuffer
	if e.bounded {
		first = expected
	}
	for e.w-e.r < n {
		if err := e.room(min(n, max(first, 4*(e.w-e.r)))); err != nil {
			return nil, err
		}
		if e.bounded {
			e.raw.SetReadDeadline(time.Now().Add(frameTime))
		}
		m, err := e.conn.Read(e.buf[e.w:])
		if e.w += m; err != nil && e.w-e.r < n {
			if err == io.EOF && e.w > e.r {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	if e.bounded {
		e.raw.SetReadDeadline(time.Time{})
	}
	return e.buffered(), nil
}

// idle waits for the first byte of the client's next command, without a buffer of its own.
func (e *end) idle() error {
	if e.w > e.r {
		return nil
	}
	e.release()
	m, err := e.conn.Read(e.small)
	if e.w = m; m > 0 {
		return nil
	}
	return err
}

// room makes a buffer that can hold n bytes from the front.
func (e *end) room(n int) error {
	unread := e.buffered()
	switch {
	case e.buf != nil && len(e.buf)-e.r >= max(n, readBuffer/2):
		return nil
	case e.buf != nil && len(e.buf) >= n:
		copy(e.buf, unread)
	case n <= readBuffer:
		pooled := buffers.Get().(*[readBuffer]byte)
		copy(pooled[:], unread)
		e.buf = pooled[:]
	case !e.memory.take(n):
		return errNoMemory
	default:
		large := make([]byte, n)
		copy(large, unread)
		e.giveBack()
		e.buf = large
	}
	e.r, e.w = 0, len(unread)
	return nil
}

func (e *end) giveBack() {
	switch len(e.buf) {
	case 0:
	case readBuffer:
		buffers.Put((*[readBuffer]byte)(e.buf))
	default:
		e.memory.take(-len(e.buf))
	}
	e.buf, e.payload, e.frame = nil, nil, nil
}

// wipe clears what was used: it may hold a password.
func (e *end) wipe() {
	if e.under != nil {
		e.under.wipe()
	}
	if e.buf == nil {
		clear(e.small[:e.r])
		return
	}
	clear(e.buf[:e.r])
	clear(e.buf[e.w:])
	clear(e.small)
}

// release gives the buffer back, as far as nothing in it is unread.
func (e *end) release() {
	if e.r == e.w {
		e.giveBack()
		e.r, e.w = 0, 0
	}
}

// take takes n bytes that are there.
func (e *end) take(n int) { e.r += n }

// header reads the header of the next frame, and leaves it.
func (e *end) header() (length int, seq byte, err error) {
	b, err := e.need(wire.HeaderLen)
	if err != nil {
		return 0, 0, err
	}
	return int(binary.LittleEndian.Uint32(b) & wire.MaxFrame), b[3], nil
}

// packet reads a whole payload of at most limit bytes, and says how its last frame was numbered. It is
// valid until the next read. The next frame that is written follows it.
func (e *end) packet(limit int) ([]byte, error) {
	b, err := e.need(wire.HeaderLen)
	for at, n := 0, 0; err == nil; { // a header begins at b[at], after n bytes of the payload
		length, seq := int(binary.LittleEndian.Uint32(b[at:])&wire.MaxFrame), b[at+3]
		if n+length > limit {
			return nil, errTooLarge
		}
		if b, err = e.need(at + wire.HeaderLen + length); err != nil {
			break
		}
		if at > 0 { // the payload goes on without the header
			copy(b[at:], b[at+wire.HeaderLen:])
			e.w -= wire.HeaderLen
		}
		if n += length; length < wire.MaxFrame {
			e.seq, e.payload, e.frame = seq+1, b[wire.HeaderLen:wire.HeaderLen+n], nil
			if n < wire.MaxFrame {
				e.frame = b[:wire.HeaderLen+n]
			}
			e.take(wire.HeaderLen + n)
			return e.payload, nil
		}
		at = wire.HeaderLen + n
		b, err = e.need(at + wire.HeaderLen)
	}
	return nil, err
}

// appendFrames appends a payload as frames.
func (e *end) appendFrames(b, payload []byte) []byte {
	for {
		n := min(len(payload), wire.MaxFrame)
		b = append(b, byte(n), byte(n>>8), byte(n>>16), e.seq)
		b = append(b, payload[:n]...)
		e.seq++
		if payload = payload[n:]; n < wire.MaxFrame {
			return b
		}
	}
}

// send writes payloads.
func (e *end) send(payloads ...[]byte) error {
	n := 0
	for _, p := range payloads {
		n += wire.HeaderLen + len(p)
	}
	frames := make([]byte, 0, n)
	for _, p := range payloads {
		frames = e.appendFrames(frames, p)
	}
	return e.write(frames)
}

// write writes bytes, within writeTime.
func (e *end) write(b []byte) error {
	e.extend()
	_, err := e.conn.Write(b)
	return err
}

// copyable is the connection for io.Copy, which has the kernel copy between two that are not
// of TLS.
func (e *end) copyable() net.Conn {
	if _, private := e.conn.(*tls.Conn); private || e.under != nil {
		return e.conn
	}
	return e.raw
}

// extend sees that the time for what is written does not end before writeTime.
func (e *end) extend() {
	if now := time.Now(); e.writeBy.Sub(now) < writeTime {
		e.writeBy = now.Add(2 * writeTime)
		e.raw.SetWriteDeadline(e.writeBy)
	}
}

// hangUp closes the connection. The other side reads that it ended even if it has just sent a
// command that nobody has read: a connection that is closed at once would be reset then.
func (e *end) hangUp() {
	if e.under != nil {
		e.under.giveBack()
		e = e.under
	}
	for _, conn := range []net.Conn{e.conn, e.raw} {
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			c.CloseWrite()
		}
	}
	e.raw.Close()
}
