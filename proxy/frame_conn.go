package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/wire"
)

const (
	smallBufferSize = 512      // kept by an idle connection
	readBufferSize  = 32 << 10 // used during reads

	// expectedSize is the size of the largest buffer that is allocated for a client's packet before its bytes
	// arrive; during logins this size is readBufferSize. For a longer packet the buffer grows with the data received, to
	// at most four times their size, because a client can declare a long packet without sending it.
	expectedSize = 128 << 10

	// frameTimeout is the time limit for the next bytes of a command that has begun to arrive. writeTimeout is the time
	// limit for the other side to receive written bytes. Servers have the same defaults.
	frameTimeout = 30 * time.Second
	writeTimeout = 60 * time.Second
)

var buffers = sync.Pool{New: func() any { return new([readBufferSize]byte) }}

// errTooLarge means that a packet is longer than the server accepts.
var errTooLarge = servererr.ErrPacketTooLarge

// errNoMemory means that a packet would exceed Config.ReadMemory.
var errNoMemory = sqlError(servererr.PacketTooLarge, "08S01", "leafsql: the long commands of all clients have reached -read-memory of leafsql proxy; send shorter commands, or raise it")

func sqlError(number uint16, state, message string) *mysql.MySQLError {
	return &mysql.MySQLError{Number: number, SQLState: [5]byte([]byte(state)), Message: message}
}

// A frameConn is one of a session's two connections, with its unread bytes. It has a buffer from the pool only
// during reads. The results of readAtLeast, buffered and readPacket are parts of the buffer, and valid until the
// next read or release. Callers have to copy bytes that they keep longer.
type frameConn struct {
	conn       net.Conn   // the connection, with TLS and compression if these are used
	raw        net.Conn   // the connection without TLS and compression
	compressed *frameConn // the compressed bytes; nil without compression

	memory *budget // limit for buffers that are not from the pool
	buf    []byte  // nil means small
	r, w   int     // buf[r:w] is unread
	small  []byte  // kept by an idle connection

	payload []byte // payload of the last packet
	frame   []byte // frame of the last packet; nil if the packet had several frames

	// seq is the sequence number of the next frame that is written. readPacket, forward and passFile set it to
	// the number after the frames that they read; appendFrames and backend.scan increment it.
	seq             byte
	hasFrameTimeout bool // reads have to continue within frameTimeout

	writeDeadline time.Time
}

// buffered returns the bytes that were received and not used yet.
func (e *frameConn) buffered() []byte {
	if e.buf == nil {
		return e.small[e.r:e.w]
	}
	return e.buf[e.r:e.w]
}

// readAtLeast reads until n bytes are available, and returns all available bytes. Call it only after the first bytes
// have arrived; awaitByte waits for the next command.
func (e *frameConn) readAtLeast(n int) ([]byte, error) {
	if e.w-e.r >= n {
		return e.buffered(), nil
	}
	first := readBufferSize
	if e.hasFrameTimeout {
		first = expectedSize
	}
	for e.w-e.r < n {
		if err := e.reserve(min(n, max(first, 4*(e.w-e.r)))); err != nil {
			return nil, err
		}
		if e.hasFrameTimeout {
			e.raw.SetReadDeadline(time.Now().Add(frameTimeout))
		}
		m, err := e.conn.Read(e.buf[e.w:])
		if e.w += m; err != nil && e.w-e.r < n {
			if err == io.EOF && e.w > e.r {
				err = io.ErrUnexpectedEOF
			}
			return nil, err
		}
	}
	if e.hasFrameTimeout {
		e.raw.SetReadDeadline(time.Time{})
	}
	return e.buffered(), nil
}

// awaitByte waits for the first byte of the client's next command, without a buffer from the pool.
func (e *frameConn) awaitByte() error {
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

// reserve makes room for n bytes in the buffer, including the unread bytes, which are moved to its front.
func (e *frameConn) reserve(n int) error {
	unread := e.buffered()
	switch {
	case e.buf != nil && len(e.buf)-e.r >= max(n, readBufferSize/2):
		return nil
	case e.buf != nil && len(e.buf) >= n:
		copy(e.buf, unread)
	case n <= readBufferSize:
		pooled := buffers.Get().(*[readBufferSize]byte)
		copy(pooled[:], unread)
		e.buf = pooled[:]
	case !e.memory.reserve(n):
		return errNoMemory
	default:
		large := make([]byte, n)
		copy(large, unread)
		e.returnBuffer()
		e.buf = large
	}
	e.r, e.w = 0, len(unread)
	return nil
}

func (e *frameConn) returnBuffer() {
	switch len(e.buf) {
	case 0:
	case readBufferSize:
		buffers.Put((*[readBufferSize]byte)(e.buf))
	default:
		e.memory.reserve(-len(e.buf))
	}
	e.buf, e.payload, e.frame = nil, nil, nil
}

// wipe clears bytes that were used, because they may contain a password.
func (e *frameConn) wipe() {
	if e.compressed != nil {
		e.compressed.wipe()
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
func (e *frameConn) release() {
	if e.r == e.w {
		e.returnBuffer()
		e.r, e.w = 0, 0
	}
}

// discard marks n available bytes as used.
func (e *frameConn) discard(n int) { e.r += n }

// peekHeader returns the header of the next frame without using it.
func (e *frameConn) peekHeader() (length int, seq byte, err error) {
	b, err := e.readAtLeast(wire.HeaderLen)
	if err != nil {
		return 0, 0, err
	}
	return int(binary.LittleEndian.Uint32(b) & wire.MaxFrame), b[3], nil
}

// readPacket reads a whole payload of at most limit bytes. The payload is valid until the next read. seq is then
// the number after the packet's last frame.
func (e *frameConn) readPacket(limit int) ([]byte, error) {
	b, err := e.readAtLeast(wire.HeaderLen)
	for at, n := 0, 0; err == nil; { // a header begins at b[at], after n bytes of the payload
		length, seq := int(binary.LittleEndian.Uint32(b[at:])&wire.MaxFrame), b[at+3]
		if n+length > limit {
			return nil, errTooLarge
		}
		if b, err = e.readAtLeast(at + wire.HeaderLen + length); err != nil {
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
			e.discard(wire.HeaderLen + n)
			return e.payload, nil
		}
		at = wire.HeaderLen + n
		b, err = e.readAtLeast(at + wire.HeaderLen)
	}
	return nil, err
}

// appendFrames appends a payload as frames.
func (e *frameConn) appendFrames(b, payload []byte) []byte {
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
func (e *frameConn) send(payloads ...[]byte) error {
	n := 0
	for _, p := range payloads {
		n += wire.HeaderLen + len(p)
	}
	pooled := buffers.Get().(*[readBufferSize]byte)
	defer buffers.Put(pooled)
	frames := slices.Grow(pooled[:0], n)
	for _, p := range payloads {
		frames = e.appendFrames(frames, p)
	}
	return e.write(frames)
}

// write writes bytes, within writeTimeout.
func (e *frameConn) write(b []byte) error {
	e.extendWriteDeadline()
	_, err := e.conn.Write(b)
	return err
}

// copyConn returns the connection to use with io.Copy. The kernel does the copying if neither of the two connections
// uses TLS or compression.
func (e *frameConn) copyConn() net.Conn {
	if _, private := e.conn.(*tls.Conn); private || e.compressed != nil {
		return e.conn
	}
	return e.raw
}

// extendWriteDeadline ensures that the deadline for writes is at least writeTimeout away.
func (e *frameConn) extendWriteDeadline() {
	if time.Until(e.writeDeadline) < writeTimeout { // Until reads one clock, and Now two
		e.writeDeadline = time.Now().Add(2 * writeTimeout)
		e.raw.SetWriteDeadline(e.writeDeadline)
	}
}

// hangUp closes the connection. The other side then reads an orderly end, even if it has just sent a command that
// was not read. Without CloseWrite it could read a reset instead.
func (e *frameConn) hangUp() {
	if e.compressed != nil {
		e.compressed.returnBuffer()
		e = e.compressed
	}
	for _, conn := range []net.Conn{e.conn, e.raw} {
		if c, ok := conn.(interface{ CloseWrite() error }); ok {
			c.CloseWrite()
		}
	}
	e.raw.Close()
}
