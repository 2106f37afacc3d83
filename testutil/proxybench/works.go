//go:build linux

package main

import (
	"context"
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"time"
)

// A workload is an operation that clients repeat, each on a separate connection.
type workload struct {
	name       string
	clients    int
	parameters string // parameters of the DSN
	prepared   string // "": a new text each time
	one        func(ctx context.Context, c *client) error
}

type client struct {
	conn     *sql.Conn
	prepared *sql.Stmt
	random   *rand.Rand
	blob     sql.RawBytes
}

const insertPrepared = "INSERT INTO written (a) VALUES (?)"

var works = []workload{
	{"point SELECT, text, 1 client", 1, "", "", selectText},
	{"point SELECT, text, 16 clients", 16, "", "", selectText},
	{"point SELECT, prepared, 1 client", 1, "", "SELECT v FROM points WHERE id = ?", selectPrepared},
	{"point SELECT, prepared, 16 clients", 16, "", "SELECT v FROM points WHERE id = ?", selectPrepared},
	{"INSERT, text, 1 client", 1, "", "", insertText},
	{"INSERT, text, 16 clients", 16, "", "", insertText},
	{"INSERT, prepared, 1 client", 1, "", insertPrepared, insertRow},
	{"INSERT, prepared, 16 clients", 16, "", insertPrepared, insertRow},
	{"100,000 rows of 64 bytes", 1, "", "", selectMany},
	{"BLOB of 32 MiB", 1, "", "", selectBlob},
}

func selectText(ctx context.Context, c *client) error {
	return c.rows(c.conn.QueryContext(ctx, fmt.Sprintf("SELECT v FROM points WHERE id = %d", c.random.IntN(10_000)+1)))
}

func selectPrepared(ctx context.Context, c *client) error {
	return c.rows(c.prepared.QueryContext(ctx, c.random.IntN(10_000)+1))
}

// insertText sends a different text each time, with a backslash, as PHP and Python do.
func insertText(ctx context.Context, c *client) error {
	_, err := c.conn.ExecContext(ctx, fmt.Sprintf(`INSERT INTO written (a) VALUES ('it\'s %d')`, c.random.Int64()))
	return err
}

func insertRow(ctx context.Context, c *client) error {
	_, err := c.prepared.ExecContext(ctx, fmt.Sprintf("it's %d", c.random.Int64()))
	return err
}

func selectMany(ctx context.Context, c *client) error {
	return c.rows(c.conn.QueryContext(ctx, "SELECT v FROM many"))
}

func selectBlob(ctx context.Context, c *client) error {
	return c.rows(c.conn.QueryContext(ctx, "SELECT v FROM big"))
}

func (c *client) rows(rows *sql.Rows, err error) error {
	if err != nil {
		return err
	}
	defer rows.Close()
	n := 0
	for rows.Next() {
		if err := rows.Scan(&c.blob); err != nil {
			return err
		}
		n++
	}
	if n == 0 {
		return fmt.Errorf("no row")
	}
	return rows.Err()
}

// A result contains the measurements of a workload in all rounds, for each way.
type result struct {
	workload
	ways [ways]measurement
}

type measurement struct {
	took            []time.Duration // time of each operation
	rates           []float64       // operations a second in each round
	server, between time.Duration   // processor time
	questions       int64           // statements that the server counted
}

func (w workload) measure(ctx context.Context, s *setup, opts options) (r result, err error) {
	r.workload = w
	var clients [ways][]*client
	for way := range ways {
		db, err := sql.Open("mysql", s.dsn(way, w.parameters))
		if err != nil {
			return r, err
		}
		defer db.Close()
		for i := range w.clients {
			c := &client{random: rand.New(rand.NewPCG(uint64(way), uint64(i)))}
			if c.conn, err = db.Conn(ctx); err != nil {
				return r, err
			}
			defer c.conn.Close()
			if w.prepared != "" {
				if c.prepared, err = c.conn.PrepareContext(ctx, w.prepared); err != nil {
					return r, err
				}
			}
			for range 3 { // warms up plans, segments and caches
				if err := w.one(ctx, c); err != nil {
					return r, err
				}
			}
			clients[way] = append(clients[way], c)
		}
	}
	for round := range opts.rounds {
		for i := range ways {
			way := (round + i) % ways // the order of the ways changes
			if err := r.ways[way].round(ctx, s, way, w, clients[way], opts.time); err != nil {
				return r, fmt.Errorf("%s: %w", wayNames[way], err)
			}
		}
	}
	return r, nil
}

// round runs the clients for the time long, and adds the measurements.
func (m *measurement) round(ctx context.Context, s *setup, way int, w workload, clients []*client, long time.Duration) error {
	before, err := s.usage(ctx, way)
	if err != nil {
		return err
	}
	var wg sync.WaitGroup
	took := make([][]time.Duration, len(clients))
	errs := make([]error, len(clients))
	start := time.Now()
	for i, c := range clients {
		wg.Go(func() {
			for began := time.Now(); began.Sub(start) < long; {
				if errs[i] = w.one(ctx, c); errs[i] != nil {
					return
				}
				now := time.Now()
				took[i] = append(took[i], now.Sub(began))
				began = now
			}
		})
	}
	wg.Wait()
	elapsed := time.Since(start)
	after, err := s.usage(ctx, way)
	if err != nil {
		return err
	}
	operations := 0
	for i := range clients {
		if errs[i] != nil {
			return errs[i]
		}
		operations += len(took[i])
		m.took = append(m.took, took[i]...)
	}
	m.rates = append(m.rates, float64(operations)/elapsed.Seconds())
	m.server += after.server - before.server
	m.between += after.between - before.between
	m.questions += after.questions - before.questions - 1 // without the query of usage itself
	return nil
}

type usage struct {
	server, between time.Duration
	questions       int64
}

func (s *setup) usage(ctx context.Context, way int) (u usage, err error) {
	db, err := sql.Open("mysql", s.server.DSN(""))
	if err != nil {
		return u, err
	}
	defer db.Close()
	var name string
	if err := db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'Questions'").Scan(&name, &u.questions); err != nil {
		return u, err
	}
	if u.server, err = cpuTime(s.pids[direct]); err != nil || way == direct {
		return u, err
	}
	u.between, err = cpuTime(s.pids[way])
	return u, err
}

func (m measurement) perOperation(d time.Duration) float64 {
	return float64(d.Microseconds()) / float64(len(m.took))
}

// rate returns the median rate of the rounds, in operations a second.
func (m measurement) rate() float64 {
	sorted := slices.Sorted(slices.Values(m.rates))
	return sorted[len(sorted)/2]
}

func (m measurement) percentile(p int) time.Duration {
	sorted := slices.Sorted(slices.Values(m.took))
	return sorted[(len(sorted)-1)*p/100]
}
