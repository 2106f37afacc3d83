package proxy

import (
	"net"
	"net/netip"
	"slices"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// readClientAddress determines the client's address. A balancer has to send it in a PROXY header before all other
// data. If the header were optional, a client that connects through the balancer could send a header itself. Some
// health checks connect and close without a header; then the proxy does not connect to the server.
func (s *session) readClientAddress() error {
	s.client.address = addrPort(s.client.raw.RemoteAddr())
	peer := s.client.address.Addr()
	if !slices.ContainsFunc(s.proxy.cfg.ProxyProtocol, func(n netip.Prefix) bool { return n.Contains(peer) }) {
		return nil
	}
	s.client.raw.SetReadDeadline(time.Now().Add(loginTimeout))
	defer s.client.raw.SetReadDeadline(time.Time{})
	for length := 1; ; {
		b, err := s.client.readAtLeast(length)
		if err == nil {
			s.client.address, length, err = wire.ParseHeader(b)
		}
		switch {
		case err != nil:
			s.client.sendError(1043, "", "leafsql: no PROXY header came from "+peer.String()+", which -proxy-protocol lists as a balancer; let the balancer send one (HAProxy: send-proxy-v2), or remove the address from -proxy-protocol")
			return err
		case length <= len(b):
			s.client.discard(length)
			s.client.release()
			s.client.isBalancer = !s.client.address.IsValid() || s.client.address.Addr() == peer
			return nil
		}
	}
}

// denyUnreadLogin sends an error to a client with a login that was too long to be read. The client may be a balancer
// that is missing in Config.ProxyProtocol.
func (s *session) denyUnreadLogin(err error) error {
	if err != errTooLarge {
		return err
	}
	s.client.seq++ // the number that the client expects: its login may follow the header
	if wire.HasHeaderPrefix(s.client.buffered()) {
		return s.denyLogin(1043, "08S01", "leafsql: a PROXY header came from "+s.client.address.Addr().String()+", which -proxy-protocol does not list as a balancer; add the address to -proxy-protocol, or send no header")
	}
	return s.denyLogin(1043, "08S01", "Bad handshake")
}

// sendClientAddress sends the server the client's address, if configured.
func (s *session) sendClientAddress() error {
	if !s.proxy.cfg.ServerProxyProtocol {
		return nil
	}
	return wrapServerGone(s.server.write(wire.AppendHeader(nil, s.client.address, addrPort(s.client.raw.LocalAddr()))))
}

// serverSeesClient reports whether the server receives the client's address, and the client is on another host
// than the proxy.
func (s *session) serverSeesClient() bool {
	return s.proxy.cfg.ServerProxyProtocol && s.client.address.IsValid() && s.client.address.Addr() != addrPort(s.server.raw.LocalAddr()).Addr()
}

// clientAddress returns the client's address.
func (s *session) clientAddress() string {
	if s.client.address.IsValid() {
		return s.client.address.String()
	}
	return s.client.raw.RemoteAddr().String()
}

// addrPort returns the address of a TCP connection, or an invalid one for other connections.
func addrPort(of net.Addr) netip.AddrPort {
	tcp, ok := of.(*net.TCPAddr)
	if !ok {
		return netip.AddrPort{}
	}
	a := tcp.AddrPort()
	return netip.AddrPortFrom(a.Addr().Unmap().WithZone(""), a.Port())
}
