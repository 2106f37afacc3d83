package main

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"os"
	"os/exec"
	"sync"
	"syscall"
	"time"
)

// A process is one run of a service.
type process struct {
	settings
	addr   string // host:port
	cmd    *exec.Cmd
	stdin  io.Closer
	output bytes.Buffer // output on its standard error
}

// launch starts a service and returns when it is registered in Nacos.
func launch(ctx context.Context, s settings) (*process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(s)
	if err != nil {
		return nil, err
	}
	p := &process{settings: s, cmd: exec.Command(self)}
	p.cmd.Env = append(os.Environ(), serviceEnv+"="+string(text))
	p.cmd.Stderr = &p.output
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // Ctrl-C is for the demo, which ends the service
	if p.stdin, err = p.cmd.StdinPipe(); err != nil {
		return nil, err
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	defer context.AfterFunc(ctx, func() { p.cmd.Process.Kill() })()
	line := bufio.NewScanner(out)
	if !line.Scan() {
		err := p.cmd.Wait()
		return nil, fmt.Errorf("service %s did not start: %w\n%s", s.Name, cmp.Or(ctx.Err(), err, io.EOF), p.output.Bytes())
	}
	p.addr = line.Text()
	return p, nil
}

// kill9 ends the process as a crash would.
func (p *process) kill9() {
	p.cmd.Process.Kill()
	p.cmd.Wait()
}

// stepTimeout is the timeout of steps that take a few seconds, unless the machine is
// busy.
const stepTimeout = 2 * time.Minute

// end shuts the process down.
func (p *process) end() error {
	p.cmd.Process.Signal(syscall.SIGTERM)
	timer := time.AfterFunc(stepTimeout, func() { p.cmd.Process.Kill() })
	defer timer.Stop()
	if err := p.cmd.Wait(); err != nil {
		return fmt.Errorf("service %s: %w\n%s", p.Name, err, p.output.Bytes())
	}
	return nil
}

// customers find the services in Nacos and order continuously.
type customers struct {
	nacos  console
	cancel context.CancelFunc
	all    sync.WaitGroup

	mu     sync.Mutex
	known  []instance
	last   map[string]int64 // last id of each service
	bought int
	failed int   // number of failed calls, which were repeated
	why    error // error of the last failed call
}

// customerPause is the pause of a customer between two orders. Tests make it longer.
var customerPause = 10 * time.Millisecond

// openShop starts the customers, and returns when they have found a service.
func openShop(ctx context.Context, nacos console) *customers {
	ctx, cancel := context.WithCancel(ctx)
	c := &customers{nacos: nacos, cancel: cancel, last: make(map[string]int64)}
	c.all.Go(func() {
		for {
			// While Nacos is down, the previous list is used.
			if list, err := nacos.instances(ctx, serviceName); err == nil && len(list) > 0 {
				c.mu.Lock()
				c.known = list
				c.mu.Unlock()
			}
			if !sleep(ctx, 200*time.Millisecond) {
				return
			}
		}
	})
	for n := range 4 {
		c.all.Go(func() {
			for sleep(ctx, customerPause) {
				c.buy(ctx, n)
			}
		})
	}
	return c
}

// buy places an order at a random service, and tries again if the call fails.
func (c *customers) buy(ctx context.Context, customer int) {
	for again := false; ctx.Err() == nil; again = true {
		c.mu.Lock()
		known := c.known
		c.mu.Unlock()
		if again || len(known) == 0 {
			sleep(ctx, 50*time.Millisecond)
		}
		if len(known) == 0 {
			continue
		}
		o, err := post(ctx, known[rand.IntN(len(known))].addr(), customer)
		c.mu.Lock()
		if err != nil && ctx.Err() == nil {
			c.failed++
			c.why = err
		}
		if err == nil {
			c.bought++
			c.last[o.Service] = o.ID
		}
		c.mu.Unlock()
		if err == nil {
			return
		}
	}
}

func post(ctx context.Context, addr string, customer int) (o order, err error) {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, fmt.Sprintf("http://%s/orders?customer=%d", addr, customer), nil)
	if err != nil {
		return o, err
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		return o, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err == nil && resp.StatusCode != http.StatusOK {
		err = errors.New(string(bytes.TrimSpace(body)))
	}
	if err != nil {
		return o, err
	}
	return o, json.Unmarshal(body, &o)
}

// sales returns the number of orders and of failed calls so far, and the last
// error.
func (c *customers) sales() (bought, failed int, why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.bought, c.failed, c.why
}

// forget resets the last id of a service before it is restarted.
func (c *customers) forget(service string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.last, service)
}

// lastID returns the last id from a service, or 0 if there is none.
func (c *customers) lastID(service string) int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.last[service]
}

// awaitFirstOrder waits for a service's first order.
func (c *customers) awaitFirstOrder(ctx context.Context, service string) (int64, error) {
	for until := time.Now().Add(stepTimeout); ; {
		if id := c.lastID(service); id != 0 {
			return id, nil
		}
		if time.Now().After(until) {
			_, _, why := c.sales()
			return 0, fmt.Errorf("%s took no order within %v; the last that failed: %w", service, stepTimeout, why)
		}
		if !sleep(ctx, 20*time.Millisecond) {
			return 0, ctx.Err()
		}
	}
}

// close stops the customers.
func (c *customers) close() {
	c.cancel()
	c.all.Wait()
	http.DefaultClient.CloseIdleConnections()
}

// sleep waits for d and returns true, or false if ctx ends earlier.
func sleep(ctx context.Context, d time.Duration) bool {
	select {
	case <-time.After(d):
		return true
	case <-ctx.Done():
		return false
	}
}
