package segment

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"math"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// process is one client.
type process struct {
	w            *world
	index        int
	db           *sqlx.DB
	alloc        *AllocStore
	gen          *Generator
	prepareStage int           // stage of prepareRow
	flights      []*flight     // in progress
	prepareLock  chan struct{} // held by the operation that prepares the row
	rowReady     bool          // the row is prepared
	ops          []*insertOp   // in progress
	issued       map[int64]bool
	skipped      int64
	dead         bool
	server       int             // index of the server that it is connected to
	ctx          context.Context // ends with the process
	kill         context.CancelFunc
}

// flight is a request to the store.
type flight struct {
	q    Request
	sent int // number of statements sent for it
}

type flightKey struct{} // context key of a *flight

// insertOp is an INSERT.
type insertOp struct {
	key           int64          // key in the row; 0 if it gets one
	skippedBefore int64          // highest key that was skipped before the INSERT began
	opensTable    bool           // a pool opens the table
	foreign       map[int64]bool // with opens: world.foreign at that time
	step          string
}

// statement is on its way to the server, or the answer on its way back.

func (w *world) start(n int) *process {
	p := &process{w: w, index: n, server: w.primary, prepareLock: make(chan struct{}, 1), issued: map[int64]bool{}}
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.db = sqlx.NewDb(sql.OpenDB(p), "mysql")
	p.alloc = NewAllocStore(p.db, "leaf_alloc")
	p.alloc.Logger = slog.New(slog.DiscardHandler)
	p.alloc.random = w.random
	p.gen = New(p, "a", &Options{Timeout: time.Hour, Logger: p.alloc.Logger})
	p.rowReady = !w.create
	return p
}

// Fetch implements Store.
func (p *process) Fetch(ctx context.Context, q Request) (Range, error) {
	f := &flight{q: q}
	p.w.mu.Lock()
	p.flights = append(p.flights, f)
	p.w.mu.Unlock()
	defer func() {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.flights = slices.DeleteFunc(p.flights, func(x *flight) bool { return x == f })
	}()
	return p.alloc.Fetch(context.WithValue(ctx, flightKey{}, f), q)
}

func (p *process) end() {
	p.w.mu.Lock()
	p.dead = true
	p.w.mu.Unlock()
	p.kill()
	p.gen.Close()
	p.db.Close()
}

// insert does what a driver does for one row.
func (p *process) insert(o *insertOp) {
	err := p.runInsert(o)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.ops = slices.DeleteFunc(p.ops, func(x *insertOp) bool { return x == o })
	_ = err // expected: the row does not exist
}

func (p *process) runInsert(o *insertOp) error {
	ctx := p.ctx
	o.step = "turn"
	select {
	case p.prepareLock <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	o.step = "row"
	err := p.prepareRow(ctx)
	<-p.prepareLock
	if err != nil {
		return err
	}
	if o.opensTable {
		o.step = "opens"
		if err := p.open(ctx); err != nil {
			return err
		}
	}
	k := o.key
	if k > 0 {
		o.step = "skip"
		if err := p.gen.Skip(ctx, k); err != nil {
			return err
		}
		p.w.recordSkip(p, k)
	} else {
		o.step = "next"
		if k, err = p.gen.Next(ctx, 1); err != nil {
			return err
		}
		p.w.recordIssue(p, o, k)
	}
	o.step = fmt.Sprint("insert ", k)
	_, err = p.db.ExecContext(ctx, fmt.Sprint("INSERT INTO t VALUES ", k))
	return err
}

// prepareRow creates the row and moves it above the keys in use.
func (p *process) prepareRow(ctx context.Context) error {
	if p.rowReady {
		return nil
	}
	p.prepareStage = 1
	var highest int64
	if err := p.db.GetContext(ctx, &highest, "SELECT MAX(id) FROM t"); err != nil {
		return err
	}
	p.prepareStage = 2
	if err := p.alloc.Ensure(ctx, "a", highest+1, modelStep); err != nil {
		return err
	}
	p.prepareStage = 3
	if err := p.db.GetContext(ctx, &highest, "SELECT MAX(id) FROM t"); err != nil {
		return err
	}
	p.prepareStage = 4
	switch r, err := p.gen.Look(ctx); {
	case err != nil:
		return err
	case r.Start <= highest && r.Start > 1: // other processes may hold ranges above the keys
		highest += p.alloc.margin(math.MaxInt64 - highest)
	}
	if err := p.gen.Skip(ctx, highest); err != nil {
		return err
	}
	p.rowReady = true
	return nil
}

// open does what a driver does when it opens a table with a generator that is already in use.
func (p *process) open(ctx context.Context) error {
	highest := p.w.highest(math.MaxInt64)
	r, err := p.gen.Look(ctx)
	if err != nil {
		return err
	}
	if r.Start <= highest {
		return p.gen.Skip(ctx, highest)
	}
	return p.gen.DropInUse(highest, func(limit int64) (int64, error) { return p.w.highest(limit), nil })
}

// highest returns the highest key below a limit.
