package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// A balancer sends the PROXY header before all other data of a client's connection. The header contains the client's
// address. It is described at https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt.

const (
	textHeader   = "PROXY "
	binaryHeader = "\r\n\r\n\x00\r\nQUIT\n"

	maxTextHeader   = 107
	maxBinaryHeader = 4096 // the addresses are at most 36 bytes of it; balancers may add more
)

// HasHeaderPrefix reports whether b, of at least four bytes, begins like a PROXY header. A login never begins with these
// bytes: as the header of a frame, they would mean a payload that is much longer than a login.
func HasHeaderPrefix(b []byte) bool {
	return len(b) >= 4 && (string(b[:4]) == textHeader[:4] || string(b[:4]) == binaryHeader[:4])
}

// ParseHeader parses the PROXY header, of either version, at the front of b. n is its length. If
// b does not contain the whole header, n is greater than len(b), and the caller has to read at least n bytes
// and call again. from is the client's address. It is not valid if the connection is the balancer's own,
// as in health checks, or if the header has no address. ErrMalformed means that b does not begin with a PROXY
// header.
func ParseHeader(b []byte) (from netip.AddrPort, n int, err error) {
	switch {
	case !sharePrefix(b, textHeader) && !sharePrefix(b, binaryHeader):
		return from, 0, ErrMalformed
	case len(b) == 0:
		return from, 1, nil
	case b[0] == textHeader[0]:
		return parseText(b)
	}
	return parseBinary(b)
}

// sharePrefix reports whether the shorter of b and with is a prefix of the other.
func sharePrefix(b []byte, with string) bool {
	n := min(len(b), len(with))
	return string(b[:n]) == with[:n]
}

func parseText(b []byte) (from netip.AddrPort, n int, err error) {
	end := bytes.Index(b[:min(len(b), maxTextHeader)], []byte("\r\n"))
	if end < 0 {
		if n = len(b) + 1; n > maxTextHeader {
			err = ErrMalformed
		}
		return from, n, err
	}
	n = end + 2
	fields := strings.Split(string(b[:end]), " ")
	if len(fields) > 1 && fields[1] == "UNKNOWN" { // the rest is ignored
		return from, n, nil
	}
	if len(fields) != 6 || fields[1] != "TCP4" && fields[1] != "TCP6" {
		return from, n, ErrMalformed
	}
	source, err := netip.ParseAddrPort(net.JoinHostPort(fields[2], fields[4]))
	dest, err2 := netip.ParseAddrPort(net.JoinHostPort(fields[3], fields[5]))
	is4 := fields[1] == "TCP4"
	if err != nil || err2 != nil || source.Addr().Is4() != is4 || dest.Addr().Is4() != is4 || source.Addr().Zone() != "" {
		return from, n, ErrMalformed
	}
	return unmapAddr(source), n, nil
}

func unmapAddr(a netip.AddrPort) netip.AddrPort {
	return netip.AddrPortFrom(a.Addr().Unmap(), a.Port())
}

func parseBinary(b []byte) (from netip.AddrPort, n int, err error) {
	const fixed = len(binaryHeader) + 1 + 1 + 2
	if len(b) < fixed {
		return from, fixed, nil
	}
	command, family := b[len(binaryHeader)], b[len(binaryHeader)+1]
	n = fixed + int(binary.BigEndian.Uint16(b[fixed-2:]))
	switch {
	case n > maxBinaryHeader, command>>4 != 2, command&0xf > 1:
		return from, n, ErrMalformed
	case len(b) < n:
		return from, n, nil
	case command&0xf == 0: // LOCAL: the balancer's own connection
		return from, n, nil
	}
	size := 0 // size of an address
	switch family {
	case 0x00, 0x31: // unspecified, unix socket
		return from, n, nil
	case 0x11: // TCP over IPv4
		size = 4
	case 0x21: // TCP over IPv6
		size = 16
	default:
		return from, n, ErrMalformed
	}
	c := cursor{p: b[fixed:n]}
	addr, _ := netip.AddrFromSlice(c.take(uint64(size)))
	c.take(uint64(size))
	port := c.take(2)
	c.take(2)
	if c.isMalformed {
		return from, n, ErrMalformed
	}
	return unmapAddr(netip.AddrPortFrom(addr, binary.BigEndian.Uint16(port))), n, nil
}

// AppendHeader appends the PROXY header for a client at from that connected to the address to, or for an unknown
// client if from is not valid. It has version 1, which all servers with PROXY headers accept.
func AppendHeader(b []byte, from, to netip.AddrPort) []byte {
	if !from.IsValid() {
		return append(b, textHeader+"UNKNOWN\r\n"...)
	}
	source, dest, family := from.Addr().Unmap().WithZone(""), to.Addr().Unmap().WithZone(""), "TCP6"
	unknown := netip.IPv6Unspecified()
	if source.Is4() {
		family, unknown = "TCP4", netip.IPv4Unspecified()
	}
	if source.Is4() != dest.Is4() || !dest.IsValid() { // the header needs an address of the client's family, which is not known here
		dest = unknown
	}
	return fmt.Appendf(b, "%s%s %s %s %d %d\r\n", textHeader, family, source, dest, from.Port(), to.Port())
}
