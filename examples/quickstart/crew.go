package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"sync"
	"time"
)

// A crew is a group of workers.
type crew struct{ members []*member }

// A member is a worker process from the demo's point of view.
type member struct {
	cmd     *exec.Cmd
	stdin   io.Closer
	tasks   *json.Encoder
	notes   *bufio.Scanner
	fetches int64
}

// startWorkers starts workers: processes of this program with workerEnv set. They end when ctx is done, when
// stop is called, or when this process ends, which closes their standard input.
func startWorkers(ctx context.Context, workers int) (*crew, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	c := &crew{}
	for range workers {
		cmd := exec.CommandContext(ctx, self)
		cmd.Env = append(os.Environ(), workerEnv+"=1")
		cmd.Stderr = os.Stderr
		stdin, err := cmd.StdinPipe()
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			return nil, errors.Join(err, c.stop())
		}
		if err := cmd.Start(); err != nil {
			return nil, errors.Join(err, c.stop())
		}
		c.members = append(c.members, &member{cmd: cmd, stdin: stdin, tasks: json.NewEncoder(stdin), notes: bufio.NewScanner(stdout)})
	}
	return c, nil
}

// stop ends the workers.
func (c *crew) stop() error {
	var errs []error
	for _, m := range c.members {
		m.stdin.Close()
	}
	for _, m := range c.members {
		errs = append(errs, m.cmd.Wait())
	}
	return errors.Join(errs...)
}

// insert distributes orders among the workers and returns when all are inserted. It calls
// progress with the number of inserted orders as it grows.
func (c *crew) insert(driverName string, shards [2]string, orders int, progress func(inserted int)) (time.Duration, error) {
	start := time.Now()
	news := make(chan note)
	failed := make(chan error, len(c.members))
	var wg sync.WaitGroup
	for i, m := range c.members {
		share := orders / len(c.members)
		if i < orders%len(c.members) {
			share++
		}
		wg.Go(func() { failed <- m.insert(task{driverName, shards, share}, news) })
	}
	go func() { wg.Wait(); close(news) }()
	for n := range news {
		progress(n.Orders)
	}
	took := time.Since(start)
	for range c.members {
		if err := <-failed; err != nil {
			return took, err
		}
	}
	return took, nil
}

func (m *member) insert(t task, news chan<- note) error {
	if err := m.tasks.Encode(t); err != nil {
		return fmt.Errorf("a worker process is gone: %w", err)
	}
	for m.notes.Scan() {
		var n note
		if err := json.Unmarshal(m.notes.Bytes(), &n); err != nil {
			return fmt.Errorf("a worker process wrote %q", m.notes.Text())
		}
		if n.Error != "" {
			return fmt.Errorf("a worker process with driver %s: %s", t.Driver, n.Error)
		}
		news <- n
		if n.Done {
			m.fetches = max(m.fetches, n.Fetches)
			return nil
		}
	}
	return errors.New("a worker process ended early")
}

func (c *crew) fetches() (n int64) {
	for _, m := range c.members {
		n += m.fetches
	}
	return n
}
