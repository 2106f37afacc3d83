package proxytest

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"syscall"
	"time"
)

// The commands.
const (
	Quit            = 0x01
	InitDB          = 0x02
	QueryText       = 0x03
	FieldList       = 0x04
	Statistics      = 0x09
	ProcessInfo     = 0x0A
	Kill            = 0x0C
	Debug           = 0x0D
	Ping            = 0x0E
	ChangeUser      = 0x11
	Prepare         = 0x16
	Execute         = 0x17
	SendLongData    = 0x18
	StmtClose       = 0x19
	StmtReset       = 0x1A
	SetOption       = 0x1B
	Fetch           = 0x1C
	ResetConnection = 0x1F
	BulkExecute     = 0xFA
)

type sentCommand struct {
	name          string
	command       byte
	seq           byte // number of the first frame of the answer
	compressedSeq byte // number of its first compressed frame
}

// Send sends a command. Answer returns its answer, after the answers of earlier commands.
func (c *Client) Send(command byte, payload []byte) {
	shown := payload
	switch command {
	case Execute, BulkExecute, SendLongData, StmtClose, StmtReset, Fetch:
		shown = payload[min(4, len(payload)):] // without the statement's id
	}
	if command == ChangeUser {
		shown, _, _ = bytes.Cut(payload, []byte{0}) // without the proof of the password
	}
	name := fmt.Sprintf("command %#x %.60q", command, shown)
	seq := byte(0)
	out := frames(&seq, payload, command)
	packed := c.compression.setSeq(0)
	c.write(out) // an error is reported when the answer is read
	next := c.compression.setSeq(packed)
	if len(c.pending) == 0 { // not if an answer to an earlier command, with other numbers, comes first
		c.compression.setSeq(next)
	}
	silent := command == Quit || command == StmtClose && len(payload) >= 4 || command == SendLongData && len(payload) >= 6 // shorter ones are errors, which have an answer
	if !silent {
		c.pending = append(c.pending, sentCommand{name, command, seq, next})
	}
}

// write writes a part of a command. An error is reported when the answer is read.
func (c *Client) write(b []byte) {
	if c.Slow != nil {
		c.Slow.Write(b)
		return
	}
	c.Conn.Write(b)
}

// Answer reads the answer to the first command that has no answer yet.
func (c *Client) Answer() *Answer {
	if len(c.pending) == 0 {
		panic("proxytest: no command was sent")
	}
	s := c.pending[0]
	c.pending, c.seq = c.pending[1:], s.seq
	c.compression.setSeq(s.compressedSeq)
	a := Answer{Name: s.name, hidden: c.hidden, Closed: c.brokenErr}
	if c.brokenErr == nil {
		c.brokenErr = c.readAnswer(&a, s.command)
		a.Closed = c.brokenErr
		c.Answers = append(c.Answers, a)
	}
	return &a
}

func (c *Client) readAnswer(a *Answer, command byte) (err error) {
	switch command {
	case Prepare:
		return c.readPrepared(a)
	case Execute, BulkExecute:
		return c.readResults(a, BinaryRow)
	case Fetch:
		_, err = c.readRows(a, BinaryRow)
	case FieldList:
		_, err = c.readRows(a, Field)
	case Statistics:
		_, err = c.readNext(a, Text)
	case SetOption, StmtReset, Ping, InitDB, ResetConnection, Kill, Debug:
		_, _, err = c.readFirst(a)
	case ChangeUser:
		return c.authenticate(a)
	default:
		return c.readResults(a, Row)
	}
	return err
}

// Packets reads n packets, of an endless stream, as the answer to the last command.
func (c *Client) Packets(name string, n int) *Answer {
	c.pending = nil
	a := Answer{Name: name, hidden: c.hidden}
	c.compression.setSeq(1)
	for c.seq = 1; n > 0 && a.Closed == nil; n-- {
		_, a.Closed = c.readNext(&a, Text)
	}
	c.Answers = append(c.Answers, a)
	c.brokenErr = errStream
	return &a
}

var errStream = errors.New("a stream was read")

// ReadRest reads the remaining packets until the server ends the connection.
func (c *Client) ReadRest() *Answer {
	a := Answer{Name: "rest"}
	c.Conn.SetReadDeadline(time.Now().Add(Timeout))
	if c.compression != nil { // a server may send its last packet with an unexpected number
		c.compression.ignoresSeq = true
	}
	rest, err := io.ReadAll(c.in)
	a.Packets = []Packet{{Kind: Text, Payload: rest}}
	if err != nil && !isDisconnect(err) {
		a.Closed = err
	}
	c.Answers = append(c.Answers, a)
	c.brokenErr = errStream
	return &a
}

// Do sends a command and reads its answer.
func (c *Client) Do(command byte, payload []byte) *Answer {
	c.Send(command, payload)
	return c.Answer()
}

// Query runs a text.
func (c *Client) Query(text string) *Answer { return c.Do(QueryText, c.withAttributes(text)) }

// SendQuery sends a text. Its answer is returned by Answer.
func (c *Client) SendQuery(text string) { c.Send(QueryText, c.withAttributes(text)) }

// withAttributes puts the query attributes before a text.
func (c *Client) withAttributes(text string, attributes ...Param) []byte {
	var b []byte
	if c.has(QueryAttributes) {
		b = appendLenenc(b, uint64(len(attributes)))
		b = append(b, 1)
		if len(attributes) > 0 {
			b = appendParams(b, true, true, attributes)
		}
	}
	return append(b, text...)
}

// QueryWith runs a text with query attributes.
func (c *Client) QueryWith(text string, attributes ...Param) *Answer {
	return c.Do(QueryText, c.withAttributes(text, attributes...))
}

// A Param is a parameter of an execution, or an attribute of a query.
type Param struct {
	Name      string
	Type      byte
	Unsigned  bool
	Value     []byte // the value in the encoding of the binary protocol
	Null      bool
	Long      bool // the value was sent by SendLongData
	Indicator byte // for a bulk execution: 1 NULL, 2 DEFAULT, 3 IGNORE
}

// Int returns a BIGINT parameter.
func Int(n int64) Param {
	return Param{Type: 0x08, Value: binary.LittleEndian.AppendUint64(nil, uint64(n))}
}

// Float returns a DOUBLE parameter.
func Float(f float64) Param {
	return Param{Type: 0x05, Value: binary.LittleEndian.AppendUint64(nil, math.Float64bits(f))}
}

// String returns a VAR_STRING parameter.
func String(s string) Param { return Param{Type: 0xFD, Value: appendText(nil, s)} }

// Null returns a NULL parameter.
func Null() Param { return Param{Type: 0x06, Null: true} }

// Long returns a BLOB parameter with a value that SendLongData sent.
func Long() Param { return Param{Type: 0xFC, Long: true} }

// appendParams appends the parameters of an execution, with their names if the connection has query attributes.
func appendParams(b []byte, types, names bool, params []Param) []byte {
	nulls := make([]byte, (len(params)+7)/8)
	for i, p := range params {
		if p.Null {
			nulls[i/8] |= 1 << (i % 8)
		}
	}
	b = append(b, nulls...)
	if types {
		b = append(b, 1)
		for _, p := range params {
			b = append(b, p.Type, flag(p.Unsigned)<<7)
			if names {
				b = appendText(b, p.Name)
			}
		}
	} else {
		b = append(b, 0)
	}
	for _, p := range params {
		if !p.Null && !p.Long {
			b = append(b, p.Value...)
		}
	}
	return b
}

func flag(on bool) byte {
	if on {
		return 1
	}
	return 0
}

// A Stmt is a prepared statement.
type Stmt struct {
	c              *Client
	ID             uint32
	Params, Fields int
	Answer         *Answer
}

// Prepare prepares a statement. If the server refuses it, its id is 0.
func (c *Client) Prepare(text string) *Stmt {
	a := c.Do(Prepare, []byte(text))
	s := &Stmt{c: c, Answer: a}
	if p := a.last(Prepared); p != nil {
		s.ID = binary.LittleEndian.Uint32(p[1:])
		s.Fields, s.Params = int(binary.LittleEndian.Uint16(p[5:])), int(binary.LittleEndian.Uint16(p[7:]))
	}
	return s
}

func (s *Stmt) id() []byte { return binary.LittleEndian.AppendUint32(nil, s.ID) }

// Execute executes the statement without a cursor, and sends the parameters' types.
func (s *Stmt) Execute(params ...Param) *Answer { return s.ExecuteAs(0, true, params...) }

// Flags of an execution.
const (
	ReadOnlyCursor = 1
	CountAvailable = 8 // the number of parameters is included; parameters after the statement's own are query attributes
)

// ExecuteAs executes the statement with flags. It sends the parameters' types if types is set; otherwise the types
// of the last execution apply.
func (s *Stmt) ExecuteAs(flags byte, types bool, params ...Param) *Answer {
	s.c.Send(Execute, s.execution(flags, types, params))
	return s.c.Answer()
}

// Send sends an execution without a cursor. Its answer is returned by Client.Answer.
func (s *Stmt) Send(params ...Param) { s.c.Send(Execute, s.execution(0, true, params)) }

func (s *Stmt) execution(flags byte, types bool, params []Param) []byte {
	named := s.c.has(QueryAttributes) && (len(params) > 0 || flags&CountAvailable != 0)
	b := append(s.id(), flags, 1, 0, 0, 0)
	if named {
		b = appendLenenc(b, uint64(len(params)))
	}
	if len(params) > 0 {
		b = appendParams(b, types, named, params)
	}
	return b
}

// Bulk executes the statement once for each row, in one command, like MariaDB's clients.
func (s *Stmt) Bulk(flags uint16, rows ...[]Param) *Answer {
	b := binary.LittleEndian.AppendUint16(s.id(), flags|128)
	for _, p := range rows[0] {
		b = append(b, p.Type, flag(p.Unsigned)<<7)
	}
	for _, row := range rows {
		for _, p := range row {
			indicator := p.Indicator
			if p.Null {
				indicator = 1
			}
			if b = append(b, indicator); indicator == 0 {
				b = append(b, p.Value...)
			}
		}
	}
	return s.c.Do(BulkExecute, b)
}

// SendLongData sends a piece of a parameter. It has no answer.
func (s *Stmt) SendLongData(param uint16, piece string) {
	s.c.Send(SendLongData, append(binary.LittleEndian.AppendUint16(s.id(), param), piece...))
}

// Fetch reads n rows of the statement's cursor.
func (s *Stmt) Fetch(n uint32) *Answer {
	return s.c.Do(Fetch, binary.LittleEndian.AppendUint32(s.id(), n))
}

// Reset closes the cursor and discards long data.
func (s *Stmt) Reset() *Answer { return s.c.Do(StmtReset, s.id()) }

// Close closes the statement. It has no answer.
func (s *Stmt) Close() { s.c.Send(StmtClose, s.id()) }

// ChangeUser logs in again on the same connection.
func (c *Client) ChangeUser(user, password, database string) *Answer {
	c.opts.Password = password
	token := c.passwordProof()
	b := append([]byte(user), 0)
	b = append(append(b, byte(len(token))), token...)
	b = append(append(b, database...), 0, 45, 0)
	if c.has(PluginAuth) {
		b = append(append(b, c.plugin...), 0)
	}
	if c.has(ConnectAttrs) {
		b = appendText(b, attributes(c.opts.Attributes))
	}
	return c.Do(ChangeUser, b)
}

// Hide makes a Twin compare later answers without their numbers. what names the reason for readers of the
// script; "" ends it.
func (c *Client) Hide(what string) { c.hidden = what }

// Close sends the command to quit and waits until the connection is closed.
func (c *Client) Close() {
	c.Send(Quit, nil)
	if _, err := c.in.ReadByte(); c.brokenErr == nil && err != nil && !isDisconnect(err) {
		c.Answers = append(c.Answers, Answer{Name: "goodbye", Closed: err})
	}
	c.Conn.Close()
}

// isDisconnect reports whether an error means that the other side has closed the connection, in any way.
func isDisconnect(err error) bool {
	return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) ||
		strings.Contains(err.Error(), "tls: ")
}
