package wire

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"net"
	"net/netip"
	"strings"
)

// The PROXY header, with which a balancer says whose connection it passes on before anything
// else is sent. It is described at https://www.haproxy.org/download/2.8/doc/proxy-protocol.txt.

const (
	textHeader   = "PROXY "
	binaryHeader = "\r\n\r\n\x00\r\nQUIT\n"

	maxTextHeader   = 107
	maxBinaryHeader = 4096 // the addresses are 36 bytes of it at most, the rest is what balancers add
)

// BeginsHeader reports whether b, of at least four bytes, begins as a PROXY header does. Taken for a
// frame it is far longer than one of a login.
func BeginsHeader(b []byte) bool {
	return len(b) >= 4 && (string(b[:4]) == textHeader[:4] || string(b[:4]) == binaryHeader[:4])
}

// ParseHeader reads the PROXY header, of either version, at the front of b. n is its length; if
// b does not hold all of it, n is greater than that of b, and as many bytes have to be there
// before more can be told. from is the client; it is not valid if the balancer speaks for itself,
// as in its health checks, or does not say an address.
func ParseHeader(b []byte) (from netip.AddrPort, n int, err error) {
	switch {
	case !begin(b, textHeader) && !begin(b, binaryHeader):
		return from, 0, ErrMalformed
	case len(b) == 0:
		return from, 1, nil
	case b[0] == textHeader[0]:
		return parseText(b)
	}
	return parseBinary(b)
}

// begin reports whether the shorter of both begins the other.
func begin(b []byte, with string) bool {
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
	if len(fields) > 1 && fields[1] == "UNKNOWN" { // whatever follows
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
	return unmapped(source), n, nil
}

func unmapped(a netip.AddrPort) netip.AddrPort { return netip.AddrPortFrom(a.Addr().Unmap(), a.Port()) }

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
	case command&0xf == 0: // LOCAL: of the balancer's own
		return from, n, nil
	}
	size := 0 // of an address
	switch family {
	case 0x00, 0x31: // not said, unix socket
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
	if c.bad {
		return from, n, ErrMalformed
	}
	return unmapped(netip.AddrPortFrom(addr, binary.BigEndian.Uint16(port))), n, nil
}

// AppendHeader appends the PROXY header, of version 1, which all servers that read one know, of
// a client that connected to an address; of none if from is not valid.
func AppendHeader(b []byte, from, to netip.AddrPort) []byte {
	if !from.IsValid() {
		return append(b, textHeader+"UNKNOWN\r\n"...)
	}
	source, dest, family := from.Addr().Unmap().WithZone(""), to.Addr().Unmap().WithZone(""), "TCP6"
	unknown := netip.IPv6Unspecified()
	if source.Is4() {
		family, unknown = "TCP4", netip.IPv4Unspecified()
	}
	if source.Is4() != dest.Is4() || !dest.IsValid() { // the client reached the balancer at another, of its own family
		dest = unknown
	}
	return fmt.Appendf(b, "%s%s %s %s %d %d\r\n", textHeader, family, source, dest, from.Port(), to.Port())
}
