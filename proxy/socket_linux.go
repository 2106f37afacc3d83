package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A socket is a connection whose reads and writes do not tell Go's scheduler that a system
// call begins: that is for calls that may block, and these do not, as Go's sockets are
// non-blocking and its poller waits for them. Each such call wakes the runtime's monitor
// thread, which then looks around every 20 µs: for one busy client that is half of what the
// proxy costs, as make bench-proxy shows. At most one goroutine reads at a time, and one
// writes.
type socket struct {
	net.Conn
	fd      syscall.RawConn
	in, out transfer
}

// newSocket returns a connection that reads and writes conn.
func newSocket(conn net.Conn) net.Conn {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
	default: // what has one of these inside it may read and write in its own way
		return conn
	}
	fd, err := conn.(syscall.Conn).SyscallConn()
	if err != nil {
		return conn
	}
	s := &socket{Conn: conn, fd: fd, in: transfer{op: "read", number: syscall.SYS_READ}, out: transfer{op: "write", number: syscall.SYS_WRITE}}
	s.in.ready, s.out.ready = s.in.run, s.out.run
	return s
}

// A transfer is one read or write.
type transfer struct {
	op     string
	number uintptr // of the system call
	ready  func(fd uintptr) bool
	b      []byte
	n      int // bytes of b that are done
	errno  syscall.Errno
	untold int // reads since the last that waited, or told the scheduler
}

// run moves what it can, and says whether the transfer is done: else the poller waits.
func (t *transfer) run(fd uintptr) bool {
	for {
		rest := t.b[t.n:]
		n, _, errno := syscall.RawSyscall(t.number, fd, uintptr(unsafe.Pointer(unsafe.SliceData(rest))), uintptr(len(rest)))
		switch errno {
		case 0:
			t.n += int(n)
			if t.number == syscall.SYS_READ || t.n == len(t.b) {
				return true
			}
		case syscall.EINTR:
		case syscall.EAGAIN:
			t.untold = 0
			return false
		default:
			t.errno = errno
			return true
		}
	}
}

// end returns what a transfer came to, with the poller's error.
func (s *socket) end(t *transfer, err error) (int, error) {
	n, errno := t.n, t.errno
	t.b, t.n, t.errno = nil, 0, 0
	if err == nil && errno != 0 {
		local := s.LocalAddr()
		err = &net.OpError{Op: t.op, Net: local.Network(), Source: local, Addr: s.RemoteAddr(), Err: os.NewSyscallError(t.op, errno)}
	}
	return n, err
}

const (
	// long is more bytes than a usual buffer holds: the kernel may copy them for long, and the
	// command that is read may take long, so that the scheduler has to know.
	long = readBuffer + 1

	// mostUntold is how many reads in a row may find at once what they read. As long as the
	// monitor sleeps, who never waits is never made to give others their turn.
	mostUntold = 64
)

func (s *socket) Read(b []byte) (int, error) {
	if s.in.untold++; len(b) == 0 || len(b) >= long || s.in.untold > mostUntold {
		s.in.untold = 0
		return s.Conn.Read(b)
	}
	s.in.b = b
	n, err := s.end(&s.in, s.fd.Read(s.in.ready))
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (s *socket) Write(b []byte) (int, error) {
	if len(b) == 0 || len(b) >= long {
		return s.Conn.Write(b)
	}
	s.out.b = b
	return s.end(&s.out, s.fd.Write(s.out.ready))
}
