package proxy

import (
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"sync"
	"sync/atomic"

	"github.com/leafsql/leafsql/internal/wire"
)

// The header of a compressed frame: three bytes of length, one of sequence, three of length before the compression, or 0
// if the payload is stored as it is. https://dev.mysql.com/doc/dev/mysql-server/latest/page_protocol_basic_compression.html
const (
	compressedHeader = 7
	leastCompressed  = 50 // bytes; servers store less than these
)

var errCompressed = errors.New("malformed compressed packet")

// A compressed connection is a client's, compressed with zlib in both directions. Frames in the sense of end.go begin and end
// anywhere in its frames.
type compressed struct {
	net.Conn
	of   *end          // the client's end, which reads the connection
	in   end           // the compressed bytes
	seq  atomic.Uint32 // of the next frame that is written; its last byte counts
	from io.Reader
	left int // bytes of the open frame that from has not returned yet
}

// compress compresses the client's connection from here on. Bytes that are buffered already are compressed ones.
func (s *session) compress() {
	c := &compressed{Conn: s.client.conn, of: &s.client, in: s.client}
	s.client.conn, s.client.under = c, &c.in
	s.client.buf, s.client.pooled, s.client.small = nil, nil, make([]byte, smallBuffer)
	s.client.r, s.client.w, s.client.payload, s.client.frame = 0, 0, nil, nil
}

// Read reads what frames contain. Like any end it waits without a buffer for the first byte of a frame: it returns 0 bytes and
// no error then, for idle to end and need to give the rest of the frame its time.
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
		return 0, errCompressed
	}
	return n, nil
}

var inflaters sync.Pool // of zlib's readers

// open reads a whole frame. Its declared length takes no memory: from inflates it as it is read.
func (c *compressed) open() error {
	if len(c.in.buffered()) == 0 {
		return c.in.idle()
	}
	c.in.bounded = c.of.bounded
	b, err := c.in.need(compressedHeader)
	if err != nil {
		return err
	}
	end := compressedHeader + int(binary.LittleEndian.Uint32(b)&wire.MaxFrame)
	if b, err = c.in.need(end); err != nil {
		return err
	}
	c.in.take(end)
	c.seq.Store(uint32(b[3]) + 1)
	body := bytes.NewReader(b[compressedHeader:end])
	n := int(binary.LittleEndian.Uint32(b[3:]) >> 8)
	if n == 0 {
		c.left, c.from = body.Len(), body
		return nil
	}
	inflater, ok := inflaters.Get().(io.Reader)
	if ok {
		err = inflater.(zlib.Resetter).Reset(body, nil)
	} else {
		inflater, err = zlib.NewReader(body)
	}
	if err != nil {
		return errCompressed
	}
	c.left, c.from = n, inflater
	return nil
}

// close ends a frame, which has to contain as many bytes as it declared.
func (c *compressed) close() error {
	var more [1]byte
	if n, err := c.from.Read(more[:]); n > 0 || err != io.EOF {
		return errCompressed
	}
	if _, ok := c.from.(zlib.Resetter); ok {
		inflaters.Put(c.from)
	}
	c.from = nil
	c.in.release()
	return nil
}

// A deflater compresses pieces of at most readBuffer bytes. It holds some hundred KiB, but not for an idle connection.
type deflater struct {
	zlib *zlib.Writer
	out  bytes.Buffer
}

var deflaters = sync.Pool{New: func() any {
	d := new(deflater)
	d.zlib, _ = zlib.NewWriterLevel(&d.out, zlib.BestSpeed) // the level is valid
	return d
}}

// Write writes b in one or more frames.
func (c *compressed) Write(b []byte) (n int, err error) {
	d := deflaters.Get().(*deflater)
	defer deflaters.Put(d)
	for n < len(b) && err == nil {
		piece := b[n:min(len(b), n+readBuffer)]
		if err = c.writeFrame(d, piece); err == nil {
			n += len(piece)
		}
	}
	return n, err
}

func (c *compressed) writeFrame(d *deflater, piece []byte) error {
	var header [compressedHeader]byte
	d.out.Reset()
	d.out.Write(header[:])
	before := 0
	if len(piece) >= leastCompressed {
		d.zlib.Reset(&d.out)
		d.zlib.Write(piece) // to memory, without errors
		d.zlib.Close()
		before = len(piece)
	}
	if before == 0 || d.out.Len()-compressedHeader >= len(piece) {
		d.out.Truncate(compressedHeader)
		d.out.Write(piece)
		before = 0
	}
	frame := d.out.Bytes()
	binary.LittleEndian.PutUint32(frame[3:], uint32(before)<<8)
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-compressedHeader)|(c.seq.Add(1)-1)<<24)
	_, err := c.Conn.Write(frame)
	return err
}
