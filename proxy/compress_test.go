package proxy

import (
	"bytes"
	"encoding/binary"
	"io"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/internal/wire"
)

// compressedPair returns a session with a compressed connection, and the connection below it.
func compressedPair(unread []byte, lengths ...int) (*session, *pieceConn) {
	conn := &pieceConn{unread: unread, lengths: lengths}
	s := new(session)
	s.client.frameConn = conn.frameConn()
	s.startCompression()
	return s, conn
}

// compressedFrames returns the bytes that a compressed connection writes.
func compressedFrames(t testing.TB, writes ...[]byte) []byte {
	t.Helper()
	s, conn := compressedPair(nil)
	for _, b := range writes {
		if n, err := s.client.conn.Write(b); n != len(b) || err != nil {
			t.Fatalf("Write(%d bytes) = %d, %v", len(b), n, err)
		}
	}
	return conn.written
}

// TestCompressedPacketsAreReadInAnyPieces: packets are read back as they were written, in pieces of any length and with
// uncompressed frames between them, and no memory stays in use.
func TestCompressedPacketsAreReadInAnyPieces(t *testing.T) {
	random := make([]byte, 100_000) // cannot be compressed
	for i := range random {
		random[i] = byte(i*i>>3 ^ i>>7)
	}
	packets := []string{"", "short", strings.Repeat("long", 100_000), string(random), "\x00"}
	sent := compressedFrames(t, encodeFrames(packets...), []byte{0, 0}, []byte{0, 0}, encodeFrames(packets[2]), encodeFrames("last"))
	for _, lengths := range [][]int{nil, {1}, {3, 1000}, {7, 2, 50_000}, {1 << 20}} {
		s, _ := compressedPair(sent, lengths...)
		for _, want := range append(packets, "", packets[2], "last") {
			if err := s.client.awaitByte(); err != nil {
				t.Fatal(err)
			}
			if got, err := s.client.readPacket(1 << 20); string(got) != want || err != nil {
				t.Fatalf("pieces %v: packet = %.20q of %d bytes, %v; want %.20q of %d", lengths, got, len(got), err, want, len(want))
			}
		}
		if err := s.client.awaitByte(); err != io.EOF || s.client.buf != nil || s.client.compressed.buf != nil || s.client.conn.(*compressedConn).content != nil {
			t.Errorf("pieces %v: idle = %v with buffers of %d and %d bytes, want EOF without buffers and inflater", lengths, err, len(s.client.buf), len(s.client.compressed.buf))
		}
	}
}

// TestCompressedFramesContinueTheNumbers: the numbers of frames follow that of the last frame that was read.
func TestCompressedFramesContinueTheNumbers(t *testing.T) {
	s, conn := compressedPair(slices.Concat([]byte{5, 0, 0, 254, 0, 0, 0}, encodeFrames("a")))
	if got, err := s.client.readPacket(10); string(got) != "a" || err != nil {
		t.Fatalf("packet = %q, %v", got, err)
	}
	s.client.send(make([]byte, 2*readBufferSize))
	var seqs []byte
	for b := conn.written; len(b) > 0; b = b[compressedHeader+int(binary.LittleEndian.Uint32(b)&wire.MaxFrame):] {
		seqs = append(seqs, b[3])
	}
	if want := []byte{255, 0, 1}; !bytes.Equal(seqs, want) {
		t.Errorf("numbers of frames = %d, want %d", seqs, want)
	}
}

// TestDamagedCompressedFramesAreErrors: a frame with more or fewer bytes than it declares, or without valid zlib data, is an
// error.
func TestDamagedCompressedFramesAreErrors(t *testing.T) {
	whole := compressedFrames(t, encodeFrames(strings.Repeat("a", 20_000)))
	declared := func(n int) []byte {
		b := bytes.Clone(whole)
		binary.LittleEndian.PutUint32(b[3:], uint32(n)<<8)
		return b
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-1]++ // in the checksum
	for name, sent := range map[string][]byte{
		"more than declared": declared(19_000), "less than declared": declared(1<<24 - 1), "wrong checksum": damaged,
		"not zlib's": slices.Concat([]byte{30, 0, 0, 0, 0, 1, 0}, make([]byte, 30)), "an empty frame": {0, 0, 0, 0, 10, 0, 0},
	} {
		s, _ := compressedPair(sent)
		if p, err := s.client.readPacket(1 << 20); err == nil || err == io.EOF {
			t.Errorf("%s: packet = %d bytes, %v; want an error of the frame", name, len(p), err)
		}
	}
}

// TestCompressedBombsTakeLittleMemory: a frame takes memory for the bytes received, not for those that it declares in either
// length, and has freed all of it when the connection ends in the middle.
func TestCompressedBombsTakeLittleMemory(t *testing.T) {
	const connections = 20
	allocated := func() uint64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc
	}
	before := allocated()
	for range connections {
		s, _ := compressedPair([]byte{255, 255, 255, 0, 255, 255, 255, 'x'})
		if _, err := s.client.readPacket(1 << 30); err != io.ErrUnexpectedEOF {
			t.Errorf("packet = %v, want %v", err, io.ErrUnexpectedEOF)
		}
	}
	if n := allocated() - before; n > connections<<20 {
		t.Errorf("%d headers of 16 MiB took %d KiB, want less than a MiB each", connections, n>>10)
	}

	const received = 1 << 20
	s, _ := compressedPair(append([]byte{255, 255, 255, 0, 255, 255, 255}, make([]byte, received)...))
	if _, err := s.client.readPacket(1 << 30); err != io.ErrUnexpectedEOF {
		t.Errorf("packet = %v, want %v", err, io.ErrUnexpectedEOF)
	}
	used := &s.client.memory.used
	if n := used.Load(); n < received || n > 5*received {
		t.Errorf("memory for %d received bytes = %d, want at most five times as much", received, n)
	}
	s.client.returnBuffer()
	s.client.compressed.returnBuffer()
	if n := used.Load(); n != 0 {
		t.Errorf("bytes that are still reserved = %d, want none", n)
	}
}

// FuzzCompressed: no bytes of a client cause a panic, and pieces of any length give the same content. Written
// bytes are read back.
func FuzzCompressed(f *testing.F) {
	f.Add(compressedFrames(f, encodeFrames("short"), encodeFrames(strings.Repeat("long", 100))), []byte{1, 7, 30})
	f.Add([]byte{5, 0, 0, 254, 0, 0, 0, 1, 0, 0, 0, 'a'}, []byte{})
	f.Fuzz(func(t *testing.T, sent, cuts []byte) {
		read := func(sent []byte, lengths ...int) (string, error) {
			s, _ := compressedPair(sent, lengths...)
			var all []byte
			for {
				b, err := s.client.readAtLeast(1)
				if err != nil {
					return string(all), err
				}
				all = append(all, b...)
				s.client.discard(len(b))
				if len(all) > 1<<20 {
					return string(all[:1<<20]), nil
				}
			}
		}
		want, wantErr := read(sent)
		for _, way := range cutWays(len(sent), cuts) {
			if got, err := read(sent, way...); got != want && (err == nil) == (wantErr == nil) && len(got) == len(want) || len(got) > 1<<20 {
				t.Errorf("pieces %v: read %d bytes, %v; want %d, %v", way, len(got), err, len(want), wantErr)
			}
		}
		if got, err := read(compressedFrames(t, sent, cuts)); got != string(sent)+string(cuts) && len(got) < 1<<20 {
			t.Errorf("read back %d bytes, %v, want the %d bytes written", len(got), err, len(sent)+len(cuts))
		}
	})
}
