package proxy

import (
	"io"
	"testing"
)

// TestHangUpIsOrderly: a client with an unread last command gets an orderly end of the connection, and not a reset.
func TestHangUpIsOrderly(t *testing.T) {
	client, conn := connectSockets(t, "tcp")
	if _, err := client.Write([]byte("two")); err != nil {
		t.Fatal(err)
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		t.Fatal(err)
	}
	(&frameConn{conn: conn, raw: conn}).hangUp()
	if n, err := client.Read(make([]byte, 1)); err != io.EOF {
		t.Errorf("Read() = %d, %v, want 0, EOF", n, err)
	}
}
