// Package netfault is a TCP proxy on the loopback interface that causes faults on command.
//
//	proxy := netfault.Start(t, server.Addr())
//	db := open("root@tcp(" + proxy.Addr() + ")/shop")
//	proxy.Delay(netfault.ToClient, 5*time.Millisecond)
//	proxy.Drop(netfault.Both)
//	proxy.Heal()
//
// It works on the bytes of established connections. It does not limit bandwidth, reorder bytes, or implement any
// protocol. It cannot simulate a dropped connection attempt: the proxy always accepts, or refuses after Down.
package netfault

import (
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"
)

// A Direction is one way, or both ways, through the proxy.
type Direction uint8

const (
	ToServer Direction = 1 << iota // bytes from the client
	ToClient                       // bytes from the server
	Both     = ToServer | ToClient
)

// A Verdict is a filter's decision about a chunk of bytes.
type Verdict uint8

const (
	Pass    Verdict = iota // deliver it, after any delay
	Discard                // discard it and everything after it silently; Heal resets the connection
	Reset                  // discard it and reset the connection
)

// A Proxy forwards connections to one server. It is safe for concurrent use.
type Proxy struct {
	target string
	addr   string
	wg     sync.WaitGroup

	mu     sync.Mutex
	ln     net.Listener // nil while down
	links  map[*link]struct{}
	delay  [2]time.Duration // index 0: to the server, 1: to the client
	drop   Direction
	filter func(Direction, []byte) Verdict
	left   [2]int // bytes until a cut, indexed like delay; -1: no cut
	silent int    // number of future connections on which nothing is delivered
	closed bool
}

// Start starts a proxy for the server at target, a TCP address. The proxy is closed
// when the test ends.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// New starts a proxy for the server at target, a TCP address. The caller closes it.
func New(target string) (*Proxy, error) {
	p := &Proxy{target: target, addr: "127.0.0.1:0", links: map[*link]struct{}{}, left: [2]int{-1, -1}}
	if err := p.Up(); err != nil {
		return nil, err
	}
	return p, nil
}

// Switch forwards new connections to the server at target. Open connections keep their server, as with a balancer that
// keeps sessions.
func (p *Proxy) Switch(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Addr returns the address for clients. It does not change in Down and Up.
func (p *Proxy) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr
}

// Close resets all connections and waits until the proxy's goroutines have ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Down()
	p.wg.Wait()
}

// Cut resets all open connections. New ones are forwarded.
func (p *Proxy) Cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.reset()
	}
}

// Down resets all connections and refuses new ones until Up.
func (p *Proxy) Down() {
	p.mu.Lock()
	if p.ln != nil {
		p.ln.Close()
		p.ln = nil
	}
	p.mu.Unlock()
	p.Cut()
}

// Up accepts connections again after Down.
func (p *Proxy) Up() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ln != nil || p.closed {
		return nil
	}
	ln, err := net.Listen("tcp", p.addr)
	if err != nil {
		return err
	}
	p.ln, p.addr = ln, ln.Addr().String()
	p.wg.Go(func() { p.accept(ln) })
	return nil
}

// Delay delays the bytes in the given direction that arrive from now on by d. It does not limit throughput.
func (p *Proxy) Delay(dir Direction, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.delay {
		if dir&indexDirection(i) != 0 {
			p.delay[i] = d
		}
	}
}

// Drop discards bytes in the given direction until Heal: neither side gets an error.
func (p *Proxy) Drop(dir Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop |= dir
}

// Silence accepts the next n connections and delivers nothing on them, in either direction, like a server that is
// starting or frozen: neither side gets an error until Heal. Later connections are forwarded.
func (p *Proxy) Silence(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = n
}

// Filter calls f for every chunk of bytes, from many goroutines; nil removes the filter. A chunk is the result of one
// read, so a large message may arrive in several chunks.
func (p *Proxy) Filter(f func(dir Direction, chunk []byte) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = f
}

// CutAfter delivers n more bytes in the given direction, over all connections together, and resets the connection on
// which the next byte arrives. Other connections are not reset.
func (p *Proxy) CutAfter(dir Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.left {
		if dir&indexDirection(i) != 0 {
			p.left[i] = n
		}
	}
}

// Heal ends delays, drops, silence, filters and pending cuts. Connections that lost bytes are reset.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay, p.drop, p.filter, p.left, p.silent = [2]time.Duration{}, 0, nil, [2]int{-1, -1}, 0
	for l := range p.links {
		if l.lost != 0 {
			l.reset()
		}
	}
}

// Conns returns the number of open connections.
func (p *Proxy) Conns() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

func indexDirection(index int) Direction { return 1 << index }

func (p *Proxy) accept(ln net.Listener) {
	for {
		client, err := ln.Accept()
		if err != nil {
			return
		}
		p.wg.Go(func() { p.serve(ln, client.(*net.TCPConn)) })
	}
}

func (p *Proxy) serve(ln net.Listener, client *net.TCPConn) {
	p.mu.Lock()
	target := p.target
	p.mu.Unlock()
	server, err := net.DialTimeout("tcp", target, 10*time.Second)
	if err != nil {
		client.SetLinger(0)
		client.Close()
		return
	}
	l := &link{client: client, server: server.(*net.TCPConn), done: make(chan struct{})}
	p.mu.Lock()
	p.links[l] = struct{}{}
	if p.silent > 0 {
		p.silent--
		l.lost = Both
	}
	if p.ln != ln { // Down was called meanwhile
		l.reset()
	}
	p.mu.Unlock()

	var both sync.WaitGroup
	both.Go(func() { p.pump(l, 0, l.client, l.server) })
	both.Go(func() { p.pump(l, 1, l.server, l.client) })
	both.Wait()

	client.Close()
	server.Close()
	p.mu.Lock()
	delete(p.links, l)
	p.mu.Unlock()
}

// A link is a client's connection and the corresponding one to the server.
type link struct {
	client, server *net.TCPConn
	done           chan struct{} // closed by reset
	once           sync.Once
	lost           Direction // directions in which bytes, or the end of the stream, were discarded; guarded by Proxy.mu
}

func (l *link) reset() {
	l.once.Do(func() {
		close(l.done)
		for _, c := range []*net.TCPConn{l.client, l.server} {
			c.SetLinger(0)
			c.Close()
		}
	})
}

type chunk struct {
	data []byte
	due  time.Time
	last bool // the connection is reset after it
}

// pump forwards one direction of a link. It continues to read while earlier chunks are delayed.
func (p *Proxy) pump(l *link, index int, from, to *net.TCPConn) {
	queue := make(chan chunk, 1024)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				verdict, delay := p.filterChunk(l, index, buf[:n])
				pass, cut := p.countCut(index, n)
				switch {
				case verdict == Reset || cut && pass == 0:
					l.reset()
				case verdict == Pass:
					select {
					case queue <- chunk{buf[:pass], time.Now().Add(delay), cut}:
					case <-l.done:
					}
				}
			}
			if err != nil {
				p.awaitStreamEnd(l, index, err)
				return
			}
		}
	})
	for c := range queue {
		if wait := time.Until(c.due); wait > 0 {
			select {
			case <-time.After(wait):
			case <-l.done:
			}
		}
		if _, err := to.Write(c.data); err != nil || c.last {
			l.reset()
		}
	}
	to.CloseWrite()
}

// awaitStreamEnd is called at the end of the stream in one direction of a link. It returns when the end may be
// forwarded.
func (p *Proxy) awaitStreamEnd(l *link, index int, err error) {
	p.mu.Lock()
	l.lost |= p.drop & indexDirection(index)
	lost := l.lost&indexDirection(index) != 0
	p.mu.Unlock()
	switch {
	case lost: // after a loss, the end of the stream is also discarded
		<-l.done
	case !errors.Is(err, io.EOF):
		l.reset()
	}
}

// countCut counts n bytes towards the limit of CutAfter. It returns the number of bytes to deliver, and whether the
// connection is reset after them.
func (p *Proxy) countCut(index, n int) (pass int, cut bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	left := p.left[index]
	switch {
	case left < 0:
		return n, false
	case n <= left:
		p.left[index] -= n
		return n, false
	}
	p.left[index] = -1
	return left, true
}

// filterChunk returns the verdict on a chunk and its delay. After a loss in one direction, all later bytes of this
// direction are discarded.
func (p *Proxy) filterChunk(l *link, index int, data []byte) (Verdict, time.Duration) {
	p.mu.Lock()
	l.lost |= p.drop & indexDirection(index)
	filter, lost, delay := p.filter, l.lost&indexDirection(index) != 0, p.delay[index]
	p.mu.Unlock()
	if lost {
		return Discard, 0
	}
	if filter == nil {
		return Pass, delay
	}
	verdict := filter(indexDirection(index), data) // without the lock: it may call the proxy
	if verdict == Discard {
		p.mu.Lock()
		l.lost |= indexDirection(index)
		p.mu.Unlock()
	}
	return verdict, delay
}
