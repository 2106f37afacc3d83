package fakenacos

import (
	"net"
	"sync"
)

// gate is a listener that can be shut. It keeps its port while it is shut,
// since another program could listen on a port that was released.
type gate struct {
	net.Listener

	mu    sync.Mutex
	shut  bool
	conns map[net.Conn]struct{}
}

// Accept closes new connections while the gate is shut.
func (g *gate) Accept() (net.Conn, error) {
	for {
		c, err := g.Listener.Accept()
		if err != nil {
			return nil, err
		}
		g.mu.Lock()
		shut := g.shut
		if !shut {
			g.conns[c] = struct{}{}
		}
		g.mu.Unlock()
		if !shut {
			return passed{c, g}, nil
		}
		c.Close()
	}
}

// set shuts or opens the gate. Shutting it ends all connections.
func (g *gate) set(shut bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.shut = shut
	if shut {
		for c := range g.conns {
			c.Close()
		}
		clear(g.conns)
	}
}

// passed is a connection that the gate has accepted.
type passed struct {
	net.Conn
	gate *gate
}

func (p passed) Close() error {
	p.gate.mu.Lock()
	delete(p.gate.conns, p.Conn)
	p.gate.mu.Unlock()
	return p.Conn.Close()
}
