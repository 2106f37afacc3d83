package driver

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

const insertT = "INSERT INTO t (a, b) VALUES (1, 2)"

// leased returns a Config for noop with a table that uses snowflakes, and a worker id
// from spec.
func leased(spec string) *Config {
	cfg := NewConfig()
	cfg.MySQL.DBName = "shop"
	cfg.Tables = []Rule{{Table: "t", Kind: Snowflake}}
	cfg.Worker = spec
	cfg.NewRegistry = true
	cfg.Logger = slog.New(slog.DiscardHandler)
	return cfg
}

func wrapNoop(t *testing.T, cfg *Config) *Connector {
	t.Helper()
	c, err := Wrap(noop{}, cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// TestConnectorClosedTwice: a Connector closed by its pool and by the caller releases shared resources only once.
func TestConnectorClosedTwice(t *testing.T) {
	one, two := wrapNoop(t, leased("static(901)")), wrapNoop(t, leased("static(901)"))
	db := sql.OpenDB(two)
	defer db.Close()
	if _, err := db.Exec(insertT); err != nil {
		t.Fatal(err)
	}
	sql.OpenDB(one).Close()
	one.Close()
	if _, err := db.Exec(insertT); err != nil {
		t.Errorf("INSERT on the other pool: error %v, want none", err)
	}
}

// TestConnectorServesAgain: a Connector from Wrap still wraps after Close, when the next sql.OpenDB uses it.
func TestConnectorServesAgain(t *testing.T) {
	c := wrapNoop(t, leased("static(903)"))
	sql.OpenDB(c).Close()
	db := sql.OpenDB(c)
	defer db.Close()
	if _, err := db.Exec(insertT); err != nil || c.current() == c || !c.current().wrapped {
		t.Errorf("error %v, wrapped %v; want none, and a new wrapped connector", err, c.current().wrapped)
	}
}

// counted returns a function that opens a source on slots and counts its calls.
func counted(slots worker.Slots, opened *atomic.Int32) func(context.Context) (worker.Source, error) {
	return func(context.Context) (worker.Source, error) {
		opened.Add(1)
		return worker.Source{Slots: slots, Name: "test"}, nil
	}
}

var sourceNames atomic.Int32

// bySource registers a source under a name, by which pools share it, and returns a Config for it.
func bySource(open func(context.Context) (worker.Source, error)) *Config {
	name := fmt.Sprint("test", sourceNames.Add(1))
	worker.Register(name, func(string, worker.Options) (func(context.Context) (worker.Source, error), error) { return open, nil })
	return leased(name + "()")
}

// TestPoolsShareWorkerID: a worker id is leased at the first INSERT that needs one. Pools that
// name the same source share it, and the last one releases it.
func TestPoolsShareWorkerID(t *testing.T) {
	var opened atomic.Int32
	slots := &workertest.Memory{}
	cfg := bySource(counted(slots, &opened))
	one, two := wrapNoop(t, cfg), wrapNoop(t, cfg)
	a, b := sql.OpenDB(one), sql.OpenDB(two)
	for range 3 {
		if err := a.Ping(); err != nil {
			t.Fatal(err)
		}
	}
	if s := one.Worker(); opened.Load() != 0 || s.Phase != "idle" || s.Worker != -1 {
		t.Errorf("before an id is needed: source opened %d times, Worker() = %+v; want 0 and phase idle", opened.Load(), s)
	}
	for _, db := range []*sql.DB{a, b} {
		if _, err := db.Exec(insertT); err != nil {
			t.Fatal(err)
		}
	}
	s := one.Worker()
	if opened.Load() != 1 || s.Phase != "holding" || s.Registry != "test" || s.Limit.Before(time.Now()) || s.Worker != two.Worker().Worker {
		t.Errorf("source opened %d times, Worker() = %+v and %+v; want once, and one worker id", opened.Load(), s, two.Worker())
	}
	if w := two.Stats().Worker; w == nil || w.Phase != "holding" || w.Worker != s.Worker || w.Owner == "" || w.Next.IsZero() || w.Layout != snowflake.Leaf {
		t.Errorf("Stats().Worker = %+v, want phase holding with the shared worker id", w)
	}
	a.Close()
	if _, err := b.Exec(insertT); err != nil {
		t.Errorf("INSERT after the Close of the other pool: error %v, want none", err)
	}
	b.Close()
	if s := two.Worker(); s.Phase != "closed" {
		t.Errorf("Worker() after db.Close = %+v, want phase closed", s)
	}
	if d, _, _ := slots.Get(t.Context(), s.Worker); !d.Free {
		t.Errorf("slot after db.Close = %+v, want Free", d)
	}
}

// TestReadyTakesWorkerID: Ready returns when a worker id is held, even if searches have failed before, and its error has
// the reason if there is none. A ping takes none.
func TestReadyTakesWorkerID(t *testing.T) {
	var opened atomic.Int32
	c := wrapNoop(t, bySource(counted(&workertest.Memory{}, &opened)))
	db := sql.OpenDB(c)
	defer db.Close()
	if err := db.Ping(); err != nil || c.Worker().Phase != "idle" {
		t.Errorf("Ping() = %v with phase %s, want no error and idle", err, c.Worker().Phase)
	}
	for range 2 {
		if err := Ready(t.Context(), db); err != nil || c.Worker().Phase != "holding" || opened.Load() != 1 {
			t.Errorf("Ready() = %v with %+v, source opened %d times; want phase holding and 1", err, c.Worker(), opened.Load())
		}
	}

	undeclared := bySource(counted(&workertest.Memory{}, &opened))
	undeclared.NewRegistry = false
	waiting := sql.OpenDB(wrapNoop(t, undeclared))
	defer waiting.Close()
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := Ready(ctx, waiting); !errors.Is(err, context.DeadlineExceeded) || !strings.Contains(err.Error(), "(test) is new or has lost documents") || !strings.Contains(err.Error(), "leafsql init -new-registry") {
		t.Errorf("Ready() on a new registry = %v, want context.DeadlineExceeded with the registry and the reason", err)
	}

	away := errors.New("the registry is away")
	failing := sql.OpenDB(wrapNoop(t, bySource(func(context.Context) (worker.Source, error) { return worker.Source{}, away })))
	defer failing.Close()
	var lease *snowflake.LeaseError
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := Ready(ctx, failing); !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, away) || !errors.As(err, &lease) {
		t.Errorf("Ready() without a registry = %v, want context.DeadlineExceeded and a *snowflake.LeaseError with %v", err, away)
	}

	unusable := &worker.UnusableError{Err: errors.New("the password is wrong")}
	refused := sql.OpenDB(wrapNoop(t, bySource(func(context.Context) (worker.Source, error) { return worker.Source{}, unusable })))
	defer refused.Close()
	if err := Ready(t.Context(), refused); !errors.Is(err, unusable) || !errors.As(err, &lease) {
		t.Errorf("Ready() with an unusable registry = %v, want a *snowflake.LeaseError with %v at once", err, unusable)
	}

	open, tries := counted(&workertest.Memory{}, &opened), 0
	recovering := sql.OpenDB(wrapNoop(t, bySource(func(ctx context.Context) (worker.Source, error) {
		if tries++; tries < 3 {
			return worker.Source{}, away
		}
		return open(ctx)
	})))
	defer recovering.Close()
	if err := Ready(t.Context(), recovering); err != nil || tries != 3 {
		t.Errorf("Ready() with a registry that answers the third search = %v after %d searches, want no error after 3", err, tries)
	}

	db.Close()
	if err := Ready(t.Context(), db); err == nil {
		t.Error("Ready() of a closed pool = nil, want an error")
	}
}

// TestReadyTakesWorkerIDOnlyForTables: Ready takes a worker id if a rule gives tables snowflakes, whether or not these tables
// exist. Otherwise it takes none, even if leafWorker is set.
func TestReadyTakesWorkerIDOnlyForTables(t *testing.T) {
	for phase, rules := range map[string][][]Rule{
		"holding": {{{Table: "t", Kind: Snowflake}}, {{Table: "u"}, {Table: "missing_*", Kind: Snowflake}}},
		"idle":    {nil, {{Table: "t"}}, {{Table: "t", Exclude: true}, {Table: "*", Kind: UUID7}}},
	} {
		for _, tables := range rules {
			var opened atomic.Int32
			cfg := bySource(counted(&workertest.Memory{}, &opened))
			cfg.Tables, cfg.None = tables, tables == nil
			c := wrapNoop(t, cfg)
			db := sql.OpenDB(c)
			if err := Ready(t.Context(), db); err != nil || c.Worker().Phase != phase {
				t.Errorf("%v: Ready() = %v with phase %s, want no error and %s", tables, err, c.Worker().Phase, phase)
			}
			db.Close()
		}
	}
}

// TestPoolsWithWorkerSourceHaveTheirOwnID: each pool with a WorkerSource has its own worker id.
func TestPoolsWithWorkerSourceHaveTheirOwnID(t *testing.T) {
	var opened atomic.Int32
	slots := &workertest.Memory{}
	cfg := leased("")
	cfg.WorkerSource = counted(slots, &opened)
	one, two := wrapNoop(t, cfg), wrapNoop(t, cfg)
	for _, c := range []*Connector{one, two} {
		db := sql.OpenDB(c)
		defer db.Close()
		if _, err := db.Exec(insertT); err != nil {
			t.Fatal(err)
		}
	}
	if a, b := one.Worker().Worker, two.Worker().Worker; a == b || opened.Load() != 2 {
		t.Errorf("worker ids %d and %d, source opened %d times; want different ids and 2", a, b, opened.Load())
	}
	if got := one.Stats().Worker.Source; got != "custom" {
		t.Errorf("Source = %q, want custom", got)
	}
	if s := wrapNoop(t, leased("static(906)")).Worker(); s.Phase != "idle" {
		t.Errorf("Worker() = %+v, want phase idle", s)
	}
	none := leased("")
	none.Tables = nil
	if w := wrapNoop(t, none).Stats().Worker; w != nil {
		t.Errorf("Stats().Worker without a source = %+v, want nil", w)
	}
	if s := wrapNoop(t, none).Worker(); s.Phase != "idle" || s.Worker != -1 {
		t.Errorf("Worker() without a source = %+v, want phase idle", s)
	}
}

// TestUnusableLayoutLeasesNoWorkerID: no worker id is leased for an unusable layout, and each error states the cause.
func TestUnusableLayoutLeasesNoWorkerID(t *testing.T) {
	var opened atomic.Int32
	slots := &workertest.Memory{}
	cfg := bySource(counted(slots, &opened))
	cfg.Snowflake = snowflake.Layout{Time: 41, Worker: 10, Sequence: 12, Epoch: 4102444800000} // begins in 2100
	db := sql.OpenDB(wrapNoop(t, cfg))
	defer db.Close()
	for range 3 {
		_, err := db.Exec(insertT)
		if _, ok := errors.AsType[*snowflake.EpochError](err); !ok {
			t.Errorf("error %v, want an EpochError", err)
		}
	}
	if _, v, _ := slots.Get(t.Context(), worker.RegistrySlot); v != "" {
		t.Errorf("version of the registry = %q, want none, since it is not used", v)
	}
}

// TestReopenedPoolWaitsForWorkerID: a pool opened while an equal one closes waits for its worker id.
// A third pool waits as well if the second is closed meanwhile.
func TestReopenedPoolWaitsForWorkerID(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC))) // after the layout's epoch
		gate := make(chan struct{})
		slots := &workertest.Memory{}
		opened := 0
		cfg := bySource(func(context.Context) (worker.Source, error) {
			opened++
			return worker.Source{Slots: slots, Close: func() error { <-gate; return nil }}, nil
		})
		cfg.Lease = time.Minute
		open := func() *sql.DB { return sql.OpenDB(wrapNoop(t, cfg)) }
		one := open()
		if _, err := one.Exec(insertT); err != nil {
			t.Fatal(err)
		}
		go one.Close()
		synctest.Wait()
		two := open()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := two.ExecContext(ctx, insertT); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("INSERT while the earlier pool closes: error %v, want DeadlineExceeded", err)
		}
		go two.Close()
		synctest.Wait()
		three := open()
		inserted := make(chan error)
		go func() {
			_, err := three.Exec(insertT)
			inserted <- err
		}()
		synctest.Wait()
		if opened != 1 {
			t.Errorf("source opened %d times before the first worker id was released, want 1", opened)
		}
		close(gate)
		if err := <-inserted; err != nil {
			t.Errorf("INSERT after the release: error %v, want none", err)
		}
		three.Close()
	})
}

// TestReopenedPoolWaitsForStaticLock: the same with a real lock on local state.
func TestReopenedPoolWaitsForStaticLock(t *testing.T) {
	cfg := leased("static(904)")
	cfg.State = t.TempDir()
	var closing sync.WaitGroup
	for i := range 20 {
		db := sql.OpenDB(wrapNoop(t, cfg))
		if _, err := db.Exec(insertT); err != nil {
			t.Errorf("pool %d: INSERT: error %v, want none", i, err)
		}
		done := make(chan struct{})
		closing.Go(func() {
			close(done)
			db.Close()
		})
		<-done
	}
	closing.Wait()
}

// TestDifferentLeaseOfSharedSourceIsRefused: pools with equal sources but different leafLease share the source. The
// second would silently use the first one's lease, so it is refused.
func TestDifferentLeaseOfSharedSourceIsRefused(t *testing.T) {
	for _, spec := range []string{"static(902)", ""} { // "" is mysql()
		cfg := leased(spec)
		cfg.Store = "app@tcp(127.0.0.1:1)/lease_of_a_shared_source"
		first := wrapNoop(t, cfg)
		same := cfg.Clone()
		same.Lease = time.Minute // the default, set explicitly
		wrapNoop(t, same).Close()
		other := cfg.Clone()
		other.Lease = 30 * time.Second
		_, err := Wrap(noop{}, other)
		if refused, ok := errors.AsType[*ConfigError](err); !ok || refused.Param != "leafLease" || !strings.Contains(err.Error(), "leafLease=1m0s, this one has 30s") {
			t.Errorf("%q: error %v, want a ConfigError of leafLease", spec, err)
		}
		first.Close()
		wrapNoop(t, other) // the source is not in use
	}
}

// TestInsertsFailImmediatelyInLongOutage: INSERTs wait for the first search. Later ones fail immediately with
// the result of the last search and the time of the next. The cause is logged once, and
// INSERTs work again when the registry is back.
func TestInsertsFailImmediatelyInLongOutage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)))
		var (
			log    strings.Builder
			opened atomic.Int32
		)
		slots := &workertest.Memory{}
		cfg := bySource(counted(slots, &opened))
		cfg.Logger = slog.New(slog.NewTextHandler(&log, nil))
		c := wrapNoop(t, cfg)
		db := sql.OpenDB(c)
		insert := func() (time.Duration, error) {
			began := time.Now()
			_, err := db.ExecContext(t.Context(), insertT)
			return time.Since(began), err
		}
		if _, err := insert(); err != nil {
			t.Fatal(err)
		}
		slots.Fault(func(f *workertest.Faults) { f.Away, f.Delay = true, 4*time.Second })
		failed := 0
		for range 300 { // five minutes
			took, err := insert()
			lease, refused := errors.AsType[*snowflake.LeaseError](err)
			switch {
			case err == nil && took == 0:
			case !refused || !strings.Contains(err.Error(), "the registry does not answer"):
				t.Fatalf("error %v, want a refusal with the cause", err)
			case took > 50*time.Millisecond:
				t.Fatalf("INSERT after %d failures took %v, want at most 50ms", failed, took)
			case failed > 10 && !lease.Next.IsZero() && lease.Next.Before(time.Now()):
				t.Fatalf("time of the next attempt = %v, want a later time than now", lease.Next)
			default:
				failed++
			}
			time.Sleep(time.Second)
		}
		if s := c.Worker(); failed < 200 || s.Err == nil || s.Phase != "searching" {
			t.Errorf("%d failures, Worker() = %+v; want at least 200, and phase searching with an error", failed, s)
		}
		slots.Fault(func(f *workertest.Faults) { *f = workertest.Faults{} })
		time.Sleep(20 * time.Second)
		if _, err := insert(); err != nil {
			t.Errorf("INSERT with the registry back: error %v, want none", err)
		}
		db.Close()
		for _, line := range []string{"worker id acquired", "lease cannot be renewed", "worker id lost", "no worker id: "} {
			if n := strings.Count(log.String(), line); n != 1 && !(line == "worker id acquired" && n == 2) {
				t.Errorf("%q is in the log %d times, want once: %s", line, n, log.String())
			}
		}
	})
}

// TestConnectorsShareSameStore: Connectors share a leaf_alloc if their
// configurations name the same one. If a function of the application dials, they do
// not, since it may connect to another server.
func TestConnectorsShareSameStore(t *testing.T) {
	named, dialed := NewConfig(), NewConfig()
	named.Store = "root@tcp(ids:3306)/ids"
	dialed.MySQL.DialFunc = func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("nowhere") }
	wrapped := func(cfg *Config) (*Connector, error) { return Wrap(noop{}, cfg) }
	for _, tt := range []struct {
		what   string
		open   func(*Config) (*Connector, error)
		cfg    *Config
		shared bool
	}{
		{"a DSN", NewConnector, NewConfig(), true},
		{"a DSN, dialed", NewConnector, dialed, false},
		{"wrapped", wrapped, NewConfig(), false},
		{"wrapped, a named store", wrapped, named, true},
		{"dialed, a named store", NewConnector, &Config{MySQL: dialed.MySQL, Store: named.Store}, true},
	} {
		var stores [2]*ids.Store
		for i := range stores {
			c, err := tt.open(tt.cfg)
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			stores[i] = c.store
		}
		if (stores[0] == stores[1]) != tt.shared {
			t.Errorf("%s: shared is %v, want %v", tt.what, !tt.shared, tt.shared)
		}
	}
}
