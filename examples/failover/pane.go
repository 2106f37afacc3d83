package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/testutil/mysqltest"
	"github.com/leafsql/leafsql/testutil/netfault"
)

// A pane is one of the two runs.
type pane struct {
	marked           bool
	primary, replica *mysqltest.Server // servers of leaf_alloc
	balancer         *netfault.Proxy   // forwards to the primary
	dsns             [2]string         // the shop's databases
	idle             atomic.Bool       // the first program inserts nothing

	programs   int
	running    sync.WaitGroup
	end        context.CancelFunc
	ctx        context.Context
	orders     atomic.Int64              // INSERTs that succeeded
	duplicates atomic.Int64              // INSERTs that failed because the key exists
	promoted   atomic.Pointer[time.Time] // time at which the replica was promoted
	first      atomic.Int64              // ms from promoted to the first row with an id above the margin
}

// newShop starts the server with the shop's databases of both runs. This server does not fail over.
func newShop() (*mysqltest.Server, error) {
	mysql.SetLogger(log.New(io.Discard, "", 0)) // broken connections are expected
	slog.SetDefault(slog.New(slog.DiscardHandler))
	return mysqltest.Start(mysqltest.Config{Kind: mysqltest.MariaDB})
}

const leafAlloc = "CREATE TABLE leaf_alloc (biz_tag VARCHAR(128) NOT NULL PRIMARY KEY, max_id BIGINT NOT NULL DEFAULT 1, step INT NOT NULL," +
	" description VARCHAR(256), update_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP ON UPDATE CURRENT_TIMESTAMP)"

// open starts the primary and the replica of leaf_alloc, and creates the tables.
func (p *pane) open(ctx context.Context, shop *mysqltest.Server) (err error) {
	p.ctx, p.end = context.WithCancel(ctx)
	for i, server := range []**mysqltest.Server{&p.primary, &p.replica} {
		args := []string{fmt.Sprintf("--server-id=%d", i+1), "--log-bin=binlog", "--binlog-format=ROW", "--sync-binlog=1", "--innodb-flush-log-at-trx-commit=1"}
		if *server, err = mysqltest.Start(mysqltest.Config{Kind: mysqltest.MariaDB, Args: args}); err != nil {
			return err
		}
	}
	if p.balancer, err = netfault.New(p.primary.Addr()); err != nil {
		return err
	}
	host, port, _ := strings.Cut(p.primary.Addr(), ":")
	err = execute(ctx, p.replica, fmt.Sprintf("CHANGE MASTER TO MASTER_HOST='%s', MASTER_PORT=%s, MASTER_USER='root', MASTER_USE_GTID=slave_pos", host, port),
		"START SLAVE", "SET GLOBAL read_only=1")
	if err != nil {
		return err
	}
	row := "INSERT INTO leaf_alloc (biz_tag, max_id, step) VALUES ('orders', 1, 10)"
	if !p.marked {
		row = "INSERT INTO leaf_alloc (biz_tag, max_id, step, description) VALUES ('orders', 1, 10, 'leafsql@off')"
	}
	if err := execute(ctx, p.primary, "CREATE DATABASE ids", "USE ids", leafAlloc, row); err != nil {
		return err
	}
	for i := range p.dsns {
		name := fmt.Sprintf("shop_%t_%d", p.marked, i)
		if err := execute(ctx, shop, "CREATE DATABASE "+name, "CREATE TABLE "+name+".orders (id BIGINT NOT NULL PRIMARY KEY, program INT NOT NULL)"); err != nil {
			return err
		}
		p.dsns[i] = shop.DSN(name)
	}
	return nil
}

// close ends the servers and the balancer.
func (p *pane) close() error {
	if p.end == nil {
		return nil
	}
	errs := []error{p.stop()}
	if p.balancer != nil {
		p.balancer.Close()
	}
	for _, s := range []*mysqltest.Server{p.primary, p.replica} {
		if s != nil {
			errs = append(errs, s.Stop())
		}
	}
	return errors.Join(errs...)
}

// start starts three programs.
func (p *pane) start(context.Context) error {
	for range 3 {
		p.programs++
		number := p.programs
		// Pools with different store DSNs share no range, like pools of different
		// processes.
		store := fmt.Sprintf("root@tcp(%s)/ids?connectionAttributes=program:%d", p.balancer.Addr(), number)
		db, err := sql.Open(driver.Name, p.dsns[number%2]+"?leafTables=orders&leafStore="+url.QueryEscape(store))
		if err != nil {
			return err
		}
		p.running.Go(func() {
			defer db.Close()
			p.insert(db, number)
		})
	}
	return nil
}

// insert runs a program.
func (p *pane) insert(db *sql.DB, program int) {
	for ; p.ctx.Err() == nil; time.Sleep(time.Millisecond) {
		if program == 1 && p.idle.Load() {
			continue
		}
		result, err := db.ExecContext(p.ctx, "INSERT INTO orders (program) VALUES (?)", program)
		if e, ok := errors.AsType[*mysql.MySQLError](err); ok && e.Number == 1062 {
			p.duplicates.Add(1)
		}
		if err == nil {
			p.orders.Add(1)
			p.noteFirstID(result)
		}
	}
}

// margin is the smallest number by which a row is moved if the server may lack
// ranges.
const margin = 1 << 36

// noteFirstID records the time of the first id above the margin.
func (p *pane) noteFirstID(result sql.Result) {
	if at := p.promoted.Load(); at != nil {
		if id, err := result.LastInsertId(); err == nil && id > margin {
			p.first.CompareAndSwap(0, max(time.Since(*at).Milliseconds(), 1))
		}
	}
}

// pauseFirstProgram stops the inserts of the first program, so that this program cannot notice later that
// leaf_alloc has gone back.
func (p *pane) pauseFirstProgram(context.Context) error {
	p.idle.Store(true)
	return nil
}

// stopReplication waits until the replica has the ranges that the first program fetched, and then stops
// the replication.
func (p *pane) stopReplication(ctx context.Context) error {
	position, err := queryValue[string](ctx, p.primary.DSN("ids"), "SELECT @@gtid_binlog_pos")
	if err != nil {
		return err
	}
	if late, err := queryValue[int](ctx, p.replica.DSN(""), "SELECT MASTER_GTID_WAIT('"+position+"', 60)"); err != nil || late != 0 {
		return fmt.Errorf("the replica does not follow: %d, %w", late, err)
	}
	return execute(ctx, p.replica, "STOP SLAVE IO_THREAD")
}

// waitForLostRanges waits until the primary has issued ranges that the replica lacks.
func (p *pane) waitForLostRanges(ctx context.Context) error {
	const query = "SELECT max_id FROM leaf_alloc"
	there, err := queryValue[int64](ctx, p.replica.DSN("ids"), query)
	for end := time.Now().Add(fetchTimeout); err == nil; time.Sleep(50 * time.Millisecond) {
		var here int64
		if here, err = queryValue[int64](ctx, p.primary.DSN("ids"), query); err == nil && here >= there+500 {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("the row is at %d, and at %d on the replica, after %v", here, there, fetchTimeout)
		}
	}
	return err
}

// fetchTimeout is the timeout of waitForLostRanges.
const fetchTimeout = time.Minute

// failOver kills the primary, makes the replica the new primary, and starts three more programs.
func (p *pane) failOver(ctx context.Context) error {
	if err := p.primary.Kill9(); err != nil {
		return err
	}
	if err := execute(ctx, p.replica, "STOP SLAVE", "RESET SLAVE ALL", "SET GLOBAL read_only=0"); err != nil {
		return err
	}
	now := time.Now()
	p.promoted.Store(&now)
	p.balancer.Switch(p.replica.Addr())
	p.balancer.Cut()
	p.idle.Store(false)
	return p.start(ctx)
}

// stop ends the programs.
func (p *pane) stop() error {
	p.end()
	p.running.Wait()
	return nil
}

// countDuplicates returns how many ids are in both databases of the shop.
func (p *pane) countDuplicates(ctx context.Context) (int64, error) {
	return queryValue[int64](ctx, p.dsns[0], fmt.Sprintf("SELECT COUNT(*) FROM shop_%t_0.orders JOIN shop_%t_1.orders USING (id)", p.marked, p.marked))
}

// execute runs statements on one connection to a server.
func execute(ctx context.Context, server *mysqltest.Server, texts ...string) error {
	db, err := sql.Open("mysql", server.DSN(""))
	if err != nil {
		return err
	}
	defer db.Close()
	db.SetMaxOpenConns(1) // for USE
	for _, text := range texts {
		if _, err := db.ExecContext(ctx, text); err != nil {
			return fmt.Errorf("%s: %w", text, err)
		}
	}
	return nil
}

// queryValue reads one value.
func queryValue[T any](ctx context.Context, dsn, query string) (value T, err error) {
	db, err := sql.Open("mysql", dsn)
	if err != nil {
		return value, err
	}
	defer db.Close()
	err = db.QueryRowContext(ctx, query).Scan(&value)
	return value, err
}
