// Package wire parses and encodes the packets of MySQL's client/server protocol that a proxy
// has to read: logins, the ends of answers, and the arguments of prepared statements. A packet is sent in one frame
// or more. A frame is a header of four bytes and a part of the payload.
//
//	login, err := wire.ParseLogin(payload)
//	ok, err := wire.ParseOK(payload)
//
// It also parses and encodes the PROXY header, in which a balancer sends the address of the client before the
// first packet.
//
// The package does not read connections and has no state. Each function takes the payload of one packet,
// checks all lengths in it, and returns ErrMalformed if the packet is not of the expected
// kind. The package does not parse rows and column definitions, except for single values.
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

// ErrMalformed is returned for a packet that cannot be parsed.
var ErrMalformed = errors.New("malformed packet")

// MaxFrame is the longest payload of one frame, in bytes. A payload of at least this length continues
// in the next frame.
const MaxFrame = 1<<24 - 1

// HeaderLen is the length of a frame's header: three bytes for the length, and one for the sequence number.
const HeaderLen = 4

// Commands, the first byte of a client's packet.
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
	LongPassword   = 1 << 0 // unset by a MariaDB server with its own capabilities
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

// MariaDB's own capabilities, which are sent in a separate number.
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
	OutParams          = 1 << 12 // the result set has the OUT parameters of a procedure
	NoBackslashEscapes = 1 << 9
	StateChanged       = 1 << 14
)

// A cursor reads a payload from the front. A read beyond its end sets isMalformed, and later
// reads return zeros.
type cursor struct {
	p           []byte
	isMalformed bool
}

func (c *cursor) take(n uint64) []byte {
	if c.isMalformed || n > uint64(len(c.p)) {
		c.isMalformed, c.p = true, nil
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
		c.isMalformed, c.p = true, nil
		return 0
	default:
		return uint64(first)
	}
}

func (c *cursor) lenEncBytes() []byte { return c.take(c.lenEnc()) }

// terminated reads up to a zero byte, which must exist.
func (c *cursor) terminated() []byte {
	s := c.take(uint64(bytes.IndexByte(c.p, 0))) // without a zero byte, more than the rest of the payload
	c.take(1)
	return s
}

func (c *cursor) err() error {
	if c.isMalformed {
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

// ParseLenEnc parses a length-encoded integer at the front of a payload, and returns the rest
// of the payload.
func ParseLenEnc(p []byte) (n uint64, rest []byte, err error) {
	c := cursor{p: p}
	n = c.lenEnc()
	return n, c.p, c.err()
}

// ParseRowValue parses the first value of a row in the text protocol, and returns the rest of the row. The value
// is a []byte, or nil for NULL.
func ParseRowValue(p []byte) (value any, rest []byte, err error) {
	if len(p) > 0 && p[0] == 0xfb {
		return nil, p[1:], nil
	}
	c := cursor{p: p}
	value = c.lenEncBytes()
	return value, c.p, c.err()
}
