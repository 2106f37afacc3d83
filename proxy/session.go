package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"

	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/wire"
)

// A session is one client with its connection to the server, from the greeting to the end. It runs in one
// goroutine.
type session struct {
	proxy          *Server
	client         client
	server         backend
	isLoginDecided bool        // the server has accepted or refused the client's login
	isStreaming    atomic.Bool // the client is a replica that receives events: Shutdown closes its connection, and it reconnects

	login  fill.Login
	filler fill.Session

	ctx    context.Context // ends with the server's connection
	cancel context.CancelFunc

	stmts   map[uint32]*preparedStmt // statements that are filled
	effects map[uint32]fill.Plan     // plans of prepared statements that are passed on and have effects
	newest  uint32                   // id of the statement that was prepared last; 0 if the preparation failed
	cursors map[uint32]bool          // ids of statements with cursors that the client has not read to the end
}

// turnAway sends a client the error for too many connections.
func (s *session) turnAway() {
	s.client.sendError(1040, "", "Too many connections")
	s.client.conn.Close()
}

// serve runs a session from its login to its end.
func (s *session) serve() {
	defer s.close()
	s.ctx, s.cancel = context.WithCancel(s.proxy.ctx)
	defer s.cancel()
	s.server.waits.Context, s.server.waits.limit = s.ctx, s.proxy.cfg.FillTimeout
	defer s.recoverPanic()
	if err := s.connect(); err != nil {
		return
	}
	id, err := s.proxy.watch.add(s.server.raw, s.hangUp)
	if err == nil {
		defer s.proxy.watch.remove(id)
		err = s.run()
	}
	if errors.Is(err, errServerGone) {
		s.proxy.counts.serverEnds.Add(1)
	}
	if err != nil {
		s.proxy.cfg.Logger.Debug("leafsql: a session of the proxy ended", "client", s.clientAddress(), "err", err)
	}
}

// connect connects to the server and logs the client in there.
func (s *session) connect() error {
	if err := s.readClientAddress(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(s.ctx, loginTimeout)
	defer cancel()
	if err := s.proxy.logins.Acquire(ctx, 1); err != nil {
		s.proxy.counts.turnedAway.Add(1)
		s.turnAway()
		return err
	}
	dialer := net.Dialer{Timeout: dialTimeout}
	conn, err := dialer.DialContext(s.ctx, s.proxy.network, s.proxy.cfg.Server)
	if err != nil {
		s.proxy.logins.Release(1)
		s.proxy.counts.unreachable.Add(1)
		s.proxy.unreachableLine.logger(s.proxy.cfg.Logger).Warn("leafsql: the server that clients are connected to cannot be reached", "err", err)
		s.client.sendError(2003, "", "leafsql: the server cannot be reached; see the log of leafsql proxy")
		return err
	}
	s.proxy.mu.Lock()
	s.server.raw, s.server.conn = conn, newSocket(conn)
	s.proxy.mu.Unlock()
	if s.serverSeesClient() {
		s.proxy.logins.Release(1)
	}
	if err = s.logIn(); err != nil {
		return err
	}
	s.client.hasFrameTimeout = true
	s.server.maxPacket = s.proxy.maxCommand()
	s.filler, err = fill.Attach(&s.server.waits, s.proxy.cfg.Connector, &s.server, s.login)
	if err != nil { // the client has received the OK of its login, so it gets the error as the answer to its next command
		if _, gone := s.client.awaitCommand(s.isOver); gone == nil {
			s.client.seq = 1
			s.client.sendError(numberUnfilled, "HY000", s.clientMessage(err))
		}
		return err
	}
	return nil
}

// logIn logs the client in. The caller has a place of Server.logins, which logIn releases.
func (s *session) logIn() (err error) {
	defer func() { s.proxy.endLogin(s, err) }()
	if err = s.sendClientAddress(); err == nil {
		err = s.handshake()
	}
	return err
}

// close closes the connections of a session and frees its memory.
func (s *session) close() {
	s.proxy.mu.Lock()
	delete(s.proxy.sessions, s)
	s.proxy.mu.Unlock()
	s.client.hangUp()
	if s.server.conn != nil {
		s.server.conn.Close()
	}
	s.client.returnBuffer()
	s.server.returnBuffer()
	s.dropStatements()
}

func newSession(of *Server, conn net.Conn) *session {
	s := &session{proxy: of, stmts: make(map[uint32]*preparedStmt), effects: make(map[uint32]fill.Plan), cursors: make(map[uint32]bool)}
	s.client.frameConn = frameConn{raw: conn, conn: newSocket(conn), small: make([]byte, smallBufferSize), memory: &of.memory}
	s.server.client, s.server.memory = &s.client, &of.memory
	return s
}

// run serves commands until one side closes its connection.
func (s *session) run() error {
	for {
		switch woken, err := s.client.awaitCommand(s.isOver); {
		case s.ctx.Err() != nil:
			s.client.seq = 0
			if c, ok := s.client.conn.(*compressedConn); ok {
				c.seq.Store(0)
			}
			return s.server.passFinalError()
		case s.isOver(), err == io.EOF:
			return nil
		case woken:
			continue
		case err != nil:
			return err
		}
		s.server.waits.reset() // ends the wait of the last command; a generator may still use its context
		quit, err := s.serveCommand()
		switch {
		case s.server.lostErr != nil:
			return s.server.lostErr
		case quit || err != nil:
			return err
		}
		s.server.attributes, s.server.extraParams, s.server.gtids = s.server.noAttributes, nil, nil
	}
}

// isOver reports whether the session has to end before the next command. This is so if the server has ended the
// connection, or if the proxy shuts down and the client has no open transaction or other state to lose.
func (s *session) isOver() bool {
	c, _ := s.client.conn.(*compressedConn)
	atRest := s.client.w == s.client.r && (c == nil || c.remaining == 0 && c.input.w == c.input.r) && s.server.status&wire.InTransaction == 0 && len(s.cursors) == 0
	return s.ctx.Err() != nil || s.proxy.draining.Load() && atRest
}

// hangUp is called when the server has ended the connection.
func (s *session) hangUp() {
	s.cancel()                                 // the client may wait for ids
	s.client.raw.SetReadDeadline(pastDeadline) // the proxy may be waiting for the rest of a file
	s.client.wake()
}

// wake interrupts the wait for the client's next command, and ends a stream if the proxy shuts down.
func (s *session) wake() {
	s.client.wake()
	if s.isStreaming.Load() && s.proxy.draining.Load() {
		s.server.raw.Close()
	}
}
