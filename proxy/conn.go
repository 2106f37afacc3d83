package proxy

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/leafsql/leafsql/internal/wire"
)

// These methods make the backend, the client's connection to the server, a connection of package driver. They ignore
// contexts: the answer to a statement that was sent is always read. Their results are replies, with packets of the server.

func (b *backend) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }
func (b *backend) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, driver.ErrSkip
}
func (b *backend) Ping(context.Context) error               { return nil }
func (b *backend) ResetSession(context.Context) error       { return nil }
func (b *backend) IsValid() bool                            { return b.lostErr == nil }
func (b *backend) CheckNamedValue(*driver.NamedValue) error { return nil }

// Close is called if internal statements have changed the session's state and it cannot be restored.
func (b *backend) Close() error {
	b.markLost(errors.New("leafsql closed the connection to the server, because its session had changed"))
	return b.conn.Close()
}

func (b *backend) Prepare(text string) (driver.Stmt, error) {
	return b.PrepareContext(context.Background(), text)
}

// ExecContext runs a text. If it returns rows, the Result has them unread.
func (b *backend) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return b.query(text, args)
}

// QueryContext runs a text that returns rows.
func (b *backend) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return b.query(text, args)
}

func (b *backend) query(text string, args []driver.NamedValue) (*reply, error) {
	if len(args) > 0 {
		return new(reply), driver.ErrSkip
	}
	var room [512]byte // for most texts
	return b.runCommand(b.appendQuery(room[:0], text), head)
}

// appendQuery appends the COM_QUERY of a text, with the attributes of the command in progress.
func (b *backend) appendQuery(to []byte, text string) []byte {
	to = slices.Grow(to, 1+len(b.attributes)+len(text))
	return append(append(append(to, wire.ComQuery), b.attributes...), text...)
}

// runCommand sends the server a command, and reads the answer, beginning in a state, up to its first row. The
// reply is not nil.
func (b *backend) runCommand(command []byte, begin state) (*reply, error) {
	r := &reply{backend: b, answer: answer{state: begin}}
	err := b.sendCommand(command)
	if err == nil {
		err = r.readHead()
	}
	return r, err
}

// A reply is an answer of the server that is not passed on immediately: an OK, or rows that have not been read.
type reply struct {
	answer
	backend     *backend
	headPackets [][]byte // the packets before the rows, or the whole answer to COM_STMT_PREPARE; nil for an OK
	headMemory  []byte   // memory of headPackets
}

// readPacket reads the next packet of the answer.
func (r *reply) readPacket() ([]byte, error) {
	b := r.backend
	p, err := b.readPacket(math.MaxInt) // without a limit, because the server is trusted
	if err != nil {
		return nil, b.markLost(wrapServerGone(err))
	}
	b.lastSeq = b.seq - 1
	r.ended, err = b.followPacket(&r.answer, p, len(p))
	switch {
	case err != nil:
		return nil, b.markLost(err)
	case r.failure != nil:
		b.release()
		return nil, r.failure
	case len(r.ok.Tail) > 0 && (r.ended || r.state == head):
		r.ok.Tail = bytes.Clone(r.ok.Tail)
		if _, changes := r.ok.Info(b.caps); len(changes) > 0 {
			b.gtids = append(b.gtids, wire.FilterGTIDs(changes)...)
		}
	}
	return p, nil
}

// readHead reads the answer up to its first row.
func (r *reply) readHead() error {
	b := r.backend
	for !r.ended && r.state != rows {
		p, err := r.readPacket()
		if err != nil {
			return err
		}
		if r.headPackets == nil && r.state != head {
			r.headPackets, r.headMemory = make([][]byte, 0, 8), make([]byte, 0, smallBufferSize)
		}
		if r.state != head { // not an OK, or a request for a file
			r.headMemory = append(r.headMemory, p...)
			r.headPackets = append(r.headPackets, r.headMemory[len(r.headMemory)-len(p):])
		}
		if r.requestsFile {
			r.requestsFile = false
			if err = b.client.send(p); err == nil {
				err = b.passFile()
			}
			if err != nil { // the client's connection is broken, and the server waits for the rest of the file
				return b.markLost(err)
			}
		}
	}
	if r.ended {
		b.release()
	}
	return nil
}

func (r *reply) LastInsertId() (int64, error) { return int64(r.ok.ID), nil }
func (r *reply) RowsAffected() (int64, error) { return int64(r.ok.Affected), nil }

// Columns returns the names in the definitions.
func (r *reply) Columns() (names []string) {
	for _, p := range r.headPackets {
		if name, err := wire.ParseColumnName(p); err == nil { // fails for the number of the definitions and for the EOF after them
			names = append(names, name)
		}
	}
	return names
}

// Next reads a row, in the text protocol: the driver does not read rows of prepared statements, since the rows
// of RETURNING go to the client.
func (r *reply) Next(dest []driver.Value) error {
	if r.ended {
		return io.EOF
	}
	p, err := r.readPacket()
	if err != nil {
		return err
	}
	if r.ended = r.ended || r.state != rows; r.ended {
		r.backend.release()
		return io.EOF
	}
	for i := range dest {
		if dest[i], p, err = wire.ParseRowValue(p); err != nil {
			return r.backend.markLost(err)
		}
	}
	return nil
}

// Close reads the remaining rows.
func (r *reply) Close() error {
	for {
		switch err := r.Next(nil); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
}

// PrepareContext prepares a text.
func (b *backend) PrepareContext(_ context.Context, text string) (driver.Stmt, error) {
	r, err := b.runCommand(append([]byte{wire.ComStmtPrepare}, text...), preparedHead)
	if err != nil {
		return nil, err
	}
	return &innerStatement{b, r.stmt}, nil
}

// An innerStatement is prepared by package driver, and runs instead of a client's statement that is filled.
type innerStatement struct {
	backend  *backend
	prepared wire.PreparedOK
}

func (st *innerStatement) NumInput() int { return int(st.prepared.Params) }

func (st *innerStatement) Close() error {
	return st.backend.sendCommand(wire.NewCloseCommand(st.prepared.StmtID))
}

func (st *innerStatement) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (st *innerStatement) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (st *innerStatement) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return st.execute(args)
}

func (st *innerStatement) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return st.execute(args)
}

func (st *innerStatement) execute(args []driver.NamedValue) (*reply, error) {
	e := wire.Execute{Stmt: st.prepared.StmtID, Params: make([]wire.Param, len(args)), Extra: st.backend.extraParams}
	for i, arg := range args {
		switch v := arg.Value.(type) {
		case wire.Param:
			e.Params[i] = v
		case int64:
			e.Params[i] = wire.IntParam(v)
		case string:
			e.Params[i] = wire.StringParam([]byte(v))
		case []byte:
			e.Params[i] = wire.StringParam(v)
		default:
			return new(reply), fmt.Errorf("leafsql: argument %d: the proxy cannot send a %T", i+1, v)
		}
	}
	var room [512]byte // for most commands
	return st.backend.runCommand(e.Append(room[:0], st.backend.caps&wire.QueryAttrs != 0), head)
}
