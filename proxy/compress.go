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

// The header of a compressed frame: three bytes of length, one of sequence, three of length before the
// compression, or 0 if the payload is not compressed. Servers do not compress less than 50 bytes.
// https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html
const compressedHeader, leastCompressed = 7, 50

// A compressed connection is a client's connection, compressed with zlib in both directions. The frames of the
// protocol (see end.go) begin and end anywhere in compressed frames.
type compressed struct {
	net.Conn
	of   *client       // the client that reads the connection
	in   end           // the compressed bytes
	seq  atomic.Uint32 // number of the next frame that is written; only its last byte counts
	from io.Reader     // reads the open frame
	left int           // bytes that from has not returned yet; 0 if no frame is open
}

// compress compresses the client's connection from now on. Bytes that are buffered already are compressed.
func (s *session) compress() {
	c := &compressed{Conn: s.client.conn, of: &s.client, in: s.client.end}
	s.client.conn, s.client.under, s.client.small = c, &c.in, make([]byte, smallBuffer)
	s.client.buf, s.client.r, s.client.w = nil, 0, 0
}

// Read reads the content of frames. It waits without a buffer for the first byte of a frame, and then returns 0
// bytes and no error, so that idle returns, and need limits the time for the rest of the frame.
func (c *compressed) Read(b []byte) (int, error) {
	if c.left == 0 {
		if err := c.open(); err != nil || c.left == 0 {
			return 0, err
		}
	}
	n, err := c.from.Read(b[:min(len(b), c.left)])
	if c.left -= n; c.left == 0 {
		err = c.close()
	}
	if err != nil {
		return 0, wire.ErrMalformed
	}
	return n, nil
}

var inflaters = sync.Pool{New: func() any { return lo.Must(zlib.NewReader(bytes.NewReader([]byte{0x78, 0x9c}))) }} // a valid header

// open reads a whole frame. Its declared length takes no memory, since from inflates it piece by piece.
func (c *compressed) open() error {
	if len(c.in.buffered()) == 0 {
		return c.in.idle()
	}
	c.in.bounded = c.of.bounded
	b, err := c.in.need(compressedHeader)
	if err != nil {
		return err
	}
	n := compressedHeader + int(binary.LittleEndian.Uint32(b)&wire.MaxFrame)
	if b, err = c.in.need(n); err != nil {
		return err
	}
	c.in.take(n)
	c.seq.Store(uint32(b[3]) + 1)
	body := bytes.NewReader(b[compressedHeader:n])
	c.from, c.left = body, body.Len()
	if declared := int(binary.LittleEndian.Uint32(b[3:]) >> 8); declared > 0 {
		c.from, c.left = inflaters.Get().(io.Reader), declared
		err = c.from.(zlib.Resetter).Reset(body, nil)
	}
	return err
}

// close ends a frame, and checks that it contained as many bytes as it declared.
func (c *compressed) close() error {
	if n, err := c.from.Read(make([]byte, 1)); n > 0 || err != io.EOF {
		return wire.ErrMalformed
	}
	if _, ok := c.from.(zlib.Resetter); ok {
		inflaters.Put(c.from)
	}
	c.from = nil
	c.in.release()
	return nil
}

// A deflater builds frames. It takes some hundred KiB, but idle connections have none.
type deflater struct {
	zlib *zlib.Writer
	out  bytes.Buffer
}

var deflaters = sync.Pool{New: func() any { return &deflater{zlib: lo.Must(zlib.NewWriterLevel(nil, zlib.BestSpeed))} }}

// Write writes b in frames of at most readBuffer bytes.
func (c *compressed) Write(b []byte) (n int, err error) {
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	for n < len(b) && err == nil {
		piece := b[n:min(len(b), n+readBuffer)]
		_, err = c.Conn.Write(d.frame(piece, c.seq.Add(1)-1))
		n += len(piece)
	}
	return n, err
}

// frame returns a frame. It is valid until the next call.
func (d *deflater) frame(piece []byte, seq uint32) []byte {
	d.out.Reset()
	d.out.Write(make([]byte, compressedHeader))
	declared := len(piece)
	if declared >= leastCompressed {
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
