package proxy

import (
	"bytes"
	"database/sql/driver"
	"encoding/binary"
	"slices"

	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/wire"
)

// A preparedStmt is a client's statement that is filled. The client's own text is also prepared: the client receives
// the answer to it, and uses its id.
type preparedStmt struct {
	prepared   fill.Prepared
	params     int
	types      []wire.Param   // types of the last execution's arguments
	longValues map[int][]byte // values that were sent in pieces, by parameter
	longBytes  int            // bytes of these values in memory
	longErr    error          // error for the next execution if a value in longValues is wrong, otherwise nil
}

// servePrepare serves COM_STMT_PREPARE.
func (s *session) servePrepare(p []byte) error {
	s.newest = 0
	s.setBackslashEscapes()
	plan, err := s.filler.Plan(&s.server.waits, string(p[1:]))
	if err != nil {
		return s.sendFailure(err)
	}
	if plan.Prepares() {
		return s.prepareFilled(p, plan)
	}
	a := answer{state: preparedHead}
	ok, err := s.resend(&a)
	s.newest = a.stmt.StmtID
	if ok && plan.HasEffects() {
		s.effects[a.stmt.StmtID] = plan
	}
	return err
}

// prepareFilled prepares the client's text p, and the text that runs instead. The client receives the answer to
// its own text when both are prepared.
func (s *session) prepareFilled(p []byte, plan fill.Plan) error {
	r, err := s.server.runCommand(p, preparedHead)
	if err != nil {
		return s.sendFailure(err)
	}
	leaf, err := s.filler.Prepare(&s.server.waits, plan)
	if err != nil {
		if err := s.server.sendCommand(wire.NewCloseCommand(r.stmt.StmtID)); err != nil {
			return err
		}
		return s.sendFailure(err)
	}
	s.newest = r.stmt.StmtID
	s.stmts[s.newest] = &preparedStmt{prepared: leaf, params: int(r.stmt.Params)}
	return s.client.send(r.headPackets...)
}

// newestID is MariaDB's id for the statement that was prepared last: a client need not wait for its real id.
const newestID = 1<<32 - 1

// serveStatementCommand serves the commands for a prepared statement.
func (s *session) serveStatementCommand(name byte) error {
	const ahead = wire.HeaderLen + 1 + 4 // the header, the command byte and the statement's id
	length, _, err := s.client.peekHeader()
	if err != nil {
		return err
	}
	if length < ahead-wire.HeaderLen || name == wire.ComStmtLongData && length < ahead-wire.HeaderLen+2 {
		if _, err := s.client.readPacket(s.server.maxPacket); err != nil {
			return err
		}
		return s.client.sendMalformed() // MySQL does the same; MariaDB reads beyond the end of the packet
	}
	b, err := s.client.readAtLeast(ahead)
	if err != nil {
		return err
	}
	number := b[wire.HeaderLen+1:]
	id := binary.LittleEndian.Uint32(number)
	if id == newestID {
		id = s.newest
		binary.LittleEndian.PutUint32(number, id) // for the server, the last prepared statement may be an internal statement
	}
	st := s.stmts[id]
	plan, hasEffects := s.effects[id]
	a := answer{isExecution: true}
	switch {
	case name == wire.ComStmtClose:
		if st != nil {
			if err := st.prepared.Close(); err != nil {
				return err
			}
			s.dropLongValues(st)
			delete(s.stmts, id)
		}
		delete(s.effects, id)
		delete(s.cursors, id)
		if id == s.newest {
			s.newest = 0
		}
		_, err = s.server.forward(0)
		return err
	case name == wire.ComStmtReset:
		if st != nil {
			s.dropLongValues(st)
		}
		delete(s.cursors, id)
		_, err = s.pass(&a)
		return err
	case name == wire.ComStmtFetch:
		a.state, hasEffects = rows, false
	case st != nil:
		return s.serveFilledCommand(st, name)
	case name == wire.ComStmtLongData:
		_, err = s.server.forward(0)
		return err
	}
	ok, err := s.pass(&a)
	if err != nil {
		return err
	}
	if ok && s.server.status&wire.CursorExists != 0 {
		s.cursors[id] = true
	} else {
		delete(s.cursors, id)
	}
	if hasEffects {
		s.filler.RecordSent(plan, true, a.failure)
	}
	return nil
}

// serveFilledCommand serves the commands that execute a filled statement or send its arguments.
func (s *session) serveFilledCommand(st *preparedStmt, name byte) error {
	p, err := s.client.readPacket(s.server.maxPacket)
	switch {
	case err != nil:
		return err
	case name == wire.ComStmtLongData:
		s.storeLongData(st, p)
		return nil
	case name == wire.ComStmtBulkExecute:
		return s.serveBulk(st, p)
	}
	return s.serveExecute(st, p)
}

func (s *session) dropLongValues(st *preparedStmt) {
	s.proxy.memory.reserve(-st.longBytes)
	st.longValues, st.longBytes, st.longErr = nil, 0, nil
}

// dropStatements deletes the client's statements, which the server has closed or will close.
func (s *session) dropStatements() {
	for _, st := range s.stmts {
		s.dropLongValues(st)
	}
	clear(s.stmts)
	clear(s.effects)
	clear(s.cursors)
	s.newest = 0
}

// storeLongData stores a piece of an argument until the execution, because the text to run is chosen at the execution.
func (s *session) storeLongData(st *preparedStmt, p []byte) {
	param, piece := int(binary.LittleEndian.Uint16(p[5:])), p[7:]
	if st.longValues == nil {
		st.longValues = make(map[int][]byte)
	}
	switch {
	case param >= st.params:
		st.longErr = sqlError(1210, "HY000", "Incorrect arguments to mysqld_stmt_send_long_data")
	case st.longBytes+len(piece) > s.server.maxPacket:
		st.longErr = sqlError(numberOther, "HY000", "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes")
	case !s.proxy.memory.reserve(len(piece)):
		st.longErr = sqlError(servererr.PacketTooLarge, "HY000", errNoMemory.Message)
	default:
		st.longValues[param] = append(slices.Grow(st.longValues[param], 1), piece...) // not nil, even if it is empty
		st.longBytes += len(piece)
	}
}

// serveExecute serves COM_STMT_EXECUTE of a filled statement.
func (s *session) serveExecute(st *preparedStmt, p []byte) error {
	e, err := wire.ParseExecute(p, st.params, s.server.caps&wire.QueryAttrs != 0, st.types, st.longValues)
	wrong := st.longErr
	s.dropLongValues(st)
	switch {
	case wrong != nil: // a value is missing from the arguments
		return s.sendFailure(wrong)
	case err != nil && s.server.caps&wire.QueryAttrs != 0: // MySQL
		return s.client.sendMalformed()
	case err != nil:
		return s.client.sendError(1210, "HY000", "Incorrect arguments to mysqld_stmt_execute")
	}
	s.server.extraParams = e.Extra
	st.types = cloneTypes(e.Params) // without the types of e.Extra: attributes are sent with their types each time
	return s.runFilled(st, e.Params)
}

// runFilled executes a filled statement.
func (s *session) runFilled(st *preparedStmt, params []wire.Param) error {
	args := make([]driver.NamedValue, len(params))
	for i, param := range params {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: param}
	}
	s.setBackslashEscapes()
	a, err := st.prepared.Run(&s.server.waits, args)
	_, err = s.sendResult(a, err, false)
	return err
}

// cloneTypes returns a copy of the types of arguments that stays valid after their packet is released.
func cloneTypes(params []wire.Param) []wire.Param {
	types := make([]wire.Param, len(params))
	for i, p := range params {
		types[i] = wire.Param{Type: p.Type, Flags: p.Flags, Name: bytes.Clone(p.Name)}
	}
	return types
}
