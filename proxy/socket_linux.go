package proxy

import (
	"io"
	"net"
	"os"
	"syscall"
	"unsafe"
)

// A socket is a connection with reads and writes that do not notify Go's scheduler of their system calls. The
// scheduler needs the notification only for calls that may block. These calls do not block, since Go's sockets are
// non-blocking and its poller waits until they are ready. Each notification wakes the runtime's monitor thread, which
// then polls every 20 µs. With one busy client this polling is half of the proxy's cost, as make bench-proxy shows. At
// most one goroutine may read at a time, and one may write.
type socket struct {
	net.Conn
	fd      syscall.RawConn
	in, out transfer
}

// newSocket returns a connection that reads and writes conn.
func newSocket(conn net.Conn) net.Conn {
	switch conn.(type) {
	case *net.TCPConn, *net.UnixConn:
	default: // a type that embeds one of these may have its own Read and Write
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
	op         string
	number     uintptr // number of the system call
	ready      func(fd uintptr) bool
	b          []byte
	n          int // bytes of b that are done
	errno      syscall.Errno
	unnotified int // number of reads since the last read that waited or notified the scheduler
}

// run transfers as many bytes as possible, and reports whether the transfer is done. If it is not, the poller
// waits.
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
			t.unnotified = 0
			return false
		default:
			t.errno = errno
			return true
		}
	}
}

// finish returns the result of a transfer. err is the poller's error.
func (s *socket) finish(t *transfer, err error) (int, error) {
	n, errno := t.n, t.errno
	t.b, t.n, t.errno = nil, 0, 0
	if err == nil && errno != 0 {
		local := s.LocalAddr()
		err = &net.OpError{Op: t.op, Net: local.Network(), Source: local, Addr: s.RemoteAddr(), Err: os.NewSyscallError(t.op, errno)}
	}
	return n, err
}

const (
	// longTransfer is the minimum length at which the scheduler is notified. It is just above the usual buffer size: the
	// kernel may need long to copy the bytes, and the command that is read may take long.
	longTransfer = readBufferSize + 1

	// maxUnnotified is the maximum number of consecutive reads that find data immediately and do not notify the
	// scheduler. It is limited because a goroutine that never waits is not preempted while the monitor sleeps.
	maxUnnotified = 64
)

func (s *socket) Read(b []byte) (int, error) {
	if s.in.unnotified++; len(b) == 0 || len(b) >= longTransfer || s.in.unnotified > maxUnnotified {
		s.in.unnotified = 0
		return s.Conn.Read(b)
	}
	s.in.b = b
	n, err := s.finish(&s.in, s.fd.Read(s.in.ready))
	if n == 0 && err == nil {
		err = io.EOF
	}
	return n, err
}

func (s *socket) Write(b []byte) (int, error) {
	if len(b) == 0 || len(b) >= longTransfer {
		return s.Conn.Write(b)
	}
	s.out.b = b
	return s.finish(&s.out, s.fd.Write(s.out.ready))
}
