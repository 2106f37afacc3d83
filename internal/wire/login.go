package wire

import (
	"bytes"
	"encoding/binary"
)

// A Greeting is the first packet of a server.
type Greeting struct {
	Version   string
	Caps      uint32
	MariaCaps uint32 // MariaDB's own capabilities; 0: none, or not MariaDB

	payload []byte
	capsAt  int // offset of the capabilities
}

// ParseGreeting parses a server's greeting. The Greeting refers to the payload.
func ParseGreeting(p []byte) (Greeting, error) {
	g := Greeting{payload: p}
	c := cursor{p: p}
	if c.byte() != 10 {
		return g, ErrMalformed
	}
	g.Version = string(c.terminated())
	c.take(4 + 8 + 1) // connection id, first part of the scramble, a zero
	g.capsAt = len(p) - len(c.p)
	g.Caps = uint32(c.uint16())
	c.take(1 + 2) // character set, status
	g.Caps |= uint32(c.uint16()) << 16
	c.take(1 + 6) // length of the scramble, reserved
	if maria := c.uint32(); g.Caps&LongPassword == 0 {
		g.MariaCaps = maria
	}
	return g, c.err()
}

// SetCaps changes the capabilities in the greeting's payload. All of them must have been offered.
func (g *Greeting) SetCaps(caps, maria uint32) {
	g.Caps, g.MariaCaps = caps, maria
	at := g.payload[g.capsAt:]
	binary.LittleEndian.PutUint16(at, uint16(caps))
	binary.LittleEndian.PutUint16(at[5:], uint16(caps>>16))
	if caps&LongPassword == 0 {
		binary.LittleEndian.PutUint32(at[14:], maria)
	}
}

// A Login is a client's answer to the greeting. A request for TLS is a login without the user and the fields after it;
// the client sends the whole login through TLS afterwards.
type Login struct {
	Caps      uint32
	MariaCaps uint32
	User      string
	Database  string
}

// ParseLogin parses a client's answer to the greeting.
func ParseLogin(p []byte) (Login, error) {
	var l Login
	c := cursor{p: p}
	l.Caps = c.uint32()
	if c.isMalformed || l.Caps&Protocol41 == 0 {
		return l, c.err() // the old form, which is not parsed further
	}
	c.take(4 + 1 + 19) // longest packet, character set, reserved
	if maria := c.uint32(); l.Caps&LongPassword == 0 {
		l.MariaCaps = maria
	}
	if l.Caps&SSL != 0 && len(c.p) == 0 {
		return l, c.err()
	}
	l.User = string(c.terminated())
	switch {
	case l.Caps&LenEncAuth != 0:
		c.lenEncBytes()
	case l.Caps&SecureConn != 0:
		c.take(uint64(c.byte()))
	default:
		c.terminated()
	}
	if l.Caps&ConnectWithDB != 0 && len(c.p) > 0 {
		l.Database = string(c.terminated())
	}
	return l, c.err() // the server checks the rest
}

// ParseChangeUser parses COM_CHANGE_USER, including the command byte. caps are the capabilities
// in the client's login.
func ParseChangeUser(p []byte, caps uint32) (user, database string, err error) {
	c := cursor{p: p}
	c.byte()
	user = string(c.terminated())
	if caps&SecureConn != 0 {
		c.take(uint64(c.byte()))
	} else {
		c.terminated()
	}
	name, _, _ := bytes.Cut(c.p, []byte{0}) // it may end without a zero
	return user, string(name), c.err()
}
