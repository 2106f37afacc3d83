package proxy

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// serveCommand serves the next command.
func (s *session) serveCommand() (quit bool, err error) {
	length, seq, err := s.client.peekHeader()
	if err != nil {
		return false, err
	}
	if seq != 0 {
		s.client.seq = seq + 1
		return true, s.client.sendError(1156, "08S01", "Got packets out of order")
	}
	if length == 0 { // there is no command
		s.client.discard(wire.HeaderLen)
		s.client.seq = 1
		return false, s.client.sendError(1047, "08S01", "Unknown command")
	}
	b, err := s.client.readAtLeast(wire.HeaderLen + 1)
	if err != nil {
		return false, err
	}
	switch name := b[wire.HeaderLen]; name {
	case wire.ComStmtExecute, wire.ComStmtLongData, wire.ComStmtClose, wire.ComStmtReset, wire.ComStmtFetch, wire.ComStmtBulkExecute:
		err = s.serveStatementCommand(name)
	case wire.ComResetConnection:
		var ok bool
		if ok, err = s.pass(&answer{}); ok {
			s.resetState(s.login, false) // the database in use after a reset depends on the server's version
		}
	case wire.ComFieldList:
		_, err = s.pass(&answer{state: rows})
	case wire.ComStatistics:
		_, err = s.pass(&answer{state: anyPacket})
	case wire.ComPing, wire.ComProcessInfo, wire.ComKill, wire.ComDebug, wire.ComRefresh, wire.ComShutdown, wire.ComRegisterSlave, wire.ComCreateDB, wire.ComDropDB:
		_, err = s.pass(&answer{})
	case wire.ComBinlogDump, wire.ComBinlogDumpGTID, wire.ComClone:
		return s.serveStream()
	case wire.ComQuit:
		_, err = s.server.forward(0)
		return true, err
	default:
		quit, err = s.serveCommandInMemory(name)
	}
	if err == errTooLarge || err == errNoMemory {
		s.proxy.maxAllowedPacket.Store(0) // the next session reads the limit again
		s.client.seq = 1
		return true, s.sendFailure(err)
	}
	return quit, err
}

// serveCommandInMemory reads the whole next command and serves it.
func (s *session) serveCommandInMemory(name byte) (quit bool, err error) {
	p, err := s.client.readPacket(s.server.maxPacket)
	if err != nil {
		return false, err
	}
	switch name {
	case wire.ComQuery:
		err = s.serveQuery(p)
	case wire.ComStmtPrepare:
		err = s.servePrepare(p)
	case wire.ComInitDB:
		name, ok := string(p[1:]), false
		if ok, err = s.resend(&answer{}); ok {
			s.filler.Use(name)
		}
	case wire.ComChangeUser:
		return s.serveChangeUser(p)
	case wire.ComSetOption:
		err = s.serveSetOption(p)
	default:
		err = s.client.sendError(1047, "08S01", "Unknown command")
	}
	return false, err
}

func (s *session) serveSetOption(p []byte) error {
	on, off := len(p) == 3 && p[1] == 0 && p[2] == 0, len(p) == 3 && p[1] == 1 && p[2] == 0
	ok, err := s.resend(&answer{})
	if ok && (on || off) {
		s.login.MultiStatements = on
		s.filler.SetMultiStatements(on)
	}
	return err
}

// serveStream passes all bytes on in both directions, for a client that is a replica and requests a stream of events. It
// returns when one side closes its connection or the proxy ends. If the server refuses the stream, the session continues.
func (s *session) serveStream() (quit bool, err error) {
	if _, err := s.server.forward(0); err != nil {
		return true, err
	}
	b, err := s.server.readAtLeast(wire.HeaderLen + 1)
	if err != nil {
		return true, wrapServerGone(err)
	}
	if b[wire.HeaderLen] == wire.FirstErr {
		_, err = s.server.relay(&answer{})
		return false, err
	}
	s.isStreaming.Store(true)
	if err := errors.Join(s.client.write(b), s.server.write(s.client.buffered())); err != nil {
		return true, err
	}
	s.client.raw.SetWriteDeadline(time.Time{})
	s.server.raw.SetWriteDeadline(time.Time{})
	var up sync.WaitGroup
	up.Go(func() {
		io.Copy(s.server.copyConn(), s.client.copyConn())
		s.server.conn.Close()
	})
	_, err = io.Copy(s.client.copyConn(), s.server.copyConn())
	s.client.conn.Close()
	s.server.conn.Close()
	up.Wait()
	return true, err
}
