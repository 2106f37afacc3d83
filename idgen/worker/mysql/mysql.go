// Package mysql leases worker ids in a table of MySQL or MariaDB. mysql-leaf
// uses it for rules with snowflakes if the DSN has no leafWorker,
// with the table leaf_worker in the database of leaf_alloc:
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafCreate=true")
//
// Without the driver it uses a pool of the caller:
//
//	open := func(context.Context) (worker.Source, error) {
//		return mysql.Open(db, mysql.Config{Create: true}), nil
//	}
//	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
//
// The connections of the pool must be in autocommit mode and lead to the primary. Use a pool whose
// connections are not occupied by transactions that wait for ids. Every worker id is one row, which is changed only by
// compare-and-set: one UPDATE in autocommit mode, with a WHERE that compares all values that were
// read from the row. A process that holds a worker id writes its row about six times per lease, and does not read it
// again. The
// rows must not be edited or deleted while processes run; owner and update_time are
// for operators.
//
// As long as the server is the same, its rows contain all earlier writes. A MySQL server is identified by
// its server_uuid, a MariaDB server by its server_id, host name and port. After a fail-over to
// another server, which may lack the last writes, or after a move to another host, the next
// process to start delays its first id by 60 s plus 1.25 times the lease, however late it starts.
// Other new processes wait until this delay has ended. Running processes continue. A server
// that may lose its last commits in a crash, because of innodb_flush_log_at_trx_commit or
// sync_binlog, counts as another server after each start. A Galera cluster and a group of
// Group Replication, which lose no commits, count as one server. A copy of the server with the
// same identity, such as a copy restored from an older backup, cannot be detected: stop the
// writers two minutes before you start the copy.
//
// Shards must share one table, as they share one leaf_alloc. The package
// does not create the database or grant rights: the user needs SELECT, INSERT and
// UPDATE on the table, and CREATE for Config.Create.
package mysql

import (
	"cmp"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/mysqlerr"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/internal/servererr"
	"github.com/leafsql/leafsql/internal/serverid"
)

// Config configures Open. Its zero value is valid.
type Config struct {
	Table  string // [db.]table, unquoted; "" means leaf_worker
	Create bool   // create the table if it is missing
	Name   string // name of the database in logs and errors, without secrets; "" means MySQL

	Logger *slog.Logger // logs warnings; nil means slog.Default()
}

func init() { worker.Register("mysql", openSpec) }

// openSpec always returns an error, because a source that is given as a string, mysql(…), has no pool. It is registered so that
// mysql is listed as a source.
func openSpec(address string, _ worker.Options) (func(context.Context) (worker.Source, error), error) {
	return nil, fmt.Errorf("leafsql: worker source mysql(%s): only the driver mysql-leaf opens it by name; call mysql.Open with a pool", address)
}

// Open returns the source on a pool. The caller has to close the pool. The source sends nothing
// before a worker id is requested.
func Open(db *sql.DB, cfg Config) worker.Source {
	table := cmp.Or(cfg.Table, "leaf_worker")
	s := &slots{
		db: db, table: quote.Table(table), create: cfg.Create, requestLock: semaphore.NewWeighted(1),
		name: cmp.Or(cfg.Name, "MySQL") + ", table " + table, log: cmp.Or(cfg.Logger, slog.Default()),
	}
	return worker.Source{
		Slots:    s,
		Name:     s.name,
		Identity: s.identity,
		Time:     s.time,
		Last:     s.lastWorker,
	}
}

// tableError is the error for a table that can't be used as it is.
type tableError struct {
	Table string // quoted
	Fix   string // hint
	Err   error  // the server's error
}

func (e *tableError) Error() string {
	return fmt.Sprintf("leafsql: table %s of worker ids: %v; %s", e.Table, e.Err, e.Fix)
}

func (e *tableError) Unwrap() error { return e.Err }

// Hint returns the hint. Package worker adds no hint of its own to errors that have this method.
func (e *tableError) Hint() string { return e.Fix }

// explain returns a *tableError with a hint if there is a hint for err, and otherwise err.
func (s *slots) explain(err error) error {
	switch {
	case servererr.Is(err, servererr.LoginDenied, servererr.SocketLoginDenied):
		return &tableError{s.table, "correct the user and password in leafStore, or in the DSN if leafStore is not set", err}
	case servererr.Is(err, servererr.UnknownDatabase):
		return &tableError{s.table, "create the database, or correct the DSN", err}
	case servererr.Is(err, servererr.NoDatabase):
		return &tableError{s.table, "add the table's database to the DSN, or set leafStore or leafAllocTable=DATABASE.leaf_alloc", err}
	case servererr.Is(err, servererr.NoSuchTable):
		return &tableError{s.table, "if other writers have such a table, set leafStore to its database or leafWorker to theirs; otherwise add leafCreate=true, run leafsql init, or create it: " + strings.Join(strings.Fields(schema.LeafWorker(s.table)), " "), err}
	case servererr.Denied(err):
		return &tableError{s.table, "GRANT SELECT, INSERT, UPDATE on it to this user, with leafCreate also CREATE", err}
	case servererr.Is(err, mysqlerr.NotWritable...):
		return &tableError{s.table, "set the DSN to a server that accepts writes, or make this one writable", err}
	}
	return err
}

// identity returns the identity of the server that answers, or of its cluster if fail-overs in the cluster lose no writes:
// see package serverid. The identity of a server that may lose writes contains the second of its start. identity waits
// until this second has passed. Otherwise a server that was restarted within the second would keep its identity,
// although it may have lost the write by which a worker id was taken.
func (s *slots) identity(ctx context.Context) (string, error) {
	server, err := serverid.Query(ctx, s.db)
	if err != nil {
		return "", s.explain(err)
	}
	expression := cmp.Or(server.Identity, "'unknown'")
	for {
		var autocommit bool
		var identity string
		var now int64
		switch err := s.queryValues(ctx, "@@autocommit, "+expression+", UNIX_TIMESTAMP()", &autocommit, &identity, &now); {
		case err != nil:
			return "", s.explain(err)
		case !autocommit:
			return "", errAutocommit
		}
		_, start, loses := strings.Cut(identity, " started at ")
		if loses {
			s.warnOnce.Do(func() {
				s.log.Warn("leafsql: this server may lose its last commits in a crash, so processes that start after a restart of it wait for a worker id; set innodb_flush_log_at_trx_commit=1, and sync_binlog=1 if it has a binlog", "registry", s.name)
			})
		}
		if start != strconv.FormatInt(now, 10) {
			return identity, nil
		}
		select {
		case <-ctx.Done(): // the next query returns the error
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// queryValues reads values with FOR UPDATE, so that proxies send the query to the primary.
func (s *slots) queryValues(ctx context.Context, what string, into ...any) error {
	return s.db.QueryRowContext(ctx, "SELECT "+what+" FOR UPDATE").Scan(into...)
}

// lastWorker returns the worker id that a process of this host released last, according to a
// read that may be stale. If several worker ids were released within some seconds, it chooses one of them at random, so
// that processes that start together choose different ones. The nonce in the row of a worker id that was
// used has 32 characters.
func (s *slots) lastWorker(ctx context.Context) (slot int, ok bool) {
	host, err := os.Hostname()
	if err != nil {
		return 0, false
	}
	rows, err := s.db.QueryContext(ctx, fmt.Sprintf(
		"SELECT worker_id, hw FROM %s WHERE worker_id >= 0 AND free AND CHAR_LENGTH(nonce) = 32 AND SUBSTRING_INDEX(owner, ':', 1) = %s ORDER BY hw DESC LIMIT 100",
		s.table, quote.Literal(host)))
	if err != nil {
		return 0, false
	}
	defer rows.Close()
	var latest int64
	for n := 1; rows.Next(); n++ {
		var (
			id int
			hw int64
		)
		if rows.Scan(&id, &hw) != nil {
			break
		}
		if latest = max(latest, hw); latest-hw > 10_000 {
			break
		}
		if rand.IntN(n) == 0 { // each of the n has the same probability
			slot, ok = id, true
		}
	}
	return slot, ok
}

// time returns the server's time.
func (s *slots) time(ctx context.Context) (time.Time, error) {
	var us int64
	err := s.db.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&us)
	return time.UnixMicro(us), err
}

// errAutocommit is returned if an acknowledged write could still be rolled back.
var errAutocommit = &worker.UnusableError{
	Err: errors.New("leafsql: worker source mysql(): the pool's connections are not in autocommit mode; remove autocommit=0 from its DSN"),
}
