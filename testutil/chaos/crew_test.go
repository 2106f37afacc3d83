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
	"strconv"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
)

// A crew is the writers, each started again whenever it was killed until it
// has inserted all of its rows.
type crew struct {
	members []*member
	wg      sync.WaitGroup
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

// hire starts the writers. dsn gives each its DSN.
func hire(ctx context.Context, t *testing.T, s size, dsn func(member int) string) *crew {
	c := new(crew)
	for i := range s.processes {
		m := &member{number: i}
		c.members = append(c.members, m)
		c.wg.Go(func() {
			runtime.LockOSThread() // Pdeathsig is sent when the thread that forked ends
			for ctx.Err() == nil && m.acknowledged.Load() < int64(s.rows) {
				o := order{
					DSN: dsn(i), Process: i, Life: m.lives, Batch: s.batch, Pause: s.pause(),
					Rows: s.rows - int(m.acknowledged.Load()),
				}
				if err := m.live(ctx, o); err != nil {
					t.Errorf("writer %d, life %d: %v", i, o.Life, err)
					return
				}
			}
		})
	}
	return c
}

// live is one life, from the start to its end or a kill, which is no error.
func (m *member) live(ctx context.Context, o order) error {
	text, err := json.Marshal(o)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(ctx, os.Args[0])
	cmd.Env = append(os.Environ(), writerEnv+"="+string(text))
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
	m.mu.Lock()
	m.running = cmd.Process
	m.lives++
	m.mu.Unlock()
	for lines := bufio.NewScanner(out); lines.Scan(); {
		line := lines.Text()
		if n, err := strconv.Atoi(line); err == nil {
			m.acknowledged.Add(int64(n))
			continue
		}
		m.refused.Add(1)
		m.mu.Lock()
		m.why = line
		m.mu.Unlock()
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

// lastBytes keeps the end of what is written to it.
type lastBytes []byte

func (b *lastBytes) Write(p []byte) (int, error) {
	*b = append(*b, p...)
	*b = (*b)[max(0, len(*b)-2000):]
	return len(p), nil
}
