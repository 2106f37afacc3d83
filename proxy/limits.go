package proxy

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// dialTimeout is the time limit for connecting to the server, and for a query to it.
const dialTimeout = 10 * time.Second

// maxCommand returns the maximum length of a client's packet: the server's max_allowed_packet, or its default
// while that cannot be read.
func (s *Server) maxCommand() int {
	if n := s.maxAllowedPacket.Load(); n > 0 {
		return int(n)
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	defer cancel()
	s.Ping(ctx)
	return int(cmp.Or(s.maxAllowedPacket.Load(), 64<<20))
}

// Ping reports whether the server answers queries of leafsql's own account, and reads the server's current
// limits. It returns the error of the query: the server's, the Connector's, or ctx's.
func (s *Server) Ping(ctx context.Context) error {
	var packet, errors int64
	err := s.ownDB.QueryRowContext(ctx, "SELECT @@global.max_allowed_packet, LEAST(@@global.max_connect_errors, 9223372036854775807)").Scan(&packet, &errors)
	if err == nil {
		s.maxAllowedPacket.Store(packet)
		s.maxConnectErrors.Store(errors)
		s.setLoginLimit((errors - 1) / 2)
	}
	return err
}

// setLoginLimit sets the maximum number of logins that are in progress or were broken off since the server last
// reset its count of broken logins. After max_connect_errors consecutive broken logins from a host, a server refuses
// the host, which is usually the proxy's host. n is half of max_connect_errors: while a login succeeds, up to n other
// logins may be broken off which the server counts and the proxy does not count.
func (s *Server) setLoginLimit(n int64) {
	n = max(n, 1)
	if more := n - s.loginLimit.Swap(n); more >= 0 {
		s.logins.Release(more)
	} else {
		go func() {
			s.resetBrokenLogins() // broken logins may hold more places than the new limit has
			s.logins.Acquire(s.ctx, -more)
		}()
	}
}

// resetBrokenLogins logs in with leafsql's own account, so that the server resets its count of broken logins.
// Then it releases the places of the broken logins in Server.logins.
func (s *Server) resetBrokenLogins() error {
	ctx, cancel := context.WithTimeout(s.ctx, dialTimeout)
	defer cancel()
	conn, err := s.cfg.ServerConnector.Connect(ctx)
	if err == nil {
		conn.Close()
	}
	s.logins.Release(s.brokenInARow.Swap(0))
	return err
}

// endLogin counts a login that has ended. After a successful login the server resets its count of broken logins, so
// endLogin releases the places of this login and of the broken logins. If many consecutive clients break off, leafsql's
// own account logs in. A balancer's own connections count for the limit, but not in Stats, since they are not clients.
func (s *Server) endLogin(ses *session, err error) {
	gone := errors.Is(err, errServerGone)
	if !ses.isLoginDecided && !ses.client.isBalancer && !gone {
		s.counts.brokenOff.Add(1)
	}
	switch {
	case ses.serverSeesClient():
		return
	case ses.isLoginDecided && err == nil:
		s.logins.Release(1 + s.brokenInARow.Swap(0))
		return
	case ses.isLoginDecided:
		s.logins.Release(1)
		return
	}
	n := s.brokenInARow.Add(1)
	if n%max(1, s.loginLimit.Load()/2) != 0 {
		return
	}
	err = s.resetBrokenLogins()
	if (err != nil || !ses.client.isBalancer) && !gone {
		s.brokenOffLine.logger(s.cfg.Logger).Warn("leafsql: many consecutive clients of the proxy disconnected during the login, as health checks that only connect do", "logins", n,
			"max_connect_errors", s.maxConnectErrors.Load(), "login_err", err, "hint", "let health checks request /readyz at the address of -metrics; after max_connect_errors of them without a successful login the server refuses the proxy's host (error 1129)")
	}
}
