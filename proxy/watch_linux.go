package proxy

import (
	"errors"
	"net"
	"os"
	"sync"
	"syscall"
)

// A hangupWatch detects that a server ends connections, such as after wait_timeout, while their clients are
// idle and the proxy does not read the connections. Without the watch, a client's pool that checks a connection
// before each use would find it open, and the next statement would fail.
type hangupWatch struct {
	epoll int
	file  *os.File // the epoll file, for Go's poller

	// The key of callbacks is an internal id and not a file descriptor, because an event that is read late must not be
	// attributed to the next connection with the same descriptor.
	mu        sync.Mutex
	callbacks map[int32]func()
	lastID    int32
}

// edgeTriggered is EPOLLET. The constant in package syscall is negative, and does not fit a uint32.
const edgeTriggered = 1 << 31

func newWatch() (*hangupWatch, error) {
	epoll, err := syscall.EpollCreate1(syscall.EPOLL_CLOEXEC)
	if err != nil {
		return nil, err
	}
	if err := syscall.SetNonblock(epoll, true); err != nil { // NewFile registers only non-blocking files with the poller
		return nil, errors.Join(err, syscall.Close(epoll))
	}
	w := &hangupWatch{epoll: epoll, file: os.NewFile(uintptr(epoll), "epoll"), callbacks: make(map[int32]func())}
	events, err := w.file.SyscallConn()
	if err != nil {
		return nil, errors.Join(err, w.close())
	}
	go events.Read(w.handleEvents)
	return w, nil
}

// add watches a connection, and calls hangUp when the server has ended it. Callers have to pass the id to
// remove.
func (w *hangupWatch) add(server net.Conn, hangUp func()) (id int32, err error) {
	conn, ok := server.(syscall.Conn)
	if !ok {
		return 0, nil
	}
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0, err
	}
	w.mu.Lock()
	for id = nextID(w.lastID); w.callbacks[id] != nil; id = nextID(id) {
	}
	w.lastID = id
	w.callbacks[id] = hangUp
	w.mu.Unlock()
	control := raw.Control(func(fd uintptr) {
		err = syscall.EpollCtl(w.epoll, syscall.EPOLL_CTL_ADD, int(fd), &syscall.EpollEvent{Events: syscall.EPOLLRDHUP | edgeTriggered, Fd: id})
	})
	if err = errors.Join(control, err); err != nil {
		w.remove(id)
	}
	return id, err
}

// nextID returns the id after id: 1 after the largest.
func nextID(id int32) int32 { return max(id+1, 1) }

// remove deletes a connection's callback. The connection leaves the watch when it is closed.
func (w *hangupWatch) remove(id int32) {
	w.mu.Lock()
	delete(w.callbacks, id)
	w.mu.Unlock()
}

// handleEvents handles all pending events. It returns false, so that the poller calls it again with the next
// ones.
func (w *hangupWatch) handleEvents(epoll uintptr) (done bool) {
	var events [64]syscall.EpollEvent
	for {
		n, err := syscall.EpollWait(int(epoll), events[:], 0)
		if err == syscall.EINTR {
			continue
		}
		for _, e := range events[:max(n, 0)] {
			w.mu.Lock()
			hangUp := w.callbacks[e.Fd]
			w.mu.Unlock()
			if hangUp != nil {
				hangUp()
			}
		}
		if n <= 0 {
			return false
		}
	}
}

func (w *hangupWatch) close() error { return w.file.Close() }
