package proxy

import (
	"crypto/tls"
	"encoding/binary"
	"log/slog"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/internal/wire"
)

// Packets of logins.
const (
	aGreeting = "\x0a5.5.5-any\x00\x01\x00\x00\x00saltsalt\x00\xff\xff\x2d\x02\x00\xff\x81\x15\x00\x00\x00\x00\x00\x00\x1d\x00\x00\x00saltsaltsalt\x00mysql_native_password\x00"
	aLogin    = "\x01\xa2\x08\x00\x00\x00\x00\x40\x2d" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00" + "app\x00\x00mysql_native_password\x00"
	forTLS    = "\x01\xaa\x08\x00\x00\x00\x00\x40\x2d" + "\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00"
	another   = "\xfecaching_sha2_password\x00saltsaltsaltsaltsalt\x00"
)

// numberFrames numbers frames as in a dialogue.
func numberFrames(first, step byte, payloads ...string) []byte {
	b := encodeFrames(payloads...)
	for at := 0; at < len(b); first += step {
		b[at+3] = first
		at += wire.HeaderLen + int(binary.LittleEndian.Uint32(b[at:])&wire.MaxFrame)
	}
	return b
}

// FuzzHandshake: no bytes of a client before its login cause a panic, or reach the server unless they are a
// login. No bytes of a server cause a panic.
func FuzzHandshake(f *testing.F) {
	f.Add(numberFrames(0, 2, aGreeting, anOK), numberFrames(1, 2, aLogin), byte(0), []byte{3})
	f.Add(numberFrames(0, 2, aGreeting, another, "\x01\x03"), numberFrames(1, 2, aLogin, "\x02"), byte(0), []byte{1})
	f.Add(numberFrames(0, 2, aGreeting, another, "\x01\x04", "\x01key", anErr), numberFrames(1, 2, aLogin, "answer", "\x02", "secret"), byte(0), []byte(nil))
	f.Add(numberFrames(0, 2, aGreeting), append(numberFrames(1, 2, forTLS), "\x16\x03\x01\x00\x05hello"...), byte(1), []byte{36})
	f.Add(numberFrames(0, 2, aGreeting), numberFrames(1, 2, aLogin), byte(3), []byte(nil))
	f.Add(numberFrames(0, 2, aGreeting), numberFrames(1, 2, strings.Replace(aLogin, "app", "app\x14abc", 1)), byte(0), []byte(nil))
	f.Add(numberFrames(0, 2, aGreeting), numberFrames(1, 2, "\x41\x38\x00\x00\x00an older form"), byte(3), []byte(nil))
	f.Add(numberFrames(0, 1, anErr), []byte(nil), byte(0), []byte(nil))
	f.Fuzz(func(t *testing.T, fromServer, fromClient []byte, flags byte, cuts []byte) {
		of := &Server{cfg: Config{Logger: slog.New(slog.DiscardHandler), RequireTLS: flags&2 != 0}}
		if flags&1 != 0 {
			of.cfg.TLS, of.cfg.ServerTLS = &tls.Config{}, &tls.Config{InsecureSkipVerify: true}
		}
		var lengths []int
		for _, n := range cuts {
			lengths = append(lengths, 1+int(n))
		}
		server, client := &pieceConn{unread: fromServer, lengths: lengths}, &pieceConn{unread: fromClient, lengths: lengths}
		s := &session{proxy: of}
		s.client.frameConn = client.frameConn()
		s.server.frameConn, s.server.client = server.frameConn(), &s.client
		err := s.handshake()
		s.client.returnBuffer()
		s.server.returnBuffer()
		if n := of.counts.panics.Load(); n > 0 {
			t.Fatalf("recovered panics = %d, want 0", n)
		}
		if len(server.written) > 0 {
			p := server.written[min(wire.HeaderLen, len(server.written)):]
			if login, err := wire.ParseLogin(p); err != nil || login.Caps&wire.Protocol41 == 0 || login.Caps&(wire.Compress|wire.ZstdCompress) != 0 {
				t.Errorf("sent to the server: %q, want a login with protocol 4.1 and without compression", server.written)
			}
			if of.cfg.RequireTLS && binary.LittleEndian.Uint32(p)&wire.SSL == 0 {
				t.Errorf("sent to the server: %q, want a request for TLS", server.written)
			}
		}
		if told := strings.Count(string(client.written), string(s.server.frame)); err == nil && (!s.isLoginDecided || told == 0) {
			t.Errorf("after the server's %q: sent to the client: %q, want the server's OK", fromServer, client.written)
		}
	})
}
