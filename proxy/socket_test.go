package proxy

import (
	"bytes"
	"crypto/rand"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
)

// A socket behaves like the connection below it.
func TestSocketBehavesLikeItsConnection(t *testing.T) {
	for _, network := range []string{"tcp", "unix"} {
		for name, made := range map[string]func(net.Conn) net.Conn{
			"a net.Conn": func(c net.Conn) net.Conn { return c },
			"a socket":   newSocket,
		} {
			t.Run(network+", "+name, func(t *testing.T) {
				pair := func(t *testing.T) (net.Conn, net.Conn) {
					a, b := connectSockets(t, network)
					a.(interface{ SetWriteBuffer(int) error }).SetWriteBuffer(8 << 10) // smaller than a single write
					return made(a), b
				}
				t.Run("bytes", func(t *testing.T) { testSocketBytes(t, pair) })
				t.Run("ends", func(t *testing.T) { testSocketEnds(t, pair) })
				t.Run("deadlines", func(t *testing.T) { testSocketDeadlines(t, pair) })
			})
		}
	}
}

// connectSockets returns both ends of a connection.
func connectSockets(t *testing.T, network string) (net.Conn, net.Conn) {
	t.Helper()
	addr := "127.0.0.1:0"
	if network == "unix" {
		addr = filepath.Join(t.TempDir(), "s")
	}
	l, err := net.Listen(network, addr)
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial(network, l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { a.Close(); b.Close() })
	return a, b
}

// testSocketBytes writes and reads concurrently, in pieces of all sizes, with small buffers of the kernel.
func testSocketBytes(t *testing.T, pair func(*testing.T) (net.Conn, net.Conn)) {
	conn, peer := pair(t)
	sent := make([]byte, 6<<20)
	rand.Read(sent)
	echoed := make(chan error, 1)
	go func() {
		_, err := io.CopyBuffer(struct{ io.Writer }{peer}, struct{ io.Reader }{peer}, make([]byte, 1000))
		echoed <- errors.Join(err, peer.Close())
	}()
	written := make(chan error, 1)
	go func() {
		for b, size := sent, 0; len(b) > 0; size = (size*3 + 1) % (100 << 10) {
			n, err := conn.Write(b[:min(size, len(b))])
			if err != nil || n != min(size, len(b)) {
				written <- errors.Join(err, io.ErrShortWrite)
				return
			}
			b = b[n:]
		}
		written <- nil
	}()
	got := make([]byte, len(sent))
	for n, size := 0, 1; n < len(got); size = (size*5 + 1) % (70 << 10) {
		m, err := conn.Read(got[n:min(n+size, len(got))])
		if err != nil {
			t.Fatal(err)
		}
		n += m
	}
	if err := <-written; err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, sent) {
		t.Errorf("received %d bytes that differ from the %d bytes sent", len(got), len(sent))
	}
	if n, err := conn.Read(nil); n != 0 || err != nil {
		t.Errorf("Read(nil) = %d, %v, want 0, nil", n, err)
	}
	conn.Close()
	if err := <-echoed; err != nil {
		t.Error(err)
	}
}

func testSocketEnds(t *testing.T, pair func(*testing.T) (net.Conn, net.Conn)) {
	b := make([]byte, 10)
	t.Run("the peer has sent all", func(t *testing.T) {
		conn, peer := pair(t)
		peer.Write([]byte("last"))
		peer.(interface{ CloseWrite() error }).CloseWrite()
		if n, err := conn.Read(b); string(b[:n]) != "last" || err != nil {
			t.Errorf("Read() = %q, %v, want \"last\", nil", b[:n], err)
		}
		for range 2 {
			if n, err := conn.Read(b); n != 0 || err != io.EOF {
				t.Errorf("Read() = %d, %v, want 0, EOF", n, err)
			}
		}
	})
	t.Run("the peer is gone", func(t *testing.T) {
		conn, peer := pair(t)
		conn.Write([]byte("unread")) // makes the peer's kernel reset the connection
		peer.Close()
		var op *net.OpError
		_, err := conn.Read(b)
		if !errors.Is(err, syscall.ECONNRESET) || !errors.As(err, &op) {
			t.Errorf("Read() error = %#v, want a net.OpError with ECONNRESET", err)
		}
		if _, err = conn.Read(b); err != io.EOF {
			t.Errorf("next Read() error = %v, want EOF", err)
		}
		for range 2 { // the first write may still succeed
			_, err = conn.Write(b)
		}
		if !errors.Is(err, syscall.EPIPE) || !errors.As(err, &op) {
			t.Errorf("Write() error = %#v, want a net.OpError with EPIPE", err)
		}
	})
	t.Run("closed meanwhile", func(t *testing.T) {
		conn, _ := pair(t)
		read := make(chan error)
		go func() { _, err := conn.Read(make([]byte, 1)); read <- err }()
		runtime.Gosched()
		conn.Close()
		if err := <-read; !errors.Is(err, net.ErrClosed) {
			t.Errorf("Read() error = %v, want net.ErrClosed", err)
		}
		if _, err := conn.Write(b); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Write() error = %v, want net.ErrClosed", err)
		}
	})
}

// A deadline interrupts a waiting read and a waiting write, and no bytes are lost.
func testSocketDeadlines(t *testing.T, pair func(*testing.T) (net.Conn, net.Conn)) {
	conn, peer := pair(t)
	b := make([]byte, 10)
	conn.SetReadDeadline(time.Now().Add(time.Millisecond))
	for range 2 {
		if n, err := conn.Read(b); n != 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
			t.Fatalf("Read() = %d, %v, want 0, os.ErrDeadlineExceeded", n, err)
		}
	}
	conn.SetReadDeadline(time.Time{})
	peer.Write([]byte("later"))
	if n, err := conn.Read(b); string(b[:n]) != "later" || err != nil {
		t.Fatalf("Read() = %q, %v, want \"later\", nil", b[:n], err)
	}

	const piece = 50 << 10
	conn.SetWriteDeadline(time.Now().Add(50 * time.Millisecond))
	taken := 0
	for {
		n, err := conn.Write(make([]byte, piece))
		if taken += n; errors.Is(err, os.ErrDeadlineExceeded) {
			break
		}
		if err != nil || n != piece {
			t.Fatalf("Write() = %d, %v, want %d, nil", n, err, piece)
		}
	}
	conn.Close()
	if n, err := io.Copy(io.Discard, peer); n != int64(taken) || err != nil {
		t.Errorf("peer received %d bytes, %v, want the %d bytes written", n, err, taken)
	}
}

// Reads and writes of the socket do not allocate.
func TestSocketDoesNotAllocate(t *testing.T) {
	a, b := connectSockets(t, "tcp")
	conn, peer := newSocket(a), newSocket(b)
	buf := make([]byte, 100)
	if n := testing.AllocsPerRun(100, func() {
		conn.Write(buf)
		if _, err := io.ReadFull(peer, buf); err != nil {
			t.Fatal(err)
		}
	}); n > 0 {
		t.Errorf("allocations of a read and a write = %v, want 0", n)
	}
}

// A wrappedConn reads more, or less, than the one inside it.
type wrappedConn struct {
	*net.TCPConn
	read int
}

func (w *wrappedConn) Read(b []byte) (int, error) {
	n, err := w.TCPConn.Read(b)
	w.read += n
	return n, err
}

// Connections of a caller's own listener are read with their Read method, even if they embed a connection of
// package net.
func TestSocketReadsWrappedConnectionsByRead(t *testing.T) {
	a, b := connectSockets(t, "tcp")
	w := &wrappedConn{TCPConn: a.(*net.TCPConn)}
	b.Write([]byte("hello"))
	if n, err := newSocket(w).Read(make([]byte, 10)); n != 5 || err != nil || w.read != 5 {
		t.Errorf("Read() = %d, %v, want 5, nil; bytes from the connection's own Read = %d, want 5", n, err, w.read)
	}
}

// A goroutine that never waits does not block the others on a single processor: the runtime's monitor, which
// sleeps while there is no work, has to be notified.
func TestSocketLeavesOthersTheirTurn(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	const (
		reads = 1000
		each  = 2 * time.Millisecond
		most  = reads * each / 2
	)
	for name, test := range map[string]struct {
		sent []byte
		read func(conn net.Conn, nth int) error
	}{
		"reads of what is always there": {make([]byte, reads), func(conn net.Conn, _ int) error {
			_, err := conn.Read(make([]byte, 1))
			return err
		}},
		"work for a long command": {encodeFrames(string(make([]byte, 3*readBufferSize))), func(conn net.Conn, nth int) (err error) {
			if nth == 0 {
				e := frameConn{conn: conn, raw: conn, small: make([]byte, smallBufferSize), hasFrameTimeout: true, memory: &budget{limit: 1 << 30}}
				_, err = e.readPacket(1 << 20)
			}
			return err
		}},
	} {
		t.Run(name, func(t *testing.T) {
			busy, peer := connectSockets(t, "unix")
			other, call := connectSockets(t, "unix")
			if _, err := peer.Write(test.sent); err != nil {
				t.Fatal(err)
			}
			var called atomic.Bool
			go func() {
				newSocket(other).Read(make([]byte, 1))
				called.Store(true)
			}()
			conn, caller := newSocket(busy), newSocket(call)
			waitUntilProcessSleeps(t)
			caller.Write([]byte("x"))
			began := time.Now()
			for i := range reads {
				if err := test.read(conn, i); err != nil {
					t.Fatal(err)
				}
				for worked := time.Now(); time.Since(worked) < each; {
				}
				if called.Load() {
					break
				}
			}
			if took := time.Since(began); took > most {
				t.Errorf("another goroutine waited for %v, want at most %v", took, most)
			}
		})
	}
}

// waitUntilProcessSleeps returns after this whole process, including the runtime's monitor, has slept: another
// process wakes it, since a timer would wake the monitor.
func waitUntilProcessSleeps(t *testing.T) {
	t.Helper()
	waits, wakes := connectSockets(t, "unix")
	f, err := wakes.(*net.UnixConn).File()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command("sh", "-c", "sleep 0.3; echo")
	cmd.Stdout = f
	err = cmd.Start()
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { cmd.Wait() })
	if _, err := newSocket(waits).Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
}
