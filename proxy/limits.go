package proxy

import (
	"cmp"
	"context"
	"errors"
	"time"
)

// dialTime is how long connecting to the server may take, and a question to it.
const dialTime = 10 * time.Second

// maxCommand returns how long a client's packet may be: the server's max_allowed_packet, or its default while that cannot be read.
func (s *Server) maxCommand() int {
	if n := s.maxAllowed.Load(); n > 0 {
		return int(n)
	}
	ctx, cancel := context.WithTimeout(s.ctx, dialTime)
	defer cancel()
	s.Ping(ctx)
	return int(cmp.Or(s.maxAllowed.Load(), 64<<20))
}

// Ping reports whether the server answers leafsql's own account, and reads the limits that the server has now.
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

// admit sets how many logins there may be at a time: those in progress, and those that were broken off since the server began
// its count again. After max_connect_errors of the latter in a row a server refuses the host that they come from, and
// most clients come from the proxy's. Half of them are as many as may be broken off unseen while a login succeeds.
func (s *Server) admit(n int64) {
	n = max(n, 1)
	if more := n - s.admitted.Swap(n); more >= 0 {
		s.logins.Release(more)
	} else {
		go func() {
			s.countAnew() // logins that were broken off may hold more places than remain
			s.logins.Acquire(s.ctx, -more)
		}()
	}
}

// countAnew logs in with leafsql's own account, so that the server's count of broken logins begins again, and gives their places free.
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

// loginEnded counts a login, and gives it and those before it free once the server's count begins again: with a login that
// succeeds. If clients break off one after another, leafsql's own account logs in. Whatever a balancer does for itself counts
// for the server alone: nobody failed to log in.
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
