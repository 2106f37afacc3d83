package proxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// A watch detects that a server ends connections, such as after wait_timeout, while their clients are idle:
// they are not read then. Without it, a pool that checks its connection before each use would find it open, and
// lose its next statement.
type watch struct {
	epoll int
	file  *os.File // the epoll file, for Go's poller

	// The key is an internal id: an event that is read late must not be attributed to the next connection with
	// the same file descriptor.
	mu   sync.Mutex
	gone map[int32]func()
	last int32
}

// edge is EPOLLET; the type of its constant does not fit.
const edge = 1 << 31

func newWatch() (*watch, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(epoll, true); err != nil { // NewFile registers only non-blocking files with the poller
		return nil, errors.Join(err, syscall.Close(epoll))
	}
	w := &watch{epoll: epoll, file: os.NewFile(uintptr(epoll), "epoll"), gone: make(map[int32]func())}
	events, err := w.file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	go events.Read(w.hasRead)
	return w, nil
}

// add watches a connection, and calls gone when the server has ended it. Callers have to pass the id to remove.
func (w *watch) add(server net.Conn, gone func()) (id int32, err error) {
	conn, ok := server.(syscall.Conn)
	if !ok {
		return 0, nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	for id = next(w.last); w.gone[id] != nil; id = next(id) {
	}
	w.last = id
	w.gone[id] = gone
	w.mu.Unlock()
	control := raw.Control(func(fd uintptr) {
		err = syscall.EpollCtl(w.epoll, syscall.EPOLL_CTL_ADD, int(fd), &syscall.EpollEvent{Events: syscall.EPOLLRDHUP | edge, Fd: id})
	})
	if err = errors.Join(control, err); err != nil {
		w.remove(id)
	}
	return id, err
}

// next returns the id after another one: 1 after the largest.
func next(id int32) int32 { return max(id+1, 1) }

// remove deletes a connection's callback. The connection leaves the watch when it is closed.
func (w *watch) remove(id int32) {
	w.mu.Lock()
	delete(w.gone, id)
	w.mu.Unlock()
}

// hasRead handles all pending events. It returns false, so that the poller calls it again with the next ones.
func (w *watch) hasRead(epoll uintptr) (done bool) {
	var events [64]syscall.EpollEvent
	for {
		n, err := syscall.EpollWait(int(epoll), events[:], 0)
		if err == syscall.EINTR {
			continue
		}
		for _, e := range events[:max(n, 0)] {
			w.mu.Lock()
			gone := w.gone[e.Fd]
			w.mu.Unlock()
			if gone != nil {
				gone()
			}
		}
		if n <= 0 {
			return false
		}
	}
}

func (w *watch) close() error { return w.file.Close() }
