package proxy

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// dialTime limits the time to connect to the server, and the time of a query to it.
const dialTime = 10 * time.Second

// maxCommand returns the maximum length of a client's packet: the server's max_allowed_packet, or its default
// while that cannot be read.
func (s *Server) maxCommand() int {
	if n := s.maxAllowed.Load(); n > 0 {
		return int(n)
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialTime)
	defer cancel()
	s.Ping(ctx)
	return int(cmp.Or(s.maxAllowed.Load(), 64<<20))
}

// Ping reports whether the server answers queries of leafsql's own account, and reads the server's current
// limits. It returns the error of the query: the server's, the Connector's, or ctx's.
func (s *Server) Ping(ctx context.Context) error {
	var packet, errors int64
	err := s.own.QueryRowContext(ctx, "SELECT @@global.max_allowed_packet, LEAST(@@global.max_connect_errors, 9223372036854775807)").Scan(&packet, &errors)
	if err == nil {
		s.maxAllowed.Store(packet)
		s.maxErrors.Store(errors)
		s.admit((errors - 1) / 2)
	}
	return err
}

// admit sets the maximum number of logins that are in progress or were broken off since the server reset its
// count of them. After max_connect_errors consecutive broken logins, a server refuses the host from which they
// come, which is the proxy's for most clients. n is half of that limit, since as many logins again may be
// broken off unnoticed while a login succeeds.
func (s *Server) admit(n int64) {
	n = max(n, 1)
	if more := n - s.admitted.Swap(n); more >= 0 {
		s.logins.Release(more)
	} else {
		go func() {
			s.countAnew() // broken logins may hold more places than remain
			s.logins.Acquire(s.ctx, -more)
		}()
	}
}

// countAnew logs in with leafsql's own account, so that the server resets its count of broken logins, and
// releases their places.
func (s *Server) countAnew() error {
	ctx, cancel := context.WithTimeout(s.ctx, dialTime)
	defer cancel()
	conn, err := s.cfg.ServerConnector.Connect(ctx)
	if err == nil {
		conn.Close()
	}
	s.logins.Release(s.inARow.Swap(0))
	return err
}

// loginEnded counts a login, and releases its place and those of earlier logins when the server resets its
// count, which a successful login causes. If many clients in a row break off, leafsql's own account logs in. A
// balancer's own connections only count for the server, and not in Stats: no client failed to log in.
func (s *Server) loginEnded(ses *session, err error) {
	gone := errors.Is(err, errServerGone)
	if !ses.judged && !ses.client.forItself && !gone {
		s.counts.brokenOff.Add(1)
	}
	switch {
	case ses.toldWho():
		return
	case ses.judged && err == nil:
		s.logins.Release(1 + s.inARow.Swap(0))
		return
	case ses.judged:
		s.logins.Release(1)
		return
	}
	n := s.inARow.Add(1)
	if n%max(1, s.admitted.Load()/2) != 0 {
		return
	}
	err = s.countAnew()
	if (err != nil || !ses.client.forItself) && !gone {
		s.brokenOffLine.of(s.cfg.Logger).Warn("leafsql: many clients of the proxy in a row broke off their login, as health checks that only connect do", "how many", n,
			"max_connect_errors", s.maxErrors.Load(), "own login", err, "way out", "let them ask /readyz of -metrics; the server refuses the proxy's host after so many of them (error 1129), unless a login succeeds in between")
	}
}
