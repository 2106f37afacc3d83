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
	"strings"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/mysqlerr"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/internal/servererr"
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

// identity names the server that answers, or the cluster where a fail-over
// inside it loses nothing. A server that does not flush each commit is another
// one after each start, which may have lost the last takes.
func (s *slots) identity(ctx context.Context) (string, error) {
	const losesCommits = "@@global.innodb_flush_log_at_trx_commit <> 1 OR @@global.log_bin AND @@global.sync_binlog <> 1"
	var (
		autocommit, galera, loses bool
		server, group, cluster    string
	)
	ask := func(what string, into ...any) error { return s.ask(ctx, what, into...) }
	unknown := func(err error) bool { return servererr.Is(err, servererr.UnknownVariable) }
	status := "performance_schema.global_status"
	err := ask("@@autocommit, @@server_uuid, "+losesCommits, &autocommit, &server, &loses)
	if unknown(err) { // MariaDB
		status = "information_schema.GLOBAL_STATUS"
		err = ask("@@autocommit, CONCAT(@@server_id, '@', @@hostname, ':', @@port), @@global.wsrep_on, "+losesCommits, &autocommit, &server, &galera, &loses)
	} else if err == nil {
		if err = ask("COALESCE(@@group_replication_group_name, '')", &group); err == nil || unknown(err) {
			err = ask("@@global.wsrep_on", &galera) // Percona XtraDB Cluster
		}
		if unknown(err) {
			err = nil
		}
	}
	if err == nil && galera { // if it has a provider; without, there is no cluster
		var name string
		err = s.db.QueryRowContext(ctx, "SHOW GLOBAL STATUS LIKE 'wsrep_cluster_state_uuid'").Scan(&name, &cluster)
	}
	switch {
	case err != nil:
		return "", s.explained(err)
	case !autocommit:
		return "", errAutocommit
	case group != "":
		return "group " + group, nil
	case cluster != "":
		return "galera " + cluster, nil
	case !loses:
		return "server " + server, nil
	}
	s.warn.Do(func() {
		s.log.Warn("leafsql: this server may lose its last commits in a crash, so that after each start of it a process that starts waits for its worker id; set innodb_flush_log_at_trx_commit=1, and sync_binlog=1 where there is a binlog", "registry", s.name)
	})
	start, err := s.started(ctx, status)
	return fmt.Sprintf("server %s started at %d", server, start), err
}

// ask locks, if nothing, so that proxies ask the primary.
func (s *slots) ask(ctx context.Context, what string, into ...any) error {
	return s.db.QueryRowContext(ctx, "SELECT "+what+" FOR UPDATE").Scan(into...)
}

// started is the second in which the server was started, as the server recorded it:
// both times are of the statement's start. The second has to be over, so that a server
// that loses a take is not started again in the same one. An uptime below 0, of a clock
// that was set back, comes as 2^64 more.
func (s *slots) started(ctx context.Context, status string) (int64, error) {
	for {
		var (
			now    int64
			uptime uint64
		)
		err := s.ask(ctx, "UNIX_TIMESTAMP(), (SELECT VARIABLE_VALUE FROM "+status+" WHERE VARIABLE_NAME = 'Uptime')", &now, &uptime)
		if err != nil || uptime > 0 {
			return now - int64(uptime), err
		}
		select {
		case <-ctx.Done(): // of which the next question's error tells
		case <-time.After(100 * time.Millisecond):
		}
	}
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
