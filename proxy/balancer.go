package proxy

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// meet learns who the client is. A balancer says so in a PROXY header before anything else, and
// has to: where it may be missing, a client behind the balancer could bring one itself. A
// balancer that only looks whether somebody answers, and closes, gives the server no connection.
func (s *session) meet() error {
	s.client.from = addrPort(s.client.raw.RemoteAddr())
	peer := s.client.from.Addr()
	if !slices.ContainsFunc(s.proxy.cfg.ProxyProtocol, func(n netip.Prefix) bool { return n.Contains(peer) }) {
		return nil
	}
	s.client.raw.SetReadDeadline(time.Now().Add(loginTime))
	defer s.client.raw.SetReadDeadline(time.Time{})
	for length := 1; ; {
		b, err := s.client.need(length)
		if err == nil {
			s.client.from, length, err = wire.ParseHeader(b)
		}
		switch {
		case err != nil:
			s.client.fail(1043, "", "leafsql: no PROXY header comes from "+peer.String()+", though it is a balancer's address by -proxy-protocol; let the balancer send one (HAProxy: send-proxy-v2), or take the address out")
			return err
		case length <= len(b):
			s.client.take(length)
			s.client.release()
			s.client.forItself = !s.client.from.IsValid() || s.client.from.Addr() == peer
			return nil
		}
	}
}

// unread tells a client whose login was too long to be read. It may be a balancer that is not known as one.
func (s *session) unread(err error) error {
	if err != errTooLarge {
		return err
	}
	s.client.seq++ // as the client expects, whose login may be there behind the header
	if wire.BeginsHeader(s.client.buffered()) {
		return s.deny(1043, "08S01", "leafsql: a PROXY header comes from "+s.client.from.Addr().String()+", which is no balancer's address by -proxy-protocol; name it there, or let it send none")
	}
	return s.deny(1043, "08S01", "Bad handshake")
}

// introduce tells the server who the client is.
func (s *session) introduce() error {
	if !s.proxy.cfg.ServerProxyProtocol {
		return nil
	}
	return serverGone(s.server.write(wire.AppendHeader(nil, s.client.from, addrPort(s.client.raw.LocalAddr()))))
}

// toldWho reports whether the server is told whose the connection is, and that it is of another host than
// the proxy's.
func (s *session) toldWho() bool {
	return s.proxy.cfg.ServerProxyProtocol && s.client.from.IsValid() && s.client.from.Addr() != addrPort(s.server.raw.LocalAddr()).Addr()
}

// who is the client's address.
func (s *session) who() string {
	if s.client.from.IsValid() {
		return s.client.from.String()
	}
	return s.client.raw.RemoteAddr().String()
}

// addrPort is a TCP connection's address, not valid for others.
func addrPort(of net.Addr) netip.AddrPort {
	tcp, ok := of.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	a := tcp.AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
