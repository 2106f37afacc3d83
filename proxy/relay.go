package proxy

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/leafsql/leafsql/internal/wire"
)

// relay passes the server's answer to a command on to the client. ok is false if the command failed.
func (b *backend) relay(a *answer) (ok bool, err error) {
	for {
		p := b.buffered()
		n, err := b.scan(a, p)
		if err == nil && n > 0 {
			err = b.client.write(p[:n])
			b.discard(n)
		}
		switch whole := a.remaining == 0 && !a.continued; { // the payload is complete
		case err != nil:
		case a.ended && whole:
			b.release()
			return a.failure == nil, nil
		case a.requestsFile && whole:
			a.requestsFile = false
			err = b.passFile()
		case a.remaining >= spliced && n == len(p):
			err = b.splice(a)
		default:
			_, err = b.readAtLeast(len(p) - n + 1)
			err = wrapServerGone(err)
		}
		if err != nil {
			return false, err
		}
	}
}

// pass sends the server the client's command while it arrives, and passes the answer on.
func (s *session) pass(a *answer) (ok bool, err error) {
	if _, err := s.server.forward(0); err != nil {
		return false, err
	}
	s.proxy.counts.passed.Add(1)
	return s.server.relay(a)
}

// resend sends the server the last command that was read, and passes the answer on.
func (s *session) resend(a *answer) (ok bool, err error) {
	if s.client.frame != nil {
		err = wrapServerGone(s.server.write(s.client.frame))
	} else {
		err = s.server.sendCommand(s.client.payload)
	}
	s.client.frame, s.client.payload = nil, nil
	if err != nil {
		return false, err
	}
	s.client.release()
	s.proxy.counts.passed.Add(1)
	return s.server.relay(a)
}

// scan follows the answer over the frames in p, and returns how many bytes of p can be passed on now.
func (b *backend) scan(a *answer, p []byte) (n int, err error) {
	for {
		skip := min(a.remaining, len(p)-n)
		n += skip
		a.remaining -= skip
		if a.remaining > 0 || (a.ended || a.requestsFile) && !a.continued || len(p)-n < wire.HeaderLen {
			return n, nil
		}
		length := int(binary.LittleEndian.Uint32(p[n:]) & wire.MaxFrame)
		if !a.continued {
			look := min(length, frontLength)
			if len(p)-n < wire.HeaderLen+look {
				return n, nil
			}
			if a.ended, err = b.followPacket(a, p[n+wire.HeaderLen:][:look], length); err != nil {
				return n, err
			}
		}
		b.lastSeq = p[n+3]
		p[n+3] = b.client.seq
		b.client.seq++
		a.continued = length == wire.MaxFrame
		a.remaining = length
		n += wire.HeaderLen
	}
}

const (
	spliced = 256 << 10 // minimum length of the rest of a frame that the kernel copies
	atOnce  = 1 << 20   // number of bytes that the kernel copies at a time; the client has to receive them within writeTimeout
)

// splice makes the kernel pass on the next part of a frame. The buffer must have no bytes of this part.
func (b *backend) splice(a *answer) error {
	client, ok := b.client.copyConn().(*net.TCPConn)
	if !ok {
		_, err := b.readAtLeast(1)
		return wrapServerGone(err)
	}
	b.client.extendWriteDeadline()
	n, err := io.CopyN(client, b.copyConn(), int64(min(a.remaining, atOnce)))
	a.remaining -= int(n)
	return err
}
