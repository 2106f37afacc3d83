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

// A crew is a set of writers. A writer that is killed is started again until it
// has inserted all of its rows.
type crew struct {
	writerFuncs
	members []*member
	rows    int // rows of each writer
	wg      sync.WaitGroup
}

// A writerFuncs has the functions that start writers and read their output.
type writerFuncs struct {
	startLife func(m *member, left int) *exec.Cmd // returns the command for one life of a writer that still has to insert left rows

	// readLine is called with each line that a writer prints, by one goroutine per writer. It returns the number
	// of rows that the line acknowledges, or the error of a statement that got no ids or failed otherwise.
	readLine func(m *member, line string) (rows int, err error)
}

// A member is one writer through all its lives.
type member struct {
	number       int
	acknowledged atomic.Int64
	refused      atomic.Int64 // statements that got no ids, or failed otherwise
	isDisturbed  atomic.Bool  // the writer is being killed or stopped

	mu        sync.Mutex
	running   *os.Process // nil between two lives
	lives     int
	lastError string // the last refusal
}

// startCrew starts a crew of writers with a number of rows each.
func startCrew(ctx context.Context, t *testing.T, writers, rows int, does writerFuncs) *crew {
	c := &crew{writerFuncs: does, rows: rows}
	for i := range writers {
		m := &member{number: i}
		c.members = append(c.members, m)
		c.wg.Go(func() {
			runtime.LockOSThread() // Pdeathsig is sent when the thread that forked ends
			for ctx.Err() == nil && m.acknowledged.Load() < int64(rows) {
				life := m.lives
				if err := c.runLife(ctx, m); err != nil && ctx.Err() == nil {
					t.Errorf("writer %d, life %d: %v", i, life, err)
					return
				}
			}
		})
	}
	return c
}

// runLife runs one life of a writer, from its start to its end or a kill, which is not an error.
func (c *crew) runLife(ctx context.Context, m *member) error {
	cmd := c.startLife(m, c.rows-int(m.acknowledged.Load()))
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
			break // a line that was cut off by a kill acknowledges no rows
		}
		n, err := c.readLine(m, strings.TrimSuffix(line, "\n"))
		m.acknowledged.Add(int64(n))
		if err != nil {
			m.refused.Add(1)
			m.mu.Lock()
			m.lastError = err.Error()
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

// signal sends a writer a signal, and reports whether it was sent: a writer between two lives has no process.
func (m *member) signal(s syscall.Signal) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.running != nil && m.running.Signal(s) == nil
}

// lastRefusal returns the text of the last error.
func (m *member) lastRefusal() string {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.lastError
}

// acknowledged returns the number of acknowledged rows of all writers.
func (c *crew) acknowledged() (n int64) {
	for _, m := range c.members {
		n += m.acknowledged.Load()
	}
	return n
}

// refused returns the number of failed statements of all writers.
func (c *crew) refused() (n int64) {
	for _, m := range c.members {
		n += m.refused.Load()
	}
	return n
}

// goProgram returns a command that runs this test binary as a writer, with its order in an environment variable.
func goProgram(env string, order any) *exec.Cmd {
	text, err := json.Marshal(order)
	if err != nil {
		panic(err)
	}
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), env+"="+string(text))
	return cmd
}

// lastBytes keeps the last 2,000 bytes that are written to it.
type lastBytes []byte

func (b *lastBytes) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	*b = (*b)[max(0, len(*b)-2000):]
	return len(p), nil
}
