package proxytest

import (
	"bufio"
	"bytes"
	"compress/zlib"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"sync"
)

// compressedConn is a connection with frames that are packed into frames of CLIENT_COMPRESS. It checks the numbers of
// the frames that it reads, like most clients.
type compressedConn struct {
	net.Conn
	in         *bufio.Reader
	content    []byte // unread content of the last frame
	seq        byte   // number of the next frame, in either direction
	maxContent int    // maximum of bytes in a frame
	ignoresSeq bool   // numbers are not checked
	inflater   io.Reader
}

// startCompression is called after a login that agreed on compression.
func (c *Client) startCompression() {
	c.compression = &compressedConn{Conn: c.Conn, in: bufio.NewReader(c.in), maxContent: maxFrame}
	if c.opts.MaxContent > 0 {
		c.compression.maxContent = c.opts.MaxContent
	}
	c.Conn, c.in = c.compression, bufio.NewReaderSize(c.compression, 1<<16)
}

// setSeq sets the number of the next frame, and returns the old one.
func (c *compressedConn) setSeq(seq byte) (last byte) {
	if c == nil {
		return 0
	}
	last, c.seq = c.seq, seq
	return last
}

func (c *compressedConn) Read(b []byte) (int, error) {
	for len(c.content) == 0 {
		var head [7]byte
		if _, err := io.ReadFull(c.in, head[:]); err != nil {
			return 0, err
		}
		content := make([]byte, binary.LittleEndian.Uint32(head[:])&maxFrame)
		if _, err := io.ReadFull(c.in, content); err != nil {
			return 0, err
		}
		if head[3] != c.seq && !c.ignoresSeq {
			return 0, fmt.Errorf("%w: a compressed frame has the number %d, not %d", errSequence, head[3], c.seq)
		}
		c.seq++
		if n := int(binary.LittleEndian.Uint32(head[3:]) >> 8); n > 0 {
			if err := c.inflate(bytes.NewReader(content)); err != nil {
				return 0, err
			}
			var err error
			if content, err = io.ReadAll(c.inflater); err != nil || len(content) != n {
				return 0, fmt.Errorf("a compressed frame of %d bytes holds %d: %w", n, len(content), err)
			}
		}
		c.content = content
	}
	n := copy(b, c.content)
	c.content = c.content[n:]
	return n, nil
}

func (c *compressedConn) Write(b []byte) (int, error) {
	var out []byte
	for rest := b; len(rest) > 0; {
		piece := rest[:min(len(rest), c.maxContent)]
		rest = rest[len(piece):]
		out = append(out, CompressedFrame(c.seq, piece, len(piece) >= 50)...)
		c.seq++
	}
	if _, err := c.Conn.Write(out); err != nil {
		return 0, err
	}
	return len(b), nil
}

// inflate makes the connection's inflater read a frame.
func (c *compressedConn) inflate(frame io.Reader) (err error) {
	if c.inflater == nil {
		c.inflater, err = zlib.NewReader(frame)
		return err
	}
	return c.inflater.(zlib.Resetter).Reset(frame, nil)
}

// deflaters are kept, since a new one allocates 600 KB.
var deflaters = sync.Pool{New: func() any {
	z, err := zlib.NewWriterLevel(nil, zlib.BestSpeed)
	if err != nil {
		panic(err)
	}
	return z
}}

// CompressedFrame returns a frame with content, deflated or uncompressed.
func CompressedFrame(seq byte, content []byte, deflated bool) []byte {
	packed, n := bytes.NewBuffer(make([]byte, 7)), 0
	if deflated {
		z := deflaters.Get().(*zlib.Writer)
		z.Reset(packed)
		z.Write(content)
		z.Close()
		deflaters.Put(z)
		n = len(content)
	} else {
		packed.Write(content)
	}
	frame := packed.Bytes()
	binary.LittleEndian.PutUint32(frame[3:], uint32(n)<<8)
	binary.LittleEndian.PutUint32(frame, uint32(len(frame)-7)|uint32(seq)<<24)
	return frame
}
