//go:build storm

package chaos

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// A crew is the writers, each started again whenever it was killed until it
// has inserted all of its rows.
type crew struct {
	trade
	members []*member
	rows    int // of each
	wg      sync.WaitGroup
}

// A trade is what the writers of a crew do.
type trade struct {
	life func(m *member, left int) *exec.Cmd // one life of a writer with so many rows to go

	// heard is told each line that a writer prints, by one goroutine a writer. It returns how many rows are acknowledged by
	// that, or why a statement got no ids or failed otherwise.
	heard func(m *member, line string) (rows int, err error)
}

// A member is one writer through all its lives.
type member struct {
	number       int
	acknowledged atomic.Int64
	refused      atomic.Int64 // statements that got no ids, or failed otherwise
	caught       atomic.Bool  // something is being done to it

	mu      sync.Mutex
	running *os.Process // nil between two lives
	lives   int
	why     string // the last refusal
}

// hire starts the writers.
func hire(ctx context.Context, t *testing.T, writers, rows int, does trade) *crew {
	c := &crew{trade: does, rows: rows}
	for i := range writers {
		m := &member{number: i}
		c.members = append(c.members, m)
		c.wg.Go(func() {
			runtime.LockOSThread() // Pdeathsig is sent when the thread that forked ends
			for ctx.Err() == nil && m.acknowledged.Load() < int64(rows) {
				life := m.lives
				if err := c.live(ctx, m); err != nil && ctx.Err() == nil {
					t.Errorf("writer %d, life %d: %v", i, life, err)
					return
				}
			}
		})
	}
	return c
}

// live is one life, from the start to its end or a kill, which is no error.
func (c *crew) live(ctx context.Context, m *member) error {
	cmd := c.life(m, c.rows-int(m.acknowledged.Load()))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	var complaint lastBytes
	cmd.Stderr = &complaint
	out, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	stop := context.AfterFunc(ctx, func() { cmd.Process.Kill() })
	defer stop()
	m.mu.Lock()
	m.running = cmd.Process
	m.lives++
	m.mu.Unlock()
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			break // a line that a kill has cut short acknowledges nothing
		}
		n, err := c.heard(m, strings.TrimSuffix(line, "\n"))
		m.acknowledged.Add(int64(n))
		if err != nil {
			m.refused.Add(1)
			m.mu.Lock()
			m.why = err.Error()
			m.mu.Unlock()
		}
	}
	m.mu.Lock()
	m.running = nil
	m.mu.Unlock()
	err = cmd.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); ok {
		if exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL {
			return nil
		}
		return fmt.Errorf("%w: %s", err, complaint)
	}
	return err
}

// signal reaches a writer unless it is between two lives.
func (m *member) signal(s syscall.Signal) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running != nil && m.running.Signal(s) == nil
}

func (m *member) lastRefusal() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.why
}

// acknowledged and refused are sums over all writers.
func (c *crew) acknowledged() (n int64) {
	for _, m := range c.members {
		n += m.acknowledged.Load()
	}
	return n
}

func (c *crew) refused() (n int64) {
	for _, m := range c.members {
		n += m.refused.Load()
	}
	return n
}

// goProgram is this program again, with an order for what it is to do.
func goProgram(env string, order any) *exec.Cmd {
	text, err := json.Marshal(order)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env+"="+string(text))
	return cmd
}

// lastBytes keeps the end of what is written to it.
type lastBytes []byte

func (b *lastBytes) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	*b = (*b)[max(0, len(*b)-2000):]
	return len(p), nil
}
