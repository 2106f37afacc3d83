package proxy

import "sync/atomic"

// counters count what happened since the Server was made.
type counters struct {
	accepted, turnedAway, failedLogins, unreachable atomic.Int64
	passed, filled, refused, unfilled               atomic.Int64
	serverEnds, panics                              atomic.Int64
}

// Stats are counts since the Server was made, and Connections as it is now.
type Stats struct {
	Connections int64 // of clients, now

	Accepted     int64 // clients
	TurnedAway   int64 // of them, because there were too many
	FailedLogins int64 // that the server refused
	Unreachable  int64 // clients that found no server

	Passed   int64 // commands that were passed on
	Filled   int64 // statements that got ids
	Refused  int64 // statements that cannot be filled
	Unfilled int64 // statements whose ids could not be had

	ServerEnds int64 // connections that the server ended
	Faults     int64 // sessions that ended by a fault of the proxy
}

// Stats returns what happened so far.
func (s *Server) Stats() Stats {
	s.mu.Lock()
	n := len(s.sessions)
	s.mu.Unlock()
	c := &s.counts
	return Stats{
		Connections: int64(n), Accepted: c.accepted.Load(), TurnedAway: c.turnedAway.Load(), FailedLogins: c.failedLogins.Load(), Unreachable: c.unreachable.Load(),
		Passed: c.passed.Load(), Filled: c.filled.Load(), Refused: c.refused.Load(), Unfilled: c.unfilled.Load(),
		ServerEnds: c.serverEnds.Load(), Faults: c.panics.Load(),
	}
}
