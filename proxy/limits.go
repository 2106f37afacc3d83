package proxy

import (
	"context"
	"time"
)

// dialTime is how long connecting to the server may take, and a question to it.
const dialTime = 10 * time.Second

// limits are what the server allows clients.
type limits struct {
	packet        int   // max_allowed_packet: how long a client's packet may be
	connectErrors int64 // max_connect_errors
}

// limits are the server's, asked once, or its defaults while it does not tell.
func (s *Server) limits() limits {
	if l := s.known.Load(); l != nil {
		return *l
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialTime)
	defer cancel()
	var l limits
	err := s.own.QueryRowContext(ctx, "SELECT @@global.max_allowed_packet, @@global.max_connect_errors").Scan(&l.packet, &l.connectErrors)
	if err != nil || l.packet == 0 {
		return limits{64 << 20, 100}
	}
	s.known.Store(&l)
	return l
}

// loginBrokenOff counts a login that the client did not bring to an end. After
// max_connect_errors of them in a row a server refuses the host that they come from, and to it
// all clients of whom it is told nothing come from the proxy's: one that connects again and
// again without a login, as balancers do to see whether a server is there, would keep all others
// out. A login of leafsql's own begins the server's count anew. What a balancer does of its own
// counts for the server alone: nobody failed to log in.
func (s *session) loginBrokenOff() {
	if !s.forItself {
		s.counts.brokenOff.Add(1)
	}
	if s.toldWho() {
		return
	}
	n, most := s.inARow.Add(1), s.limits().connectErrors
	if n%max(1, most/2) != 0 {
		return
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialTime)
	defer cancel()
	conn, err := s.there.Connect(ctx)
	if err == nil {
		conn.Close()
		s.inARow.Store(0)
	}
	if s.forItself && err == nil {
		return
	}
	s.log.Warn("leafsql: many clients of the proxy in a row broke off their login, as health checks that only connect do", "how many", n,
		"max_connect_errors", most, "own login", err, "way out", "let them ask /readyz of -metrics; the server refuses the proxy's host after so many of them (error 1129), unless a login succeeds in between")
}
