// Package wire reads and writes the packets of MySQL's client/server protocol that a proxy
// has to understand: logins, the ends of answers, and the arguments of prepared statements.
//
//	login, err := wire.ParseLogin(payload)
//	ok, err := wire.ParseOK(payload)
//
// Beside them it has the PROXY header, with which a balancer says before the first packet whose
// connection it passes on.
//
// It is pure: it reads no connection and keeps nothing. Each function takes one packet's
// payload, trusts none of its lengths, and gives ErrMalformed for one that is no packet of
// its kind. Rows and column definitions are nobody's concern here.
//
// The protocol is described at
// https://dev.mysql.com/doc/dev/mysql-server/latest/PAGE_PROTOCOL.html and
// https://mariadb.com/kb/en/clientserver-protocol/.
package wire

import (
	"bytes"
	"encoding/binary"
	"errors"
)

// ErrMalformed says that a packet is none of its kind.
var ErrMalformed = errors.New("malformed packet")

// MaxFrame is the longest payload of one frame. A payload of as many bytes or more goes on
// in the next frame.
const MaxFrame = 1<<24 - 1

// HeaderLen is the length of a frame's header: three bytes of length, one of sequence.
const HeaderLen = 4

// Commands, the first byte of what a client sends.
const (
	ComQuit            = 0x01
	ComInitDB          = 0x02
	ComQuery           = 0x03
	ComFieldList       = 0x04
	ComCreateDB        = 0x05
	ComDropDB          = 0x06
	ComRefresh         = 0x07
	ComShutdown        = 0x08
	ComStatistics      = 0x09
	ComProcessInfo     = 0x0a
	ComKill            = 0x0c
	ComDebug           = 0x0d
	ComPing            = 0x0e
	ComChangeUser      = 0x11
	ComBinlogDump      = 0x12
	ComRegisterSlave   = 0x15
	ComStmtPrepare     = 0x16
	ComStmtExecute     = 0x17
	ComStmtLongData    = 0x18
	ComStmtClose       = 0x19
	ComStmtReset       = 0x1a
	ComSetOption       = 0x1b
	ComStmtFetch       = 0x1c
	ComBinlogDumpGTID  = 0x1e
	ComResetConnection = 0x1f
	ComClone           = 0x20
	ComStmtBulkExecute = 0xfa // MariaDB
)

// Capabilities that client and server agree on in the login.
const (
	LongPassword   = 1 << 0 // unset by a MariaDB server that has capabilities of its own
	FoundRows      = 1 << 1
	ConnectWithDB  = 1 << 3
	NoSchema       = 1 << 4 // the database before a table's name is ignored
	Compress       = 1 << 5
	Protocol41     = 1 << 9
	SSL            = 1 << 11
	SecureConn     = 1 << 15
	MultiStatement = 1 << 16
	LenEncAuth     = 1 << 21
	SessionTrack   = 1 << 23
	DeprecateEOF   = 1 << 24
	OptionalMeta   = 1 << 25
	ZstdCompress   = 1 << 26
	QueryAttrs     = 1 << 27
)

// MariaDB's own capabilities, in words of their own.
const (
	MariaBulk         = 1 << 2
	MariaExtendedMeta = 1 << 3
)

// Bits of the status at the end of an answer.
const (
	InTransaction      = 1 << 0
	Autocommit         = 1 << 1
	MoreResults        = 1 << 3
	CursorExists       = 1 << 6
	OutParams          = 1 << 12 // of a result set that is the OUT parameters of a procedure
	NoBackslashEscapes = 1 << 9
	StateChanged       = 1 << 14
)

// A cursor reads a payload from the front. After a read beyond its end bad is set, and every
// read gives zeros.
type cursor struct {
	p   []byte
	bad bool
}

func (c *cursor) take(n uint64) []byte {
	if c.bad || n > uint64(len(c.p)) {
		c.bad, c.p = true, nil
		return nil
	}
	b := c.p[:n:n]
	c.p = c.p[n:]
	return b
}

func (c *cursor) byte() byte {
	if b := c.take(1); b != nil {
		return b[0]
	}
	return 0
}

// uint reads an integer of n bytes.
func (c *cursor) uint(n uint64) (v uint64) {
	for i, b := range c.take(n) {
		v |= uint64(b) << (8 * i)
	}
	return v
}

func (c *cursor) uint16() uint16 { return uint16(c.uint(2)) }
func (c *cursor) uint32() uint32 { return uint32(c.uint(4)) }

// lenEnc reads a length-encoded integer.
func (c *cursor) lenEnc() uint64 {
	switch first := c.byte(); first {
	case 0xfc:
		return c.uint(2)
	case 0xfd:
		return c.uint(3)
	case 0xfe:
		return c.uint(8)
	case 0xfb, 0xff:
		c.bad, c.p = true, nil
		return 0
	default:
		return uint64(first)
	}
}

func (c *cursor) lenEncBytes() []byte { return c.take(c.lenEnc()) }

// terminated reads up to a zero byte, which has to be there.
func (c *cursor) terminated() []byte {
	s := c.take(uint64(bytes.IndexByte(c.p, 0))) // without a zero byte, more than is there
	c.take(1)
	return s
}

func (c *cursor) err() error {
	if c.bad {
		return ErrMalformed
	}
	return nil
}

// AppendLenEnc appends a length-encoded integer.
func AppendLenEnc(b []byte, n uint64) []byte {
	switch {
	case n < 0xfb:
		return append(b, byte(n))
	case n < 1<<16:
		return append(b, 0xfc, byte(n), byte(n>>8))
	case n < 1<<24:
		return append(b, 0xfd, byte(n), byte(n>>8), byte(n>>16))
	}
	return binary.LittleEndian.AppendUint64(append(b, 0xfe), n)
}

// LenEnc reads a length-encoded integer at the front of a payload, and returns what is
// behind it.
func LenEnc(p []byte) (n uint64, rest []byte, err error) {
	c := cursor{p: p}
	n = c.lenEnc()
	return n, c.p, c.err()
}

// RowValue reads one value of a text row, which is bytes, or nil for NULL, and returns the rest of the row.
func RowValue(p []byte) (value any, rest []byte, err error) {
	if len(p) > 0 && p[0] == 0xfb {
		return nil, p[1:], nil
	}
	c := cursor{p: p}
	value = c.lenEncBytes()
	return value, c.p, c.err()
}
