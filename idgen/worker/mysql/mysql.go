// Package mysql leases worker ids in a table of MySQL or MariaDB. It is what
// mysql-leaf takes where a rule makes snowflakes and no leafWorker is named,
// with the table leaf_worker beside leaf_alloc:
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafCreate=true")
//
// Without the driver it runs on a pool of the caller's:
//
//	open := func(context.Context) (worker.Source, error) {
//		return mysql.Open(db, mysql.Config{Create: true}), nil
//	}
//	ids, err := snowflake.New(snowflake.Leaf, open, worker.Config{})
//
// Give it a pool whose connections are in autocommit, are not held by transactions that
// wait for ids, and lead to the primary. Every worker id is one row, which is changed by
// compare-and-set alone: one UPDATE in autocommit whose WHERE names all that the row held
// when it was read. A process writes once every sixth of the lease and reads nothing. The
// rows are not to be edited or deleted while processes run; owner and update_time are there
// to be looked at.
//
// The rows are trusted as long as the same server gives them. On MySQL a server is known by
// its server_uuid, on MariaDB by its server_id, host name and port. After a fail-over to
// another one, which may lack the last writes, and after a move to another host, the first
// process that starts, however much later, waits for its first id for the lease, a quarter
// of it and 60 s, and so do others until that wait is over; those that run go on. A server
// that may lose its last commits in a crash, by innodb_flush_log_at_trx_commit or
// sync_binlog, counts as another one after each start. A Galera cluster and a group of
// Group Replication, which lose nothing, count as one server. A copy of the server with the
// same identity, such as one restored from an older backup, cannot be noticed: stop the
// writers for two minutes before bringing one in.
//
// Shards must share one table, as they share one leaf_alloc. The package
// creates no database and grants nothing: the user needs SELECT, INSERT and
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

// Config says where the leases are.
type Config struct {
	Table  string // [db.]table, unquoted; "" means leaf_worker
	Create bool   // create the table where it is missing
	Name   string // of the database, for logs and errors, without secrets; "" means MySQL

	Logger *slog.Logger // of warnings; slog.Default()
}

func init() { worker.Register("mysql", openSpec) }

// openSpec is there for the list of names: a spec has no pool.
func openSpec(address string, _ worker.Options) (func(context.Context) (worker.Source, error), error) {
	return nil, fmt.Errorf("leafsql: worker source mysql(%s): only mysql-leaf opens it by name, on its own pool; call mysql.Open with a pool", address)
}

// Open gives the source on a pool, which stays the caller's. Nothing is asked
// before a worker id is wanted.
func Open(db *sql.DB, cfg Config) worker.Source {
	table := cmp.Or(cfg.Table, "leaf_worker")
	s := &slots{
		db: db, table: quote.Table(table), create: cfg.Create, turn: semaphore.NewWeighted(1),
		name: cmp.Or(cfg.Name, "MySQL") + ", table " + table, log: cmp.Or(cfg.Logger, slog.Default()),
	}
	return worker.Source{
		Slots:    s,
		Name:     s.name,
		Identity: s.identity,
		Time:     s.time,
		Last:     s.last,
	}
}

// tableError says that the table can't be used as it is.
type tableError struct {
	Table string // quoted
	Fix   string // out of it
	Err   error  // the server's
}

func (e *tableError) Error() string {
	return fmt.Sprintf("leafsql: table %s of worker ids: %v; %s", e.Table, e.Err, e.Fix)
}

func (e *tableError) Unwrap() error { return e.Err }

// WayOut tells package worker that the text has one.
func (e *tableError) WayOut() string { return e.Fix }

// explained adds the way out to errors that have one.
func (s *slots) explained(err error) error {
	switch {
	case servererr.Is(err, servererr.LoginDenied, servererr.SocketLoginDenied):
		return &tableError{s.table, "correct user and password in the DSN", err}
	case servererr.Is(err, servererr.UnknownDatabase):
		return &tableError{s.table, "create the database, or correct the DSN", err}
	case servererr.Is(err, servererr.NoDatabase):
		return &tableError{s.table, "name its database in the DSN, by leafStore or by leafAllocTable=DATABASE.leaf_alloc", err}
	case servererr.Is(err, servererr.NoSuchTable):
		return &tableError{s.table, "if other writers have one, name its database by leafStore, or their leafWorker; else add leafCreate=true, run leafsql init, or create it: " + strings.Join(strings.Fields(schema.LeafWorker(s.table)), " "), err}
	case servererr.Denied(err):
		return &tableError{s.table, "GRANT SELECT, INSERT, UPDATE on it to this user, with leafCreate also CREATE", err}
	case servererr.Is(err, mysqlerr.NotWritable...):
		return &tableError{s.table, "name a server in the DSN that takes writes, or let this one take them", err}
	}
	return err
}

// identity names the server that answers, or the cluster where a fail-over inside it loses nothing: see package serverid. The
// second of a start has to be over, so that a server that loses a take is not started again in the same one.
func (s *slots) identity(ctx context.Context) (string, error) {
	server, err := serverid.Of(ctx, s.db)
	if err != nil {
		return "", s.explained(err)
	}
	if server.Identity == "" {
		return "unknown", nil
	}
	for {
		var autocommit bool
		var identity string
		var now int64
		switch err := s.ask(ctx, "@@autocommit, "+server.Identity+", UNIX_TIMESTAMP()", &autocommit, &identity, &now); {
		case err != nil:
			return "", s.explained(err)
		case !autocommit:
			return "", errAutocommit
		}
		_, start, loses := strings.Cut(identity, " started at ")
		if loses {
			s.warn.Do(func() {
				s.log.Warn("leafsql: this server may lose its last commits in a crash, so that after each start of it a process that starts waits for its worker id; set innodb_flush_log_at_trx_commit=1, and sync_binlog=1 where there is a binlog", "registry", s.name)
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

// ask locks, if nothing, so that proxies ask the primary.
func (s *slots) ask(ctx context.Context, what string, into ...any) error {
	return s.db.QueryRowContext(ctx, "SELECT "+what+" FOR UPDATE").Scan(into...)
}

// last is the worker id that was given back last by a process of this host, as
// far as a read shows it; one of them where several were within some seconds, so
// that processes that start at once do not meet. A nonce is 32 characters where
// somebody had the slot.
func (s *slots) last(ctx context.Context) (slot int, ok bool) {
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
		if rand.IntN(n) == 0 { // each of n is as likely
			slot, ok = id, true
		}
	}
	return slot, ok
}

// time is the server's clock.
func (s *slots) time(ctx context.Context) (time.Time, error) {
	var us int64
	err := s.db.QueryRowContext(ctx, "SELECT TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))").Scan(&us)
	return time.UnixMicro(us), err
}

// errAutocommit says that what is told true may be rolled back later.
var errAutocommit = &worker.UnusableError{
	Err: errors.New("leafsql: worker source mysql(): the pool's connections are not in autocommit; take autocommit=0 out of its DSN"),
}
