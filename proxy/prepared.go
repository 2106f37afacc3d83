package proxy

import (
	"bytes"
	"context"
	"database/sql/driver"
	"encoding/binary"
	"slices"

	"github.com/go-sql-driver/mysql"

	leafdriver "github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/wire"
)

// A preparedStmt is a statement of the client's that is filled. The client knows it by the number
// of its own text, which is prepared too, for the client to see what that answers.
type preparedStmt struct {
	leaf   *leafdriver.Prepared
	params int
	types  []wire.Param   // of the last execution's arguments
	long   map[int][]byte // values that came in pieces, by parameter
	longs  int            // bytes of them, in memory
	wrong  *wire.Err      // what is wrong with them
}

// prepare serves COM_STMT_PREPARE.
func (s *session) prepare() error {
	p, err := s.client.packet(s.maxPacket)
	if err != nil {
		return err
	}
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
	err = s.resend(&a)
	s.newest = a.stmt.ID
	if err == nil && a.failure == nil && plan.HasEffects() {
		if s.effects == nil {
			s.effects = make(map[uint32]leafdriver.Plan)
		}
		s.effects[a.stmt.ID] = plan
	}
	return err
}

// prepareFilled prepares the client's text p, and what is to run in its place. The client is told the
// answer to its own text, once both are there.
func (s *session) prepareFilled(ctx context.Context, p []byte, plan leafdriver.Plan) error {
	if err := s.send(p); err != nil {
		return err
	}
	b := backend{&s.link}
	first, err := b.packet()
	if err != nil {
		return err
	}
	if first[0] == wire.FirstErr {
		defer s.server.release()
		return s.client.send(first)
	}
	ok, err := wire.ParsePreparedOK(first)
	if err != nil {
		return err
	}
	frames := s.client.appendFrames(nil, first)
	for range s.preparedPackets(ok) {
		packet, err := b.packet()
		if err != nil {
			return err
		}
		frames = s.client.appendFrames(frames, packet)
	}
	s.server.release()
	leaf, err := s.leaf.Prepare(ctx, plan)
	if err != nil {
		s.client.seq = 1
		if err := s.send(wire.CloseStatement(ok.ID)); err != nil {
			return err
		}
		return s.refuse(err)
	}
	if s.stmts == nil {
		s.stmts = make(map[uint32]*preparedStmt)
	}
	s.newest = ok.ID
	s.stmts[ok.ID] = &preparedStmt{leaf: leaf, params: int(ok.Params)}
	return s.client.write(frames)
}

// newestPrepared stands for the statement that was prepared last, on MariaDB: a client need not
// wait for its number.
const newestPrepared = 1<<32 - 1

// ofStatement serves the commands that name a prepared statement.
func (s *session) ofStatement(name byte) error {
	const ahead = wire.HeaderLen + 1 + 4 // its number
	length, _, err := s.client.header()
	if err != nil {
		return err
	}
	if length < ahead-wire.HeaderLen || name == wire.ComStmtLongData && length < ahead-wire.HeaderLen+2 {
		if _, err := s.client.packet(s.maxPacket); err != nil {
			return err
		}
		return s.malformed() // as MySQL says; MariaDB reads on behind the end
	}
	b, err := s.client.need(ahead)
	if err != nil {
		return err
	}
	number := b[wire.HeaderLen+1:]
	id := binary.LittleEndian.Uint32(number)
	if id == newestPrepared {
		id = s.newest
		binary.LittleEndian.PutUint32(number, id) // the server's last may be one of leafsql's own
	}
	st := s.stmts[id]
	plan, hasEffects := s.effects[id]
	a := answer{state: head, execute: true}
	switch name {
	case wire.ComStmtClose:
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
		return s.forward()
	case wire.ComStmtLongData:
		if st == nil {
			return s.forward()
		}
		return s.longData(st)
	case wire.ComStmtReset:
		if st != nil {
			s.dropLong(st)
		}
		delete(s.cursors, id)
		return s.pass(&a)
	case wire.ComStmtFetch:
		a.state, hasEffects = row, false
	case wire.ComStmtBulkExecute:
		if st != nil {
			return s.bulk(st)
		}
	default:
		if st != nil {
			return s.execute(st)
		}
	}
	if err = s.pass(&a); err != nil {
		return err
	}
	switch open := a.failure == nil && s.status&wire.CursorExists != 0; {
	case !open:
		delete(s.cursors, id)
	case s.cursors == nil:
		s.cursors = map[uint32]bool{id: true}
	default:
		s.cursors[id] = true
	}
	if hasEffects {
		s.leaf.Sent(plan, true, a.error())
	}
	return nil
}

func (s *session) dropLong(st *preparedStmt) {
	s.memory.take(-st.longs)
	st.long, st.longs, st.wrong = nil, 0, nil
}

// dropStatements forgets the client's statements, which the server has closed or will close.
func (s *session) dropStatements() {
	for _, st := range s.stmts {
		s.dropLong(st)
	}
	s.stmts, s.effects, s.cursors, s.newest = nil, nil, nil, 0
}

// longData keeps a piece of an argument, up to the execution: which text that runs is
// decided then.
func (s *session) longData(st *preparedStmt) error {
	p, err := s.client.packet(s.maxPacket)
	if err != nil {
		return err
	}
	param := int(binary.LittleEndian.Uint16(p[5:]))
	if st.long == nil {
		st.long = make(map[int][]byte)
	}
	value, piece := st.long[param], p[7:]
	switch {
	case param >= st.params:
		st.wrong = &wire.Err{Number: 1210, State: [5]byte([]byte("HY000")), Message: "Incorrect arguments to mysqld_stmt_send_long_data"}
	case st.longs+len(piece) > s.maxPacket:
		st.wrong = &wire.Err{Number: 1105, State: [5]byte([]byte("HY000")), Message: "Parameter of prepared statement which is set through mysql_send_long_data() is longer than 'max_allowed_packet' bytes"}
	case !s.memory.take(len(piece)):
		st.wrong = &wire.Err{Number: numberTooLarge, State: [5]byte([]byte("HY000")), Message: errNoMemory.(*mysql.MySQLError).Message}
	default:
		st.long[param] = append(slices.Grow(value, 1), piece...) // not nil, though it may be empty
		st.longs += len(piece)
	}
	return nil
}

// execute serves COM_STMT_EXECUTE of a statement that is filled.
func (s *session) execute(st *preparedStmt) error {
	p, err := s.client.packet(s.maxPacket)
	if err != nil {
		return err
	}
	e, err := wire.ParseExecute(p, st.params, s.caps&wire.QueryAttrs != 0, st.types, st.long)
	wrong := st.wrong
	s.dropLong(st)
	switch {
	case wrong != nil: // the value is missing in the arguments
		return s.client.send(wrong.Append(nil))
	case err != nil && s.caps&wire.QueryAttrs != 0: // MySQL
		return s.malformed()
	case err != nil:
		return s.fail(1210, "HY000", "Incorrect arguments to mysqld_stmt_execute")
	}
	s.extra = e.Extra
	st.types = typesOf(e.Params) // attributes bring theirs each time
	return s.runFilled(st, e.Params)
}

// runFilled executes a statement that is filled.
func (s *session) runFilled(st *preparedStmt, params []wire.Param) error {
	args := make([]driver.NamedValue, len(params))
	for i, param := range params {
		args[i] = driver.NamedValue{Ordinal: i + 1, Value: param}
	}
	ctx := s.bound()
	defer ctx.end()
	s.tellBackslashes()
	a, err := st.leaf.Run(ctx, args)
	if err != nil {
		return s.refuse(err)
	}
	s.filled.Add(1)
	_, err = s.tell(a, false)
	return err
}

// typesOf keeps the types of arguments beyond their packet.
func typesOf(params []wire.Param) []wire.Param {
	types := make([]wire.Param, len(params))
	for i, p := range params {
		types[i] = wire.Param{Type: p.Type, Flags: p.Flags, Name: bytes.Clone(p.Name)}
	}
	return types
}
