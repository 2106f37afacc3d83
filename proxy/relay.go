package proxy

import (
	"encoding/binary"
	"io"
	"net"

	"github.com/leafsql/leafsql/internal/wire"
)

// relay passes on the server's answer to a command. ok is false if the command failed.
func (b *backend) relay(a *answer) (ok bool, err error) {
	for {
		p := b.buffered()
		n, err := b.scan(a, p)
		if err == nil && n > 0 {
			err = b.client.write(p[:n])
			b.take(n)
		}
		switch whole := a.left == 0 && !a.continued; { // the payload is complete
		case err != nil:
		case a.ended && whole:
			b.release()
			return a.failure == nil, nil
		case a.file && whole:
			a.file = false
			err = b.passFile()
		case a.left >= spliced && n == len(p):
			err = b.splice(a)
		default:
			_, err = b.need(len(p) - n + 1)
			err = serverGone(err)
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
		err = serverGone(s.server.write(s.client.frame))
	} else {
		err = s.server.start(s.client.payload)
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
		skip := min(a.left, len(p)-n)
		n += skip
		a.left -= skip
		if a.left > 0 || (a.ended || a.file) && !a.continued || len(p)-n < wire.HeaderLen {
			return n, nil
		}
		length := int(binary.LittleEndian.Uint32(p[n:]) & wire.MaxFrame)
		if !a.continued {
			look := min(length, front)
			if len(p)-n < wire.HeaderLen+look {
				return n, nil
			}
			if a.ended, err = b.reads(a, p[n+wire.HeaderLen:][:look], length); err != nil {
				return n, err
			}
		}
		b.lastSeq = p[n+3]
		p[n+3] = b.client.seq
		b.client.seq++
		a.continued = length == wire.MaxFrame
		a.left = length
		n += wire.HeaderLen
	}
}

const (
	spliced = 256 << 10 // length of the rest of a frame from which on the kernel copies it
	atOnce  = 1 << 20   // number of bytes of it that the client has to receive within writeTime
)

// splice passes on more of a frame that has no bytes in the buffer.
func (b *backend) splice(a *answer) error {
	client, ok := b.client.copyable().(*net.TCPConn)
	if !ok {
		_, err := b.need(1)
		return serverGone(err)
	}
	b.client.extend()
	n, err := io.CopyN(client, b.copyable(), int64(min(a.left, atOnce)))
	a.left -= int(n)
	return err
}
