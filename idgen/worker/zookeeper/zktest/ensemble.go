//go:build unix

package zktest

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/process"
)

// An Ensemble has three servers, and serves as long as two of them run. A wiped server gets the data of the others.
type Ensemble struct {
	Nodes [3]*Server
}

// StartEnsemble starts an ensemble for one test.
func StartEnsemble(tb testing.TB, cfg Config) *Ensemble {
	tb.Helper()
	port, err := freeport.Find(0, 1, 2, 3, 4, 5, 6, 7, 8)
	if err != nil {
		tb.Fatal(err)
	}
	lines := []string{"initLimit=20", "syncLimit=10"} // ticks of half a second, for a busy machine
	for id := 1; id <= 3; id++ {
		lines = append(lines, fmt.Sprintf("server.%d=127.0.0.1:%d:%d", id, port+1+id+id, port+2+id+id))
	}
	e := &Ensemble{}
	for i := range e.Nodes {
		if e.Nodes[i], err = newServer(port+i, i+1, append(lines, cfg.Lines...)); err != nil {
			tb.Fatal(err)
		}
		e.Nodes[i].Finish(tb)
	}
	if err := e.Start(); err != nil {
		tb.Fatal(err)
	}
	return e
}

// Start starts every node that does not run, and waits until all serve.
func (e *Ensemble) Start() error { return process.StartAll(e.Nodes[:]...) }

// Addrs returns the addresses of all nodes.
func (e *Ensemble) Addrs() []string {
	var addrs []string
	for _, n := range e.Nodes {
		addrs = append(addrs, n.Addr)
	}
	return addrs
}

// Leader waits until a running node leads, and returns it.
func (e *Ensemble) Leader() (leader *Server, err error) {
	err = process.Until(func(ctx context.Context) error {
		for _, n := range e.Nodes {
			if !n.Running() {
				continue
			}
			if mode, err := n.mode(ctx); err == nil && mode == "leader" {
				leader = n
				return nil
			}
		}
		return errors.New("zktest: nobody that runs leads")
	})
	return leader, err
}
