package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/wire"
)

const (
	smallBuffer = 512      // kept by an idle connection
	readBuffer  = 32 << 10 // used during reads

	// expected is the number of bytes of a client's packet for which a buffer is allocated before they arrive;
	// during logins it is readBuffer. For a longer packet the buffer grows to four times the data received,
	// since a header costs its sender nothing.
	expected = 128 << 10

	// Time limits for the next bytes of a command that has begun to arrive, and for the other side to receive
	// written bytes. They are the defaults of servers.
	frameTime = 30 * time.Second
	writeTime = 60 * time.Second
)

var buffers = sync.Pool{New: func() any { return new([readBuffer]byte) }}

// errTooLarge means that a packet is longer than the server accepts.
var errTooLarge = servererr.ErrPacketTooLarge

// errNoMemory means that a packet would exceed Config.ReadMemory.
var errNoMemory = sqlError(servererr.PacketTooLarge, "08S01", "leafsql: the long commands of all clients fill the memory for them; send shorter commands, or raise -read-memory of leafsql proxy")

func sqlError(number uint16, state, message string) *mysql.MySQLError {
	return &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte(state)), Message: message}
}

// An end is one of a session's two connections, with its unread bytes. It has a buffer from the pool only
// during reads. The results of need, buffered and packet are parts of the buffer, and valid until the next read
// or release. Callers have to copy bytes that they keep longer.
type end struct {
	conn  net.Conn // with TLS and compression, if they are used
	raw   net.Conn // the connection without them
	under *end     // the compressed bytes; nil without compression

	memory *budget // limit for buffers that are not from the pool
	buf    []byte  // nil means small
	r, w   int     // buf[r:w] is unread
	small  []byte  // kept by an idle connection

	payload []byte // payload of the last packet
	frame   []byte // frame of the last packet; nil if it had several

	// seq is the sequence number of the next frame that is written. packet, forward and passFile set it to the
	// number after the frames that they read; appendFrames and answer.scan increment it.
	seq     byte
	bounded bool // reads have to continue within frameTime

	writeBy time.Time
}

// buffered returns the bytes that were read and not used yet.
func (e *end) buffered() []byte {
	if e.buf == nil {
		return e.small[e.r:e.w]
	}
	return e.buf[e.r:e.w]
}

// need reads until n bytes are available, and returns all available bytes. Only call it when data has begun to
// arrive; idle waits for the next command.
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

// idle waits for the first byte of the client's next command, without a buffer from the pool.
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

// room makes the buffer hold n bytes, beginning with the unread ones.
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

// wipe clears bytes that were used: they may contain a password.
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

// release returns the buffer to the pool if it has no unread bytes.
func (e *end) release() {
	if e.r == e.w {
		e.giveBack()
		e.r, e.w = 0, 0
	}
}

// take marks n available bytes as used.
func (e *end) take(n int) { e.r += n }

// header returns the header of the next frame without using it.
func (e *end) header() (length int, seq byte, err error) {
	b, err := e.need(wire.HeaderLen)
	if err != nil {
		return 0, 0, err
	}
	return int(binary.LittleEndian.Uint32(b) & wire.MaxFrame), b[3], nil
}

// packet reads a whole payload of at most limit bytes. The payload is valid until the next read. The number of
// the next frame that is written follows the last frame of the packet.
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
		if at > 0 { // removes the header from the payload
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

// copyable returns the connection to use with io.Copy. The kernel copies between two connections without TLS
// and compression.
func (e *end) copyable() net.Conn {
	if _, private := e.conn.(*tls.Conn); private || e.under != nil {
		return e.conn
	}
	return e.raw
}

// extend ensures that the deadline for writes is at least writeTime away.
func (e *end) extend() {
	if now := time.Now(); e.writeBy.Sub(now) < writeTime {
		e.writeBy = now.Add(2 * writeTime)
		e.raw.SetWriteDeadline(e.writeBy)
	}
}

// hangUp closes the connection. The other side then reads an orderly end even if it has just sent a command
// that was not read: a connection closed without CloseWrite would be reset.
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
