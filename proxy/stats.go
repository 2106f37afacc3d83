package proxy

import "sync/atomic"

// counters count what happened since the Server was made.
type counters struct {
	accepted, turnedAway, failedLogins, brokenOff, unreachable atomic.Int64
	passed, filled, refused, unfilled                          atomic.Int64
	serverEnds, panics                                         atomic.Int64
}

// Stats are counts since the Server was made, and Connections as it is now.
type Stats struct {
	Connections    int64 // of clients, now
	MaxConnections int64

	Accepted     int64 // clients
	TurnedAway   int64 // of them, because there were too many
	FailedLogins int64 // that the server refused
	BrokenOff    int64 // logins that the client did not bring to an end
	Unreachable  int64 // clients that found no server

	Passed   int64 // commands that were passed on
	Filled   int64 // statements that got ids
	Refused  int64 // statements that cannot be filled
	Unfilled int64 // statements whose ids could not be had

	ServerEnds int64 // connections that the server ended
	Faults     int64 // sessions that ended by a fault of the proxy

	// BrokenOffInARow are those of BrokenOff since a login came to its end. The server refuses
	// the proxy's host (error 1129) when they are MaxConnectErrors, which is 0 until it is known.
	BrokenOffInARow, MaxConnectErrors int64
}

// Stats returns what happened so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.sessions)
	s.mu.Unlock()
	c := &s.counts
	return Stats{
		Connections: int64(n), MaxConnections: int64(s.cfg.MaxConnections), Accepted: c.accepted.Load(), TurnedAway: c.turnedAway.Load(), FailedLogins: c.failedLogins.Load(), BrokenOff: c.brokenOff.Load(), Unreachable: c.unreachable.Load(),
		Passed: c.passed.Load(), Filled: c.filled.Load(), Refused: c.refused.Load(), Unfilled: c.unfilled.Load(),
		ServerEnds: c.serverEnds.Load(), Faults: c.panics.Load(), BrokenOffInARow: s.inARow.Load(), MaxConnectErrors: s.maxErrors.Load(),
	}
}
