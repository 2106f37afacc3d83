package proxy

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/internal/wire"
)

// The header of a compressed frame has three bytes for the length, one for the sequence number, and three for the
// length before the compression, which is 0 if the payload is not compressed. Servers do not compress less than 50 bytes.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html
const compressedHeader, minCompressed = 7, 50

// A compressedConn is a client's connection, compressed with zlib in both directions. The frames of the
// protocol (see frame_conn.go) may begin and end anywhere in compressed frames.
type compressedConn struct {
	net.Conn
	client    *client       // the client that reads the connection
	input     frameConn     // the compressed bytes
	seq       atomic.Uint32 // number of the next frame that is written; only its last byte counts
	content   io.Reader     // reads the open frame
	remaining int           // bytes that content has not returned yet; 0 if no frame is open
}

// startCompression compresses the client's connection from now on. Received bytes that are still in the buffer are
// compressed already.
func (s *session) startCompression() {
	c := &compressedConn{Conn: s.client.conn, client: &s.client, input: s.client.frameConn}
	s.client.conn, s.client.compressed, s.client.small = c, &c.input, make([]byte, smallBufferSize)
	s.client.buf, s.client.r, s.client.w = nil, 0, 0
}

// Read reads the content of frames. It waits without a buffer for the first byte of a frame, and then returns 0
// bytes and no error. So awaitByte returns, and readAtLeast limits the time for the rest of the frame.
func (c *compressedConn) Read(b []byte) (int, error) {
	if c.remaining == 0 {
		if err := c.openFrame(); err != nil || c.remaining == 0 {
			return 0, err
		}
	}
	n, err := c.content.Read(b[:min(len(b), c.remaining)])
	if c.remaining -= n; c.remaining == 0 {
		err = c.closeFrame()
	}
	if err != nil {
		return 0, wire.ErrMalformed
	}
	return n, nil
}

var inflaters = sync.Pool{New: func() any { return lo.Must(zlib.NewReader(bytes.NewReader([]byte{0x78, 0x9c}))) }} // a valid header

// openFrame reads a whole frame. It allocates no memory for the declared length, since content inflates the frame
// piece by piece.
func (c *compressedConn) openFrame() error {
	if len(c.input.buffered()) == 0 {
		return c.input.awaitByte()
	}
	c.input.hasFrameTimeout = c.client.hasFrameTimeout
	b, err := c.input.readAtLeast(compressedHeader)
	if err != nil {
		return err
	}
	n := compressedHeader + int(binary.LittleEndian.Uint32(b)&wire.MaxFrame)
	if b, err = c.input.readAtLeast(n); err != nil {
		return err
	}
	c.input.discard(n)
	c.seq.Store(uint32(b[3]) + 1)
	body := bytes.NewReader(b[compressedHeader:n])
	c.content, c.remaining = body, body.Len()
	if declared := int(binary.LittleEndian.Uint32(b[3:]) >> 8); declared > 0 {
		c.content, c.remaining = inflaters.Get().(io.Reader), declared
		err = c.content.(zlib.Resetter).Reset(body, nil)
	}
	return err
}

// closeFrame ends a frame, and checks that it contained as many bytes as it declared.
func (c *compressedConn) closeFrame() error {
	if n, err := c.content.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return wire.ErrMalformed
	}
	if _, ok := c.content.(zlib.Resetter); ok {
		inflaters.Put(c.content)
	}
	c.content = nil
	c.input.release()
	return nil
}

// A deflater builds frames. It needs some hundred KiB of memory; idle connections have no deflater.
type deflater struct {
	zlib *zlib.Writer
	out  bytes.Buffer
}

var deflaters = sync.Pool{New: func() any { return &deflater{zlib: lo.Must(zlib.NewWriterLevel(nil, zlib.BestSpeed))} }}

// Write writes b in frames of at most readBufferSize bytes.
func (c *compressedConn) Write(b []byte) (n int, err error) {
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	for n < len(b) && err == nil {
		piece := b[n:min(len(b), n+readBufferSize)]
		_, err = c.Conn.Write(d.buildFrame(piece, c.seq.Add(1)-1))
		n += len(piece)
	}
	return n, err
}

// buildFrame returns a frame with a piece of the content. The frame is valid until the next call.
func (d *deflater) buildFrame(piece []byte, seq uint32) []byte {
	d.out.Reset()
	d.out.Write(make([]byte, compressedHeader))
	declared := len(piece)
	if declared >= minCompressed {
		d.zlib.Reset(&d.out)
		d.zlib.Write(piece)
		d.zlib.Close()
	}
	if n := d.out.Len() - compressedHeader; n == 0 || n >= declared {
		d.out.Truncate(compressedHeader)
		d.out.Write(piece)
		declared = 0
	}
	b := d.out.Bytes()
	binary.LittleEndian.PutUint32(b[3:], uint32(declared)<<8)
	binary.LittleEndian.PutUint32(b, uint32(len(b)-compressedHeader)|seq<<24)
	return b
}
