package fleet

import (
	"cmp"
	"context"
	"database/sql/driver"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Costs are times that a server needs while a number of statements are in progress, as measured on a real one. The times
// rise with this number.
type Costs struct {
	InProgress int                  // number of statements in progress
	Busy       [kinds]time.Duration // time of the whole server for a statement: at most 1 s / Busy of them run in a second
	Row        time.Duration        // time for which a fetch holds the lock of its row
	Reply      time.Duration        // time of a fetch, apart from these two, on an idle server
}

// Measured are the costs on MariaDB 10.11 with two cores, a disk that confirms a flush at once, and clients on the same
// machine, as TestStormModelMatchesServer measures them. Those above 16 statements are the lowest of many measurements on a
// machine that did other work.
var Measured = []Costs{
	{16, busy(120, 80, 130, 235), 250 * time.Microsecond, 10 * time.Microsecond},
	{64, busy(120, 85, 200, 270), 300 * time.Microsecond, 10 * time.Microsecond},
	{256, busy(125, 100, 270, 270), 350 * time.Microsecond, 10 * time.Microsecond},
	{1024, busy(130, 190, 630, 270), 570 * time.Microsecond, 10 * time.Microsecond},
}

// busy returns the times for statements in microseconds.
func busy(connect, read, fetch, identity time.Duration) (b [kinds]time.Duration) {
	b[Connect], b[Refuse], b[ReadIdentity] = connect*time.Microsecond, connect*2/3*time.Microsecond, identity*time.Microsecond
	b[ReadRow], b[Fetch] = read*time.Microsecond, fetch*time.Microsecond
	b[ReadWorker], b[WriteWorker] = b[ReadRow], b[Fetch]
	return b
}

// costsFor returns the costs while n statements are in progress, from the costs for other numbers in ascending order.
// For numbers above the highest it returns the costs of the highest.
func costsFor(n int, measured []Costs) Costs {
	i, exact := slices.BinarySearchFunc(measured, n, func(c Costs, n int) int { return cmp.Compare(c.InProgress, n) })
	if exact || i == 0 {
		return measured[i]
	}
	low := measured[i-1]
	if i == len(measured) {
		return low
	}
	high := measured[i]
	mix := func(from, to time.Duration) time.Duration {
		return from + (to-from)*time.Duration(n-low.InProgress)/time.Duration(high.InProgress-low.InProgress)
	}
	c := Costs{InProgress: n, Row: mix(low.Row, high.Row), Reply: mix(low.Reply, high.Reply)}
	for k := range kinds {
		c.Busy[k] = mix(low.Busy[k], high.Busy[k])
	}
	return c
}

// lockWait is innodb_lock_wait_timeout.
const lockWait = 50 * time.Second

// A Server is a model of the server of leaf_alloc and leaf_worker. It has one queue for its processors, one queue for
// each row's lock, and a limit of connections. It also answers queries about the tables of the application, at
// no cost: these are on many servers.
type Server struct {
	*Record
	costs []Costs
	share int // the server is so many times slower, because only one of so many processes is simulated
	limit int // maximum number of connections of the pools for leaf_alloc; 0: no limit

	mu       sync.Mutex
	idleAt   time.Time   // end of the queue for the processors
	pending  []time.Time // times at which the statements in progress are done, in ascending order
	rows     map[string]*row
	jumps    int            // number of rows that a fail-over moved by a margin
	workers  map[int]string // rows of leaf_worker: their values as in an UPDATE
	identity int            // number of fail-overs
	upAt     time.Time      // time at which the server accepts connections again
}

// row is a row of leaf_alloc.
type row struct {
	maxID, step int64
	description string
	freeAt      time.Time // end of the queue for the row's lock
}

// NewServer returns a server with rows for the tags t0, t1, ….
func NewServer(cfg Config) *Server {
	s := &Server{Record: NewRecord(), costs: cfg.Costs, share: cfg.Share, limit: cfg.Limit, rows: map[string]*row{}, workers: map[int]string{}}
	for tag := range cfg.Tags {
		s.rows[fmt.Sprint("t", tag)] = &row{maxID: 1, step: 1000, description: fmt.Sprintf("leafsql@%s 0 0", s.hash())}
	}
	return s
}

// hash returns the server's hash in marks.
func (s *Server) hash() string { return fmt.Sprintf("%016d", s.identity) }

// FailOver breaks all connections. After the given time another server accepts connections.
func (s *Server) FailOver(away time.Duration) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.identity++
	s.upAt = time.Now().Add(away)
}

// queue returns the time at which a statement that arrives now is done. lock is nil or the row that it changes.
func (s *Server) queue(k Kind, lock *row) (done time.Time, err error) {
	now := time.Now()
	old, _ := slices.BinarySearchFunc(s.pending, now, time.Time.Compare)
	s.pending = s.pending[old:]
	costs := costsFor(s.share*len(s.pending), s.costs)
	if s.idleAt.Before(now) {
		s.idleAt = now
	}
	s.idleAt = s.idleAt.Add(time.Duration(s.share) * costs.Busy[k])
	done = s.idleAt
	if lock != nil {
		if lock.freeAt.Before(done) {
			lock.freeAt = done
		}
		switch {
		case lock.freeAt.Sub(done) > lockWait:
			done = done.Add(lockWait)
			err = &mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded; try restarting transaction"}
		case k == Fetch:
			lock.freeAt = lock.freeAt.Add(time.Duration(s.share) * costs.Row)
			done = lock.freeAt
		default:
			done = lock.freeAt
		}
	}
	done = done.Add(costs.Reply)
	if k != Connect && k != Refuse { // a statement follows on the connection
		at, _ := slices.BinarySearchFunc(s.pending, done, time.Time.Compare)
		s.pending = slices.Insert(s.pending, at, done)
	}
	return done, err
}

// run executes a statement of a connection. A connection counts, and costs something, from its first statement about
// ids on: before, it may become one of the pool that reads tables.
func (s *Server) run(ctx context.Context, c *conn, text string, args []driver.NamedValue) (*answer, error) {
	k := kindOf(text)
	defer func() {
		if p := recover(); p != nil {
			fail(fmt.Sprint(text, ": ", p))
		}
	}()
	if !k.isStore() {
		if k != Connect {
			s.note(k)
		}
		if k == ReadCatalog || k == ReadKey {
			c.enter(tablesPool)
		}
		return answerTables(k, text, args), nil
	}
	s.mu.Lock()
	a, done, err := s.arrive(c, k, text)
	s.mu.Unlock()
	if a == nil {
		c.closed = true
		return nil, err
	}
	c.busyUntil = done
	wait := time.NewTimer(time.Until(done))
	defer wait.Stop()
	select {
	case <-wait.C:
	case <-ctx.Done(): // the server finishes the statement nevertheless
		c.closed = true
		return nil, ctx.Err()
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.identity != s.identity {
		c.closed = true
		return nil, mysql.ErrInvalidConn
	}
	return a, err
}

// arrive executes a statement, and returns the time at which its answer arrives. The answer is nil if the connection
// breaks at once.
func (s *Server) arrive(c *conn, k Kind, text string) (a *answer, done time.Time, err error) {
	if time.Now().Before(s.upAt) || c.pool == storePool && c.identity != s.identity {
		return nil, done, driver.ErrBadConn
	}
	if c.pool != storePool {
		if s.limit > 0 && s.Open() >= s.limit {
			s.queue(Refuse, nil)
			s.note(Refuse)
			return nil, done, &mysql.MySQLError{Number: 1040, Message: "Too many connections"}
		}
		c.identity = s.identity
		s.note(Connect)
		s.queue(Connect, nil)
		c.enter(storePool)
	}
	s.note(k)
	a, lock, err := s.execute(k, text)
	if err != nil {
		return a, time.Now(), err
	}
	done, err = s.queue(k, lock)
	return a, done, err
}
