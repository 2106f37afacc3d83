package docs

import (
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"

	_ "github.com/leafsql/leafsql/driver"
)

// A program is the shop's program as one-to-two.md and shards-to-engine.md describe it: it writes, changes, cancels and
// reads orders until it is stopped.
type program struct {
	dbs    []*sql.DB
	shards int
	first  int // the database in which it first looks for an order
	log    *requests

	ending   chan struct{}
	finished chan struct{} // one value for each request, while wait is running
	working  sync.WaitGroup
	gate     sync.RWMutex // held by each request
}

// start starts the program with its settings.
func start(t *testing.T, settings map[string]string, log *requests) *program {
	t.Helper()
	p := &program{log: log, ending: make(chan struct{}), finished: make(chan struct{})}
	for _, name := range []string{"DSN0", "DSN1", "DSN2"} {
		if dsn := settings[name]; dsn != "" {
			db, err := sql.Open(settings["DRIVER"], dsn)
			if err != nil {
				t.Fatal(err)
			}
			p.dbs = append(p.dbs, db)
		}
	}
	var err error
	if p.shards, err = strconv.Atoi(settings["SHARDS"]); err != nil {
		t.Fatal(err)
	}
	if first := settings["FIRST"]; first != "" {
		if p.first, err = strconv.Atoi(first); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 3 {
		p.working.Go(func() { p.work(i) })
	}
	return p
}

// stop ends the program after its current requests.
func (p *program) stop() {
	close(p.ending)
	p.working.Wait()
	for _, db := range p.dbs {
		db.Close()
	}
}

// awaitRequests waits until n requests have ended.
func (p *program) awaitRequests(n int) {
	for range n {
		<-p.finished
	}
}

func (p *program) work(n int) {
	for ; ; n++ {
		select {
		case <-p.ending:
			return
		case <-time.After(20 * time.Millisecond): // pause of the shop's customers
		}
		p.gate.RLock()
		p.request(func() error { return p.addOrder(n) })
		p.request(p.addNote)
		p.request(func() error { return p.raiseTotal(p.log.pickOrder()) })
		p.request(p.readOrder)
		if id := p.log.pickCanceled(n); id != 0 {
			p.request(func() error { return p.cancelOrder(id) })
		}
		p.gate.RUnlock()
	}
}

// request repeats requests that ended in a deadlock.
func (p *program) request(do func() error) {
	for {
		began, since := p.log.currentStep(), time.Now()
		err := do()
		p.log.recordEnd(began, time.Since(since), err)
		select {
		case p.finished <- struct{}{}:
		default:
		}
		var refused *mysql.MySQLError
		if !errors.As(err, &refused) || refused.Number != 1213 {
			return
		}
	}
}

// addOrder writes an order of a customer with two items and a note.
func (p *program) addOrder(customer int) error {
	tx, err := p.dbs[customer%p.shards].Begin()
	if err != nil {
		return err
	}
	defer tx.Rollback()
	res, err := tx.Exec("INSERT INTO orders (customer, total) VALUES (?, ?)", customer, 100)
	if err != nil {
		return err
	}
	id, err := res.LastInsertId()
	if err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO items (order_id, article) VALUES (?, 'tea'), (?, 'cup')", id, id); err != nil {
		return err
	}
	if _, err := tx.Exec("INSERT INTO notes (order_id, note) VALUES (?, 'new')", id); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	p.log.recordOrder(id, customer)
	return nil
}

// addNote adds a note to an order, in the database that has it.
func (p *program) addNote() error {
	return p.change(p.log.pickOrder(), p.log.recordNote, func(tx *sql.Tx, id int64, _ []*sql.DB) error {
		_, err := tx.Exec("INSERT INTO notes (order_id, note) VALUES (?, 'more')", id)
		return err
	})
}

// raiseTotal changes an order, in the database that has it.
func (p *program) raiseTotal(id int64) error {
	return p.change(id, p.log.recordRaise, func(tx *sql.Tx, id int64, _ []*sql.DB) error {
		_, err := tx.Exec("UPDATE orders SET total = total + 1 WHERE id = ?", id)
		return err
	})
}

// cancelOrder deletes an order in all databases. The order stays locked in the database that has it while the program
// deletes the copy that an interrupted move has left in another one.
func (p *program) cancelOrder(id int64) error {
	return p.change(id, func(int64) {}, func(tx *sql.Tx, id int64, others []*sql.DB) error {
		for _, db := range others {
			if err := deleteOrder(db, id); err != nil {
				return err
			}
		}
		return deleteOrder(tx, id)
	})
}

func deleteOrder(db interface {
	Exec(string, ...any) (sql.Result, error)
}, id int64) error {
	for _, text := range []string{"DELETE FROM notes WHERE order_id = ?", "DELETE FROM items WHERE order_id = ?", "DELETE FROM orders WHERE id = ?"} {
		if _, err := db.Exec(text, id); err != nil {
			return err
		}
	}
	return nil
}

// change finds an order, locks it and changes it in one transaction. do gets the databases after the one that has the
// order.
func (p *program) change(id int64, record func(int64), do func(tx *sql.Tx, id int64, others []*sql.DB) error) error {
	return p.find(id, func(db *sql.DB, others []*sql.DB) (found bool, err error) {
		tx, err := db.Begin()
		if err != nil {
			return false, err
		}
		defer tx.Rollback()
		// This statement opens all tables, so the transaction does not wait for an ALTER TABLE while it holds row locks.
		if _, err := tx.Exec("SELECT 1 FROM orders, items, notes LIMIT 0 FOR UPDATE"); err != nil {
			return false, err
		}
		if err := tx.QueryRow("SELECT id FROM orders WHERE id = ? FOR UPDATE", id).Scan(&id); err != nil {
			return false, err
		}
		if err := do(tx, id, others); err != nil {
			return true, err
		}
		if err := tx.Commit(); err != nil {
			return true, err
		}
		record(id)
		return true, nil
	})
}

// readOrder reads an order, in the database that has it.
func (p *program) readOrder() error {
	id := p.log.pickOrder()
	return p.find(id, func(db *sql.DB, _ []*sql.DB) (bool, error) {
		err := db.QueryRow("SELECT id FROM orders WHERE id = ?", id).Scan(&id)
		return err == nil, err
	})
}

// find looks for an order, which may be moved or canceled meanwhile. in gets a database and the ones after it.
func (p *program) find(id int64, in func(db *sql.DB, others []*sql.DB) (bool, error)) error {
	if id == 0 {
		return nil
	}
	dbs := append(slices.Clone(p.dbs[p.first:]), p.dbs[:p.first]...)
	for i, db := range dbs {
		if found, err := in(db, dbs[i+1:]); found || err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	if customer, canceled := p.log.lookUp(id); !canceled {
		return fmt.Errorf("order %d of customer %d is not found", id, customer)
	}
	return nil
}

// requests is the log of all requests to the programs, by step of the page.
type requests struct {
	mu       sync.Mutex
	step     string
	steps    []string                  // in order
	counts   map[string]map[string]int // by step and outcome
	longest  map[string]time.Duration  // by step
	failures []failure

	ids      []int64 // orders without the canceled ones
	orders   map[int64]*shopOrder
	picked   int
	canceled map[int64]bool
	cancels  bool // programs cancel orders
}

// A shopOrder is an order as the program has it, or as the databases store it.
type shopOrder struct{ customer, total, items, notes int }

// A failure is a failed request, with the steps in which it began and ended.
type failure struct{ began, ended, err string }

func newRequests() *requests {
	return &requests{counts: map[string]map[string]int{}, longest: map[string]time.Duration{}, orders: map[int64]*shopOrder{}, canceled: map[int64]bool{}}
}

func (r *requests) enterStep(step string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.step = step; r.counts[step] == nil {
		r.steps, r.counts[step] = append(r.steps, step), map[string]int{}
	}
}

func (r *requests) currentStep() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.step
}

func (r *requests) recordEnd(began string, took time.Duration, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.longest[r.step] = max(r.longest[r.step], took)
	outcome := "done"
	if err != nil {
		outcome = err.Error()
		var refused *mysql.MySQLError
		if errors.As(err, &refused) {
			outcome = fmt.Sprint(refused.Number)
		}
		r.failures = append(r.failures, failure{began, r.step, outcome})
	}
	r.counts[r.step][outcome]++
}

func (r *requests) recordOrder(id int64, customer int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ids, r.orders[id] = append(r.ids, id), &shopOrder{customer: customer, total: 100, items: 2, notes: 1}
}

func (r *requests) recordNote(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders[id].notes++
}

func (r *requests) recordRaise(id int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.orders[id].total++
}

// pickOrder returns the id of an acknowledged order: the last one, or any. It returns 0 if there is none.
func (r *requests) pickOrder() int64 {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return 0
	}
	if r.picked++; r.picked%2 == 0 {
		return r.ids[r.picked*7919%len(r.ids)]
	}
	return r.ids[len(r.ids)-1]
}

// pickCanceled returns the id of an order that the n-th request cancels, or 0.
func (r *requests) pickCanceled(n int) int64 {
	r.mu.Lock()
	cancels := r.cancels
	r.mu.Unlock()
	if !cancels || n%4 != 0 {
		return 0
	}
	if id := r.pickOrder(); r.cancel(id) {
		return id
	}
	return 0
}

// setCancels sets whether programs cancel orders.
func (r *requests) setCancels(cancels bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cancels = cancels
}

// cancel marks an order as canceled. It reports whether the order exists and was not canceled before.
func (r *requests) cancel(id int64) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	at := slices.Index(r.ids, id)
	if at < 0 {
		return false
	}
	r.ids, r.canceled[id] = slices.Delete(r.ids, at, at+1), true
	return true
}

// lookUp returns an order's customer, and whether the order is canceled.
func (r *requests) lookUp(id int64) (customer int, canceled bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.orders[id].customer, r.canceled[id]
}

// expected returns the orders that the databases have to store.
func (r *requests) expected() map[int64]shopOrder {
	r.mu.Lock()
	defer r.mu.Unlock()
	all := map[int64]shopOrder{}
	for _, id := range r.ids {
		all[id] = *r.orders[id]
	}
	return all
}

func (r *requests) print(t *testing.T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, step := range r.steps {
		var outcomes []string
		for outcome, n := range r.counts[step] {
			outcomes = append(outcomes, fmt.Sprintf("%s: %d", outcome, n))
		}
		slices.Sort(outcomes)
		t.Logf("%-32s %s; the longest took %v", step, strings.Join(outcomes, ", "), r.longest[step].Round(time.Millisecond))
	}
}
