package proxy

import (
	"errors"
	"net/netip"
	"os"
	"sync"
	"time"

	"github.com/leafsql/leafsql/internal/wire"
)

// A client is the client's side of a session.
type client struct {
	frameConn
	address    netip.AddrPort // the client's address; invalid if it is unknown, or the connection is the balancer's own
	isBalancer bool           // the connection is a balancer's own, such as a health check

	mu      sync.Mutex
	waiting bool // awaitCommand waits for the next command
	woken   bool // wake was called during awaitCommand
}

// awaitCommand waits for the next command, unless isOver returns true. It reports whether wake interrupted the
// wait.
func (c *client) awaitCommand(isOver func() bool) (woken bool, err error) {
	c.mu.Lock()
	c.waiting = true
	over := isOver()
	c.mu.Unlock()
	if !over {
		err = c.awaitByte()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = false
	if c.woken {
		c.woken = false
		c.raw.SetReadDeadline(time.Time{})
		woken = errors.Is(err, os.ErrDeadlineExceeded)
	}
	return woken, err
}

// wake interrupts awaitCommand.
func (c *client) wake() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting {
		c.woken = true
		c.raw.SetReadDeadline(pastDeadline)
	}
}

// pastDeadline is the read deadline that ends a read immediately.
var pastDeadline = time.Unix(1, 0)

// sendError sends the client an error.
func (c *client) sendError(number uint16, state, message string) error {
	e := wire.Err{Number: number, Message: message}
	copy(e.State[:], state)
	return c.send(e.Append(nil))
}

// sendMalformed sends the error for a malformed command.
func (c *client) sendMalformed() error {
	return c.sendError(1835, "HY000", "Malformed communication packet.")
}
