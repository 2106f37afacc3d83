package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/wire"
)

// A session is one client with its connection to the server, from the greeting to the end.
// One goroutine runs it.
type session struct {
	*Server
	link
	from      netip.AddrPort // the client's; not valid: not known, or the balancer's own connection
	forItself bool           // a balancer connects for itself, such as to see whether the proxy is there
	judged    bool           // the server has let the client in, or not

	login fill.Login
	leaf  fill.Session

	ctx    context.Context // ends with the server's connection
	cancel context.CancelFunc

	mu      sync.Mutex
	waiting bool // for the client's next command, which wake ends
	woken   bool // by wake: run looks whether the session is to end
	streams bool // to a replica, which comes again by itself: it has no end of its own

	stmts   map[uint32]*preparedStmt // that are filled
	effects map[uint32]fill.Plan     // of those that are passed on and have effects
	newest  uint32                   // that was prepared; 0: that failed
	cursors map[uint32]bool          // of statements, which the client has not read to their ends
}

// turnAway tells a client that there are too many.
func (s *session) turnAway() {
	s.fail(1040, "", "Too many connections")
	s.client.conn.Close()
}

// serve is a session's life.
func (s *session) serve() {
	defer s.end()
	s.ctx, s.cancel = context.WithCancel(s.Server.ctx)
	defer s.cancel()
	defer s.recovered()
	if err := s.connect(); err != nil {
		return
	}
	id, err := s.watch.add(s.server.raw, s.hangUp)
	if err == nil {
		defer s.watch.remove(id)
		err = s.run()
	}
	if errors.Is(err, errServerGone) {
		s.serverEnds.Add(1)
	}
	if err != nil {
		s.cfg.Logger.Debug("leafsql: a session of the proxy ended", "client", s.who(), "error", err)
	}
}

// connect connects to the server and logs the client in there.
func (s *session) connect() error {
	if err := s.meet(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, loginTime)
	defer cancel()
	if err := s.logins.Acquire(ctx, 1); err != nil {
		s.turnedAway.Add(1)
		s.turnAway()
		return err
	}
	dialer := net.Dialer{Timeout: dialTime}
	conn, err := dialer.DialContext(s.ctx, s.network, s.cfg.Server)
	if err != nil {
		s.logins.Release(1)
		s.unreachable.Add(1)
		s.fail(2003, "", "leafsql: the server cannot be reached; see the log of leafsql proxy")
		s.unreachableLine.of(s.cfg.Logger).Warn("leafsql: the server to which clients are taken cannot be reached", "error", err)
		return err
	}
	s.Server.mu.Lock()
	s.server.raw, s.server.conn = conn, newSocket(conn)
	s.Server.mu.Unlock()
	if s.toldWho() {
		s.logins.Release(1)
	}
	if err = s.logIn(); err != nil {
		return err
	}
	s.client.bounded = true
	s.maxPacket = s.maxCommand()
	bound := s.bound()
	defer bound.end()
	s.leaf, err = fill.Attach(bound, s.cfg.Connector, backend{&s.link}, s.login)
	if err != nil { // the client has been told that it is logged in: the next answer is the first that can say it
		if _, gone := s.idle(); gone == nil {
			s.client.seq = 1
			s.fail(numberUnfilled, "HY000", s.public(err))
		}
		return err
	}
	return nil
}

// logIn logs the client in, which has a place among Server.logins.
func (s *session) logIn() (err error) {
	defer func() { s.loginEnded(err) }()
	if err = s.introduce(); err == nil {
		err = s.handshake()
	}
	return err
}

// end ends a session.
func (s *session) end() {
	s.Server.mu.Lock()
	delete(s.sessions, s)
	s.Server.mu.Unlock()
	s.client.hangUp()
	if s.server.conn != nil {
		s.server.conn.Close()
	}
	s.client.giveBack()
	s.server.giveBack()
	s.dropStatements()
}

func newSession(of *Server, client net.Conn) *session {
	s := &session{Server: of, link: link{counters: &of.counts}, stmts: make(map[uint32]*preparedStmt), effects: make(map[uint32]fill.Plan), cursors: make(map[uint32]bool)}
	s.client = end{raw: client, conn: newSocket(client), small: make([]byte, smallBuffer), memory: &of.memory}
	s.server.memory = &of.memory
	return s
}

// run serves commands until one side ends.
func (s *session) run() error {
	for {
		switch woken, err := s.idle(); {
		case s.ctx.Err() != nil:
			s.client.seq = 0
			if c, ok := s.client.conn.(*compressed); ok {
				c.seq.Store(0)
			}
			return s.lastWords()
		case s.draining.Load() && s.atRest(), err == io.EOF:
			return nil
		case woken:
			continue
		case err != nil:
			return err
		}
		quit, err := s.command()
		switch {
		case s.lost != nil:
			return s.lost
		case quit || err != nil:
			return err
		}
		s.attributes, s.extra, s.gtids = s.noAttributes, nil, nil
	}
}

// idle waits for the client's next command. It is woken for what else the session has to do.
func (s *session) idle() (woken bool, err error) {
	s.mu.Lock()
	s.waiting = true
	stay := s.ctx.Err() == nil && !(s.draining.Load() && s.atRest())
	s.mu.Unlock()
	if stay {
		err = s.client.idle()
	}
	s.mu.Lock()
	s.waiting = false
	if s.woken {
		s.woken = false
		s.client.raw.SetReadDeadline(time.Time{})
		woken = errors.Is(err, os.ErrDeadlineExceeded)
	}
	s.mu.Unlock()
	return woken, err
}

// hangUp notes that the server ended the connection.
func (s *session) hangUp() {
	s.cancel()                         // the client may wait for ids
	s.client.raw.SetReadDeadline(past) // the client may have stopped in the middle of a file
	s.wake()
}

// wake ends idle, and a stream once the proxy is to end.
func (s *session) wake() {
	s.mu.Lock()
	if s.waiting {
		s.woken = true
		s.client.raw.SetReadDeadline(time.Unix(1, 0))
	}
	if s.streams && s.draining.Load() {
		s.server.raw.Close()
	}
	s.mu.Unlock()
}

// atRest says that the client loses nothing but its connection if that ends now.
func (s *session) atRest() bool {
	c, _ := s.client.conn.(*compressed)
	return s.client.w == s.client.r && (c == nil || c.left == 0 && c.in.w == c.in.r) && s.status&wire.InTransaction == 0 && len(s.cursors) == 0
}
