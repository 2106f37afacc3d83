package proxy

import "sync/atomic"

// counters count events since New.
type counters struct {
	accepted, turnedAway, failedLogins, brokenOff, unreachable atomic.Int64
	passed, filled, refused, unfilled                          atomic.Int64
	serverEnds, panics                                         atomic.Int64
}

// Stats are counters since New, except for the current values Connections and BrokenOffInARow.
type Stats struct {
	Connections, MaxConnections int64 // current and maximum number of clients

	Accepted     int64 // clients that connected
	TurnedAway   int64 // clients that were refused because there were too many clients
	FailedLogins int64 // logins that the server refused
	BrokenOff    int64 // logins that the client did not complete
	Unreachable  int64 // clients for which the server was not reachable

	Passed   int64 // commands that were passed on
	Filled   int64 // statements that got ids
	Refused  int64 // statements that cannot be filled
	Unfilled int64 // statements for which no ids were available

	ServerEnds int64 // sessions in which the server ended the connection
	Faults     int64 // sessions that ended with a panic in the proxy

	// BrokenOffInARow is the number of logins broken off since the last completed login. If it reaches
	// MaxConnectErrors, the server refuses the proxy's host (error 1129). MaxConnectErrors is 0 until it is
	// known.
	BrokenOffInARow, MaxConnectErrors int64
}

// Stats returns the current values.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.sessions)
	s.mu.Unlock()
	c := &s.counts
	return Stats{
		Connections: int64(n), MaxConnections: int64(s.cfg.MaxConnections), Accepted: c.accepted.Load(), TurnedAway: c.turnedAway.Load(), FailedLogins: c.failedLogins.Load(), BrokenOff: c.brokenOff.Load(), Unreachable: c.unreachable.Load(),
		Passed: c.passed.Load(), Filled: c.filled.Load(), Refused: c.refused.Load(), Unfilled: c.unfilled.Load(),
		ServerEnds: c.serverEnds.Load(), Faults: c.panics.Load(), BrokenOffInARow: s.brokenInARow.Load(), MaxConnectErrors: s.maxConnectErrors.Load(),
	}
}
