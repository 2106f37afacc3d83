// Package netfault is a TCP proxy on the loopback interface that spoils connections on command.
//
//	proxy := netfault.Start(t, server.Addr())
//	db := open("root@tcp(" + proxy.Addr() + ")/shop")
//	proxy.Delay(netfault.ToClient, 5*time.Millisecond)
//	proxy.Drop(netfault.Both)
//	proxy.Heal()
//
// It works on the bytes of established connections. It does not limit bandwidth, reorder, or speak any protocol, and a
// dropped connection attempt cannot be shown: the proxy itself always accepts, or refuses after Down.
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
	ToServer Direction = 1 << iota // what the client sends
	ToClient                       // what the server sends
	Both     = ToServer | ToClient
)

// A Verdict is what a filter wants done with a chunk of bytes.
type Verdict uint8

const (
	Pass  Verdict = iota // deliver it, after any delay
	Throw                // throw it and all that follows away and tell nobody; Heal resets the connection
	Reset                // throw it away and reset the connection
)

// A Proxy forwards connections to one server. Its methods may be called at any time, from any goroutine.
type Proxy struct {
	target string
	addr   string
	wg     sync.WaitGroup

	mu     sync.Mutex
	ln     net.Listener // nil while down
	links  map[*link]struct{}
	delay  [2]time.Duration // by index(Direction)
	drop   Direction
	filter func(Direction, []byte) Verdict
	left   [2]int // bytes until a cut, by index(Direction); -1: none is set
	silent int    // connections to come that nothing is delivered on
	closed bool
}

// Start starts a proxy for the server at target, a TCP address. It ends with the test.
func Start(t testing.TB, target string) *Proxy {
	t.Helper()
	p, err := New(target)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// New starts a proxy for the server at target, a TCP address. The caller must Close it.
func New(target string) (*Proxy, error) {
	p := &Proxy{target: target, addr: "127.0.0.1:0", links: map[*link]struct{}{}, left: [2]int{-1, -1}}
	if err := p.Up(); err != nil {
		return nil, err
	}
	return p, nil
}

// Switch leads new connections to the server at target. Those that are open stay where they are, as behind a balancer that
// keeps sessions.
func (p *Proxy) Switch(target string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.target = target
}

// Addr returns the address clients connect to. It stays the same over Down and Up.
func (p *Proxy) Addr() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addr
}

// Close cuts everything and waits until the proxy's goroutines have ended.
func (p *Proxy) Close() {
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.Down()
	p.wg.Wait()
}

// Cut resets all connections of the moment. New ones are served.
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

// Delay delivers bytes that arrive from now on d later, in the given direction. It is latency, not a limit of throughput.
func (p *Proxy) Delay(dir Direction, d time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.delay {
		if dir&direction(i) != 0 {
			p.delay[i] = d
		}
	}
}

// Drop makes the network a black hole in the given direction: bytes vanish, and neither side is told, until Heal.
func (p *Proxy) Drop(dir Direction) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drop |= dir
}

// Silence takes the next n connections and delivers nothing on them, either way, as a server does that is starting or stands
// still: neither side is told until Heal. Those after them are served.
func (p *Proxy) Silence(n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.silent = n
}

// Filter asks f about every chunk of bytes, from many goroutines; nil asks nobody. A chunk is what one read gave, so a
// message may come in pieces if it is large.
func (p *Proxy) Filter(f func(dir Direction, chunk []byte) Verdict) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.filter = f
}

// CutAfter delivers n more bytes that go the given way, over whichever connections, and resets the one that carries the
// next. That happens once.
func (p *Proxy) CutAfter(dir Direction, n int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i := range p.left {
		if dir&direction(i) != 0 {
			p.left[i] = n
		}
	}
}

// Heal ends delays, drops, silence, filters and cuts to come. Connections that lost bytes are reset.
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

func direction(index int) Direction { return 1 << index }

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
	if p.ln != ln { // went down meanwhile
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

// A link is one client's connection and the one to the server that belongs to it.
type link struct {
	client, server *net.TCPConn
	done           chan struct{} // closed by reset
	once           sync.Once
	lost           Direction // where bytes, or the end of them, were thrown away; guarded by Proxy.mu
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
	last bool // the connection is reset behind it
}

// pump carries one direction of a link. Reading goes on while earlier chunks wait for their time.
func (p *Proxy) pump(l *link, index int, from, to *net.TCPConn) {
	queue := make(chan chunk, 1024)
	var reader sync.WaitGroup
	reader.Go(func() {
		defer close(queue)
		for {
			buf := make([]byte, 32<<10)
			n, err := from.Read(buf)
			if n > 0 {
				verdict, delay := p.judge(l, index, buf[:n])
				pass, cut := p.cut(index, n)
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
				p.ended(l, index, err)
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

// ended is called when a link's direction has no more bytes. It returns when the other side may know.
func (p *Proxy) ended(l *link, index int, err error) {
	p.mu.Lock()
	l.lost |= p.drop & direction(index)
	lost := l.lost&direction(index) != 0
	p.mu.Unlock()
	switch {
	case lost: // a black hole swallows the goodbye too
		<-l.done
	case !errors.Is(err, io.EOF):
		l.reset()
	}
}

// cut counts n bytes against CutAfter, and says how many of them are delivered and whether the cut is behind those.
func (p *Proxy) cut(index, n int) (pass int, cut bool) {
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

// judge decides what happens to a chunk. Once a direction of a link has lost bytes, nothing comes after them.
func (p *Proxy) judge(l *link, index int, data []byte) (Verdict, time.Duration) {
	p.mu.Lock()
	l.lost |= p.drop & direction(index)
	filter, lost, delay := p.filter, l.lost&direction(index) != 0, p.delay[index]
	p.mu.Unlock()
	if lost {
		return Throw, 0
	}
	if filter == nil {
		return Pass, delay
	}
	verdict := filter(direction(index), data) // not under the lock: it may call the proxy
	if verdict == Throw {
		p.mu.Lock()
		l.lost |= direction(index)
		p.mu.Unlock()
	}
	return verdict, delay
}
