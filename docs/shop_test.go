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

// A program is the shop's program as one-to-two.md describes it: it writes orders, adds notes to them and reads them,
// until it is stopped.
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
	for _, name := range []string{"DSN0", "DSN1"} {
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
	if settings["FIRST"] == "1" {
		p.first = 1
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
		case <-time.After(2 * time.Millisecond): // pause of the shop's customers
		}
		p.gate.RLock()
		p.request(func() error { return p.addOrder(n) })
		p.request(p.addNote)
		p.request(p.readOrder)
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

// addNote adds a note to an order, in either database.
func (p *program) addNote() error {
	return p.find(func(db *sql.DB, id int64) (found bool, err error) {
		tx, err := db.Begin()
		if err != nil {
			return false, err
		}
		defer tx.Rollback()
		if err := tx.QueryRow("SELECT id FROM orders WHERE id = ? FOR UPDATE", id).Scan(&id); err != nil {
			return false, err
		}
		if _, err := tx.Exec("INSERT INTO notes (order_id, note) VALUES (?, 'more')", id); err != nil {
			return true, err
		}
		if err := tx.Commit(); err != nil {
			return true, err
		}
		p.log.recordNote()
		return true, nil
	})
}

// readOrder reads an order, in either database.
func (p *program) readOrder() error {
	return p.find(func(db *sql.DB, id int64) (bool, error) {
		err := db.QueryRow("SELECT id FROM orders WHERE id = ?", id).Scan(&id)
		return err == nil, err
	})
}

// find looks for one of the orders, which may be moved meanwhile.
func (p *program) find(in func(*sql.DB, int64) (bool, error)) error {
	id, customer := p.log.pickOrder()
	if id == 0 {
		return nil
	}
	for i := range p.dbs {
		if found, err := in(p.dbs[(p.first+i)%len(p.dbs)], id); found || err != nil && !errors.Is(err, sql.ErrNoRows) {
			return err
		}
	}
	return fmt.Errorf("order %d of customer %d is not found", id, customer)
}

// requests is the log of all requests to the programs, by step of the page.
type requests struct {
	mu       sync.Mutex
	step     string
	steps    []string                  // in order
	counts   map[string]map[string]int // by step and outcome
	longest  map[string]time.Duration  // by step
	failures []failure

	ids       []int64 // ids of the orders
	customers map[int64]int
	notes     int
	asked     int
}

// A failure is a failed request, with the steps in which it began and ended.
type failure struct{ began, ended, err string }

func newRequests() *requests {
	return &requests{counts: map[string]map[string]int{}, longest: map[string]time.Duration{}, customers: map[int64]int{}}
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
	r.ids, r.customers[id] = append(r.ids, id), customer
	r.notes++
}

func (r *requests) recordNote() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes++
}

// pickOrder returns one of the acknowledged orders: the last one, or any.
func (r *requests) pickOrder() (id int64, customer int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.ids) == 0 {
		return 0, 0
	}
	id = r.ids[len(r.ids)-1]
	if r.asked++; r.asked%2 == 0 {
		id = r.ids[r.asked*7919%len(r.ids)]
	}
	return id, r.customers[id]
}

// expectedRows returns the number of rows that a table has to have.
func (r *requests) expectedRows(table string) int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return map[string]int{"orders": len(r.ids), "items": 2 * len(r.ids), "notes": r.notes}[table]
}

// orderValues returns the orders as rows for VALUES.
func (r *requests) orderValues() string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []string
	for _, id := range r.ids {
		all = append(all, fmt.Sprintf("(%d)", id))
	}
	return strings.Join(all, ", ")
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
