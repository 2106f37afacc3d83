package proxy

import (
	"context"
	"errors"
	"math"
	"net"
	"testing"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// A repeatConn returns the same bytes for every read, and accepts all writes.
type repeatConn struct {
	net.Conn
	data []byte
}

func (c repeatConn) Read(b []byte) (int, error)       { return copy(b, c.data), nil }
func (c repeatConn) Write(b []byte) (int, error)      { return len(b), nil }
func (c repeatConn) SetReadDeadline(time.Time) error  { return nil }
func (c repeatConn) SetWriteDeadline(time.Time) error { return nil }

// TestCommandsAllocateWithinBounds bounds the allocations of a command that is passed on, and of one that package driver runs.
func TestCommandsAllocateWithinBounds(t *testing.T) {
	s := &session{proxy: new(Server)}
	s.ctx = context.Background()
	ping := repeatConn{data: encodeFrames("\x0e")}
	s.client.frameConn = frameConn{conn: ping, raw: ping, small: make([]byte, smallBufferSize), memory: &budget{limit: math.MaxInt64}}
	s.server.client, s.server.maxPacket = &s.client, 1<<20
	for _, tt := range []struct {
		name    string
		most    int
		answers []string
		run     func() error
	}{
		{"passed on", 0, []string{anOK}, func() error {
			if _, err := s.client.awaitCommand(s.isOver); err != nil {
				return err
			}
			_, err := s.serveCommand()
			return err
		}},
		{"filled", 1, []string{anOK}, func() error {
			r, err := s.server.ExecContext(t.Context(), "INSERT INTO t VALUES (1)", nil)
			if got := r.(*reply).ok.Status; got != wire.Autocommit {
				t.Errorf("status = %#x, want %#x", got, wire.Autocommit)
			}
			return err
		}},
		{"rows", 3, []string{"\x02", column, column, anEOF, aRow, aRow, anEOF}, func() error {
			r, err := s.server.QueryContext(t.Context(), "SELECT 1", nil)
			return errors.Join(err, r.Close())
		}},
		{"prepared", 5, []string{preparedY, column, anEOF, column, anEOF}, func() error {
			_, err := s.server.PrepareContext(t.Context(), "INSERT INTO t VALUES (?)")
			return err
		}},
	} {
		server := repeatConn{data: numberFrames(1, 1, tt.answers...)}
		s.server.frameConn = frameConn{conn: server, raw: server, memory: &budget{limit: math.MaxInt64}}
		var err error
		if n := testing.AllocsPerRun(100, func() { err = errors.Join(err, tt.run()) }); err != nil || n > float64(tt.most) {
			t.Errorf("%s: %v allocations with error %v, want at most %d and no error", tt.name, n, err, tt.most)
		}
	}
}
