package proxy

import (
	"bytes"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// A pieceConn is a connection with bytes that arrive in pieces of these lengths, in turn, or all together if there are
// none.
type pieceConn struct {
	net.Conn
	unread      []byte
	lengths     []int
	written     []byte
	hasDeadline atomic.Bool // reads have a deadline
	deadlines   []bool      // whether each read had a deadline
}

func (p *pieceConn) Read(b []byte) (int, error) {
	p.deadlines = append(p.deadlines, p.hasDeadline.Load())
	if len(p.unread) == 0 {
		return 0, io.EOF
	}
	n := len(p.unread)
	if len(p.lengths) > 0 {
		n = min(n, p.lengths[0])
		p.lengths = append(p.lengths[1:], p.lengths[0])
	}
	n = copy(b, p.unread[:n])
	p.unread = p.unread[n:]
	return n, nil
}

func (p *pieceConn) Write(b []byte) (int, error) {
	p.written = append(p.written, b...)
	return len(b), nil
}

func (p *pieceConn) SetReadDeadline(t time.Time) error {
	p.hasDeadline.Store(!t.IsZero())
	return nil
}

func (p *pieceConn) SetWriteDeadline(time.Time) error { return nil }

// frameConn returns a frameConn that uses the connection.
func (p *pieceConn) frameConn() frameConn {
	return frameConn{conn: p, raw: p, small: make([]byte, smallBufferSize), hasFrameTimeout: true, memory: &budget{limit: math.MaxInt64}}
}

// cutWays returns several ways to cut some bytes: no cuts, a cut at each position of short ones, and the cuts of
// a fuzz test.
func cutWays(length int, cuts []byte) [][]int {
	all := [][]int{nil, {1}}
	for i := range min(length, 100) {
		all = append(all, []int{i + 1, 1 << 20})
	}
	var lengths []int
	for _, n := range cuts {
		lengths = append(lengths, 1+int(n)*int(n))
	}
	return append(all, lengths)
}

// encodeFrames puts payloads into frames.
func encodeFrames(payloads ...string) (b []byte) {
	for i, p := range payloads {
		b = append(binary.LittleEndian.AppendUint32(b, uint32(len(p))|uint32(i)<<24), p...)
	}
	return b
}

// FuzzPackets: packets are read as they were sent, in pieces of any length, and no memory is allocated for a
// packet that is longer than allowed.
func FuzzPackets(f *testing.F) {
	f.Add(encodeFrames("\x03SELECT 1"), []byte{1, 2, 3}, 1000)
	f.Add(encodeFrames("", "\x0e", "\x03SELECT 2"), []byte{4}, 8)
	f.Add(encodeFrames("a", string(make([]byte, 3000)), "b", string(make([]byte, 40_000)), "c"), []byte{30, 90, 1}, 50_000)
	f.Add(encodeFrames("a", "b")[:9], []byte(nil), 2)
	f.Add([]byte("\xff\xff\xff\x00and no more"), []byte{9}, 1000)
	f.Fuzz(func(t *testing.T, sent, cuts []byte, limit int) {
		limit &= 1<<16 - 1
		var want [][]byte // from reading it in one piece
		wantErr := error(nil)
		for rest := sent; wantErr == nil; {
			switch {
			case len(rest) == 0:
				wantErr = io.EOF
			case len(rest) < wire.HeaderLen:
				wantErr = io.ErrUnexpectedEOF
			default:
				switch n := int(rest[0]) | int(rest[1])<<8 | int(rest[2])<<16; {
				case n > limit:
					wantErr = errTooLarge
				case n > len(rest)-wire.HeaderLen:
					wantErr = io.ErrUnexpectedEOF
				default:
					want = append(want, rest[:wire.HeaderLen+n])
					rest = rest[wire.HeaderLen+n:]
				}
			}
		}
		for _, way := range cutWays(len(sent), cuts) {
			e := (&pieceConn{unread: sent, lengths: way}).frameConn()
			for i := 0; ; i++ {
				if i%2 == 1 { // like before a command
					e.awaitByte()
				}
				p, err := e.readPacket(limit)
				if err != nil {
					if i != len(want) || !errors.Is(err, wantErr) {
						t.Fatalf("in pieces %v: packet %d of %d: error %v, want %v after the last packet", way, i, len(want), err, wantErr)
					}
					break
				}
				if i >= len(want) || !bytes.Equal(p, want[i][wire.HeaderLen:]) || !bytes.Equal(e.frame, want[i]) || e.seq != want[i][3]+1 {
					t.Fatalf("in pieces %v: packet %d = %q, want it as it is in %q", way, i, p, want)
				}
			}
			if len(e.buf) > readBufferSize+limit {
				t.Fatalf("buffer has %d bytes, want at most %d", len(e.buf), readBufferSize+limit)
			}
			e.returnBuffer()
		}
	})
}

// TestLongPacketsAreReadAsOne: a packet of several frames is read as one, up to the limit, and written unchanged.
func TestLongPacketsAreReadAsOne(t *testing.T) {
	for _, length := range []int{wire.MaxFrame - 1, wire.MaxFrame, 2*wire.MaxFrame + 7} {
		payload := bytes.Repeat([]byte("0123456789"), length/10+1)[:length]
		out := &pieceConn{}
		w := out.frameConn()
		if err := w.send(payload, []byte("next")); err != nil {
			t.Fatal(err)
		}
		for _, way := range [][]int{nil, {wire.HeaderLen + wire.MaxFrame - 1, 2}} {
			e := (&pieceConn{unread: out.written, lengths: way}).frameConn()
			got, err := e.readPacket(length)
			if err != nil || !bytes.Equal(got, payload) || e.seq != byte(length/wire.MaxFrame+1) {
				t.Errorf("in pieces %v: readPacket() = %d bytes from %d frames, %v, want the %d bytes written", way, len(got), e.seq, err, length)
			}
			if got, err = e.readPacket(length); err != nil || string(got) != "next" {
				t.Errorf("readPacket() after %d bytes = %q, %v, want \"next\"", length, got, err)
			}
			e = (&pieceConn{unread: out.written, lengths: way}).frameConn()
			if _, err := e.readPacket(length - 1); err != errTooLarge {
				t.Errorf("readPacket(%d) of %d bytes: error %v, want %v", length-1, length, err, errTooLarge)
			}
		}
	}
}

// TestBegunCommandsHaveATimeLimit: a command that has begun has to continue within a time limit, wherever it stops, whether
// it is read or passed on. There is no limit before and after it.
func TestBegunCommandsHaveATimeLimit(t *testing.T) {
	out := &pieceConn{}
	w := out.frameConn()
	if err := w.send(make([]byte, wire.MaxFrame), []byte("next")); err != nil {
		t.Fatal(err)
	}
	for how, serve := range map[string]func(b *backend) error{
		"read":      func(b *backend) error { _, err := b.client.readPacket(1 << 30); return err },
		"passed on": func(b *backend) error { _, err := b.forward(0); return err },
	} {
		for _, lengths := range [][]int{{1, 100_000}, {wire.HeaderLen, 100_000}, {wire.HeaderLen + 1, wire.MaxFrame - 1, wire.HeaderLen}} {
			conn := &pieceConn{unread: out.written, lengths: lengths}
			b := &backend{frameConn: (&pieceConn{}).frameConn(), client: &client{frameConn: conn.frameConn()}}
			if err := b.client.awaitByte(); err != nil {
				t.Fatal(err)
			}
			if err := serve(b); err != nil {
				t.Fatal(err)
			}
			for i, timed := range conn.deadlines {
				if timed != (i > 0) {
					t.Errorf("%s in pieces %v: read %d of %d has a deadline: %t, want %t", how, lengths, i, len(conn.deadlines), timed, i > 0)
					break
				}
			}
			if conn.hasDeadline.Load() {
				t.Errorf("%s in pieces %v: deadline after the command, want none", how, lengths)
			}
		}
	}
}

// TestIdleConnectionKeepsSmallBuffer: an idle connection keeps only its small buffer, whatever it has read before.
func TestIdleConnectionKeepsSmallBuffer(t *testing.T) {
	all := make([]frameConn, 1000)
	heap := func() int64 {
		var m runtime.MemStats
		for range 3 { // the second collection empties pools
			runtime.GC()
		}
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	sent := encodeFrames("\x03INSERT", string(make([]byte, 100_000)))
	before := heap()
	for i := range all {
		conn := &pieceConn{unread: sent}
		all[i] = conn.frameConn()
		for range 2 {
			if _, err := all[i].readPacket(1 << 20); err != nil {
				t.Fatal(err)
			}
		}
		if err := all[i].awaitByte(); err != io.EOF {
			t.Fatal(err)
		}
	}
	if each := (heap() - before) / int64(len(all)); each > 1024 {
		t.Errorf("memory of an idle connection = %d bytes, want at most 1024", each)
	}
	runtime.KeepAlive(all)
}
