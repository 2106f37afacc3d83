package proxy

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"slices"

	"github.com/leafsql/leafsql/internal/fill"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/wire"
)

// A preparedStmt is a client's statement that is filled. The client uses the id of its own text, which is
// prepared too, since the client gets the answer to it.
type preparedStmt struct {
	leaf   fill.Prepared
	params int
	types  []wire.Param   // types of the last execution's arguments
	long   map[int][]byte // values that were sent in pieces, by parameter
	longs  int            // bytes of these values in memory
	wrong  error          // error of the next execution if a value in long is wrong, or nil
}

// prepare serves COM_STMT_PREPARE.
func (s *session) prepare(p []byte) error {
	ctx := s.bound()
	defer ctx.end()
	s.newest = 0
	s.tellBackslashes()
	plan, err := s.leaf.Plan(ctx, string(p[1:]))
	if err != nil {
		return s.refuse(err)
	}
	if plan.Prepares() {
		return s.prepareFilled(ctx, p, plan)
	}
	a := answer{state: preparedHead}
	ok, err := s.resend(&a)
	s.newest = a.stmt.ID
	if ok && plan.HasEffects() {
		s.effects[a.stmt.ID] = plan
	}
	return err
}

// prepareFilled prepares the client's text p, and the text that runs instead. The client receives the answer to
// its own text when both are prepared.
func (s *session) prepareFilled(ctx context.Context, p []byte, plan fill.Plan) error {
	r, err := s.server.run(p, preparedHead)
	if err != nil {
		return s.refuse(err)
	}
	leaf, err := s.leaf.Prepare(ctx, plan)
	if err != nil {
		if err := s.server.start(wire.CloseStatement(r.stmt.ID)); err != nil {
			return err
		}
		return s.refuse(err)
	}
	s.newest = r.stmt.ID
	s.stmts[s.newest] = &preparedStmt{leaf: leaf, params: int(r.stmt.Params)}
	return s.client.send(r.head...)
}

// newestPrepared means the statement that was prepared last, on MariaDB: a client need not wait for its id.
const newestPrepared = 1<<32 - 1

// ofStatement serves the commands for a prepared statement.
func (s *session) ofStatement(name byte) error {
	const ahead = wire.HeaderLen + 1 + 4 // includes the statement's id
	length, _, err := s.client.header()
	if err != nil {
		return err
	}
	if length < ahead-wire.HeaderLen || name == wire.ComStmtLongData && length < ahead-wire.HeaderLen+2 {
		if _, err := s.client.packet(s.server.maxPacket); err != nil {
			return err
		}
		return s.client.malformed() // like MySQL; MariaDB reads past the end
	}
	b, err := s.client.need(ahead)
	if err != nil {
		return err
	}
	number := b[wire.HeaderLen+1:]
	id := binary.LittleEndian.Uint32(number)
	if id == newestPrepared {
		id = s.newest
		binary.LittleEndian.PutUint32(number, id) // the server's last statement may be an internal one
	}
	st := s.stmts[id]
	plan, hasEffects := s.effects[id]
	a := answer{execute: true}
	switch {
	case name == wire.ComStmtClose:
		if st != nil {
			if err := st.leaf.Close(); err != nil {
				return err
			}
			s.dropLong(st)
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
			s.dropLong(st)
		}
		delete(s.cursors, id)
		_, err = s.pass(&a)
		return err
	case name == wire.ComStmtFetch:
		a.state, hasEffects = rows, false
	case st != nil:
		return s.ofFilled(st, name)
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
		s.leaf.RecordSent(plan, true, a.failure)
	}
	return nil
}

// ofFilled serves the commands that execute a filled statement or send its arguments.
func (s *session) ofFilled(st *preparedStmt, name byte) error {
	p, err := s.client.packet(s.server.maxPacket)
	switch {
	case err != nil:
		return err
	case name == wire.ComStmtLongData:
		s.longData(st, p)
		return nil
	case name == wire.ComStmtBulkExecute:
		return s.bulk(st, p)
	}
	return s.execute(st, p)
}

func (s *session) dropLong(st *preparedStmt) {
	s.proxy.memory.take(-st.longs)
	st.long, st.longs, st.wrong = nil, 0, nil
}

// dropStatements deletes the client's statements, which the server has closed or will close.
func (s *session) dropStatements() {
	for _, st := range s.stmts {
		s.dropLong(st)
	}
	clear(s.stmts)
	clear(s.effects)
	clear(s.cursors)
	s.newest = 0
}

// longData stores a piece of an argument until the execution, since the text to run is chosen then.
func (s *session) longData(st *preparedStmt, p []byte) {
	param, piece := int(binary.LittleEndian.Uint16(p[5:])), p[7:]
	if st.long == nil {
		st.long = make(map[int][]byte)
	}
	switch {
	case param >= st.params:
		st.wrong = sqlError(1210, "HY000", "Incorrect arguments to mysqld_stmt_send_long_data")
	case st.longs+len(piece) > s.server.maxPacket:
		st.wrong = sqlError(numberOther, "HY000", "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes")
	case !s.proxy.memory.take(len(piece)):
		st.wrong = sqlError(servererr.PacketTooLarge, "HY000", errNoMemory.Message)
	default:
		st.long[param] = append(slices.Grow(st.long[param], 1), piece...) // not nil, even if it is empty
		st.longs += len(piece)
	}
}

// execute serves COM_STMT_EXECUTE of a filled statement.
func (s *session) execute(st *preparedStmt, p []byte) error {
	e, err := wire.ParseExecute(p, st.params, s.server.caps&wire.QueryAttrs != 0, st.types, st.long)
	wrong := st.wrong
	s.dropLong(st)
	switch {
	case wrong != nil: // the value is missing in the arguments
		return s.refuse(wrong)
	case err != nil && s.server.caps&wire.QueryAttrs != 0: // MySQL
		return s.client.malformed()
	case err != nil:
		return s.client.fail(1210, "HY000", "Incorrect arguments to mysqld_stmt_execute")
	}
	s.server.extra = e.Extra
	st.types = typesOf(e.Params) // attributes are sent with their types each time
	return s.runFilled(st, e.Params)
}

// runFilled executes a filled statement.
func (s *session) runFilled(st *preparedStmt, params []wire.Param) error {
	args := make([]driver.NamedValue, len(params))
	for i, param := range params {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: param}
	}
	ctx := s.bound()
	defer ctx.end()
	s.tellBackslashes()
	a, err := st.leaf.Run(ctx, args)
	_, err = s.tell(a, err, false)
	return err
}

// typesOf copies the types of arguments, which are valid after their packet is released.
func typesOf(params []wire.Param) []wire.Param {
	types := make([]wire.Param, len(params))
	for i, p := range params {
		types[i] = wire.Param{Type: p.Type, Flags: p.Flags, Name: bytes.Clone(p.Name)}
	}
	return types
}
