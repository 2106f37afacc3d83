package proxy

import (
	"bytes"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"math"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/internal/wire"
)

// A backend is the session's connection to the server as package driver wants it: statements
// that are filled, and questions about the session, go through it. Its results are packets of the server.
// The contexts of its methods are not minded: a statement that was sent is waited for.
type backend struct{ *link }

func (b backend) Begin() (driver.Tx, error) { return nil, driver.ErrSkip }
func (b backend) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) {
	return nil, driver.ErrSkip
}
func (b backend) Ping(context.Context) error               { return nil }
func (b backend) ResetSession(context.Context) error       { return nil }
func (b backend) IsValid() bool                            { return b.lost == nil }
func (b backend) CheckNamedValue(*driver.NamedValue) error { return nil }

// Close is called if the session is not what the client left.
func (b backend) Close() error {
	b.lose(errGivenUp)
	return b.server.conn.Close()
}

var errGivenUp = errors.New("leafsql ended the connection to the server, as its session was not what the client left")

// lose notes why the server's connection cannot be used any more, for run, and returns what
// package driver is told, as of a connection of go-sql-driver's.
func (b backend) lose(cause error) error {
	if b.lost == nil {
		b.lost = cause
	}
	return mysql.ErrInvalidConn
}

func (b backend) Prepare(text string) (driver.Stmt, error) {
	return b.PrepareContext(context.Background(), text)
}

// ExecContext runs a text. If it answers with rows they are in the Result, unread.
func (b backend) ExecContext(_ context.Context, text string, args []driver.NamedValue) (driver.Result, error) {
	return as[driver.Result](b.query(text, args))
}

// QueryContext runs a text that answers with rows.
func (b backend) QueryContext(_ context.Context, text string, args []driver.NamedValue) (driver.Rows, error) {
	return as[driver.Rows](b.query(text, args))
}

// as returns a reply as what package driver wants of it, nil if there is an error.
func as[T any](r *reply, err error) (t T, _ error) {
	if err == nil {
		t = any(r).(T)
	}
	return t, err
}

func (b backend) query(text string, args []driver.NamedValue) (*reply, error) {
	if len(args) > 0 {
		return nil, driver.ErrSkip
	}
	if err := b.command(append(append([]byte{wire.ComQuery}, b.attributes...), text...)); err != nil {
		return nil, err
	}
	return b.reply()
}

// command sends a command.
func (b backend) command(payload []byte) error {
	switch b.server.seq = 0; {
	case b.lost != nil:
		return mysql.ErrInvalidConn
	case len(payload) >= b.maxPacket: // the server would end the connection
		return errTooLarge
	}
	if err := b.server.send(payload); err != nil {
		return b.lose(serverGone(err))
	}
	return nil
}

// packet reads one of the server's.
func (b backend) packet() ([]byte, error) {
	p, err := b.server.packet(math.MaxInt) // the server is trusted
	switch {
	case err != nil:
		return nil, b.lose(serverGone(err))
	case len(p) == 0:
		return nil, b.lose(wire.ErrMalformed)
	}
	b.serverSeq = b.server.seq - 1
	return p, nil
}

// A reply is an answer of the server that is not passed on at once: an OK, or rows that are
// still to be read.
type reply struct {
	backend
	ok    wire.OK
	head  [][]byte // the packets before the rows; nil: an OK
	names []string
	ended bool // all rows are read
}

// reply reads the answer to a command up to the first row.
func (b backend) reply() (*reply, error) {
	for {
		p, err := b.packet()
		if err != nil {
			return nil, err
		}
		switch p[0] {
		case wire.FirstErr:
			return nil, b.failure(p)
		case wire.FirstLocalInfile:
			err := b.client.send(p)
			if err == nil {
				err = b.passFile()
			}
			if err != nil { // the client is gone, and the server waits for the rest of the file
				return nil, b.lose(err)
			}
		case wire.FirstOK:
			ok, err := b.okay(p)
			if err != nil {
				return nil, err
			}
			if ok.Status&wire.MoreResults == 0 {
				b.server.release()
				return &reply{backend: b, ok: ok, ended: true}, nil
			}
		default:
			return b.definitions(p)
		}
	}
}

// okay reads an OK, or an EOF that takes its place.
func (b backend) okay(p []byte) (wire.OK, error) {
	ok, err := wire.ParseOK(p)
	if err != nil {
		return ok, b.lose(err)
	}
	ok.Tail = bytes.Clone(ok.Tail)
	b.sees(ok.Status)
	if _, changes := ok.Info(b.caps); len(changes) > 0 {
		b.gtids = append(b.gtids, wire.GTIDs(changes)...)
	}
	return ok, nil
}

// failure returns the server's error.
func (b backend) failure(p []byte) error {
	failure, err := parseFailure(p)
	if err != nil {
		return b.lose(err)
	}
	b.server.release()
	return failure
}

// parseFailure returns the server's error as go-sql-driver does.
func parseFailure(p []byte) (failure, err error) {
	e, err := wire.ParseErr(p)
	return &mysql.MySQLError{Number: e.Number, SQLState: e.State, Message: e.Message}, err
}

// definitions reads what stands before rows, from the packet with the number of columns on.
func (b backend) definitions(p []byte) (*reply, error) {
	n, _, err := wire.LenEnc(p)
	if err != nil || n > 4096 { // as many as a server has
		return nil, b.lose(wire.ErrMalformed)
	}
	r := &reply{backend: b, head: [][]byte{bytes.Clone(p)}}
	packets := n
	if !b.deprecatesEOF() {
		packets++
	}
	for i := range packets {
		if p, err = b.packet(); err != nil {
			return nil, err
		}
		if p[0] == wire.FirstErr {
			return nil, b.failure(p)
		}
		r.head = append(r.head, bytes.Clone(p))
		if i < n {
			name, err := wire.ColumnName(p)
			if err != nil {
				return nil, b.lose(err)
			}
			r.names = append(r.names, name)
		}
	}
	return r, nil
}

func (r *reply) LastInsertId() (int64, error) { return int64(r.ok.ID), nil }
func (r *reply) RowsAffected() (int64, error) { return int64(r.ok.Affected), nil }
func (r *reply) Columns() []string            { return r.names }

// Next reads a row. Its values are read as text: of prepared statements the driver reads no rows, as those of
// RETURNING are the client's.
func (r *reply) Next(dest []driver.Value) error {
	if r.ended {
		return io.EOF
	}
	p, err := r.packet()
	if err != nil {
		return err
	}
	switch {
	case p[0] == wire.FirstErr:
		r.ended = true
		return r.failure(p)
	case r.endsRows(p[0], len(p)):
		r.ended = true
		defer r.server.release() // the packet is read before
		if !r.deprecatesEOF() {
			r.sees(wire.EOFStatus(p))
			return io.EOF
		}
		if _, err := r.okay(p); err != nil {
			return err
		}
		return io.EOF
	}
	for i := range dest {
		var value []byte
		if value, p, err = wire.RowValue(p); err != nil {
			return r.lose(err)
		}
		dest[i] = nil
		if value != nil {
			dest[i] = value
		}
	}
	return nil
}

// Close reads what is left of the rows.
func (r *reply) Close() error {
	for !r.ended {
		switch err := r.Next(nil); err {
		case nil:
		case io.EOF:
			return nil
		default:
			return err
		}
	}
	return nil
}

// PrepareContext prepares a text.
func (b backend) PrepareContext(_ context.Context, text string) (driver.Stmt, error) {
	if err := b.command(append([]byte{wire.ComStmtPrepare}, text...)); err != nil {
		return nil, err
	}
	ok, err := b.prepared(func([]byte) {})
	if err != nil {
		return nil, err
	}
	return &statement{b, ok}, nil
}

// prepared reads the answer to COM_STMT_PREPARE, and calls each with its packets, which are valid during the call.
func (b backend) prepared(each func(p []byte)) (ok wire.PreparedOK, err error) {
	p, err := b.packet()
	if err != nil {
		return ok, err
	}
	if p[0] == wire.FirstErr {
		return ok, b.failure(p)
	}
	if ok, err = wire.ParsePreparedOK(p); err != nil {
		return ok, b.lose(err)
	}
	each(p)
	for _, left := range []int{int(ok.Params), int(ok.Columns)} {
		if left > 0 && !b.deprecatesEOF() {
			left++
		}
		for range left {
			if p, err = b.packet(); err != nil {
				return ok, err
			}
			each(p)
		}
	}
	b.server.release()
	return ok, nil
}

// A statement is one that is prepared for executions that are filled.
type statement struct {
	backend
	ok wire.PreparedOK
}

func (st *statement) NumInput() int { return int(st.ok.Params) }

func (st *statement) Close() error {
	return st.command(wire.CloseStatement(st.ok.ID))
}

func (st *statement) Exec([]driver.Value) (driver.Result, error) { return nil, driver.ErrSkip }
func (st *statement) Query([]driver.Value) (driver.Rows, error)  { return nil, driver.ErrSkip }

func (st *statement) ExecContext(_ context.Context, args []driver.NamedValue) (driver.Result, error) {
	return as[driver.Result](st.execute(args))
}

func (st *statement) QueryContext(_ context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return as[driver.Rows](st.execute(args))
}

func (st *statement) execute(args []driver.NamedValue) (*reply, error) {
	e := wire.Execute{Stmt: st.ok.ID, Params: make([]wire.Param, len(args)), Extra: st.extra}
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
			return nil, fmt.Errorf("leafsql: argument %d: the proxy cannot send a %T", i+1, v)
		}
	}
	if err := st.command(e.Append(nil, st.caps&wire.QueryAttrs != 0)); err != nil {
		return nil, err
	}
	return st.reply()
}
