package proxy

import (
	"errors"
	"io"
	"sync"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// command serves the next command.
func (s *session) command() (quit bool, err error) {
	length, seq, err := s.client.header()
	if err != nil {
		return false, err
	}
	if seq != 0 {
		s.client.seq = seq + 1
		return true, s.client.fail(1156, "08S01", "Got packets out of order")
	}
	if length == 0 { // there is no command
		s.client.take(wire.HeaderLen)
		s.client.seq = 1
		return false, s.client.fail(1047, "08S01", "Unknown command")
	}
	b, err := s.client.need(wire.HeaderLen + 1)
	if err != nil {
		return false, err
	}
	switch name := b[wire.HeaderLen]; name {
	case wire.ComStmtExecute, wire.ComStmtLongData, wire.ComStmtClose, wire.ComStmtReset, wire.ComStmtFetch, wire.ComStmtBulkExecute:
		err = s.ofStatement(name)
	case wire.ComResetConnection:
		var ok bool
		if ok, err = s.pass(&answer{}); ok {
			s.beginAnew(s.login, false) // the database in use differs between server versions
		}
	case wire.ComFieldList:
		_, err = s.pass(&answer{state: rows})
	case wire.ComStatistics:
		_, err = s.pass(&answer{state: anyPacket})
	case wire.ComPing, wire.ComProcessInfo, wire.ComKill, wire.ComDebug, wire.ComRefresh, wire.ComShutdown, wire.ComRegisterSlave, wire.ComCreateDB, wire.ComDropDB:
		_, err = s.pass(&answer{})
	case wire.ComBinlogDump, wire.ComBinlogDumpGTID, wire.ComClone:
		return s.tunnel()
	case wire.ComQuit:
		_, err = s.server.forward(0)
		return true, err
	default:
		quit, err = s.commandInMemory(name)
	}
	if err == errTooLarge || err == errNoMemory {
		s.proxy.maxAllowed.Store(0) // the next session reads the limit again
		s.client.seq = 1
		return true, s.refuse(err)
	}
	return quit, err
}

// commandInMemory reads the whole next command and serves it.
func (s *session) commandInMemory(name byte) (quit bool, err error) {
	p, err := s.client.packet(s.server.maxPacket)
	if err != nil {
		return false, err
	}
	switch name {
	case wire.ComQuery:
		err = s.query(p)
	case wire.ComStmtPrepare:
		err = s.prepare(p)
	case wire.ComInitDB:
		name, ok := string(p[1:]), false
		if ok, err = s.resend(&answer{}); ok {
			s.leaf.UseDatabase(name)
		}
	case wire.ComChangeUser:
		return s.changeUser(p)
	case wire.ComSetOption:
		err = s.setOption(p)
	default:
		err = s.client.fail(1047, "08S01", "Unknown command")
	}
	return false, err
}

func (s *session) setOption(p []byte) error {
	on, off := len(p) == 3 && p[1] == 0 && p[2] == 0, len(p) == 3 && p[1] == 1 && p[2] == 0
	ok, err := s.resend(&answer{})
	if ok && (on || off) {
		s.login.MultiStatements = on
		s.leaf.SetMultiStatements(on)
	}
	return err
}

// tunnel passes all bytes on in both directions for a client that is a replica, until one side or the proxy
// ends. If the server refuses the stream, the session continues.
func (s *session) tunnel() (quit bool, err error) {
	if _, err := s.server.forward(0); err != nil {
		return true, err
	}
	b, err := s.server.need(wire.HeaderLen + 1)
	if err != nil {
		return true, serverGone(err)
	}
	if b[wire.HeaderLen] == wire.FirstErr {
		_, err = s.server.relay(&answer{})
		return false, err
	}
	s.streams.Store(true)
	if err := errors.Join(s.client.write(b), s.server.write(s.client.buffered())); err != nil {
		return true, err
	}
	s.client.raw.SetWriteDeadline(time.Time{})
	s.server.raw.SetWriteDeadline(time.Time{})
	var up sync.WaitGroup
	up.Go(func() {
		io.Copy(s.server.copyable(), s.client.copyable())
		s.server.conn.Close()
	})
	_, err = io.Copy(s.client.copyable(), s.server.copyable())
	s.client.conn.Close()
	s.server.conn.Close()
	up.Wait()
	return true, err
}
