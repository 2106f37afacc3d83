package mysql

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/mysqlerr"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
	"github.com/leafsql/leafsql/internal/servererr"
)

// slots implements worker.Slots with one row for each slot, the place of a worker id's document. The version of a
// slot is a text with all values of its row. Statements are sent as texts without arguments, so that each takes one
// round trip and is not prepared.
type slots struct {
	db       *sql.DB
	table    string // quoted
	create   bool
	name     string // name of the registry
	log      *slog.Logger
	warnOnce sync.Once // for the warning that commits may be lost

	// requestLock, with a weight of 1, is held by each request. So a search, which reads many slots concurrently,
	// uses only one of the server's connections.
	requestLock *semaphore.Weighted
}

// withTable calls do while it holds requestLock. If s.create is set and the table is missing, it creates the table and calls do
// again.
func (s *slots) withTable(ctx context.Context, do func() error) error {
	if s.requestLock.Acquire(ctx, 1) != nil {
		return context.Cause(ctx)
	}
	defer s.requestLock.Release(1)
	err := do()
	if s.create && servererr.Is(err, servererr.NoSuchTable) {
		if _, err = s.db.ExecContext(ctx, schema.LeafWorker(s.table)); err == nil {
			err = do()
		}
	}
	return s.explain(err)
}

// Get implements worker.Slots.
func (s *slots) Get(ctx context.Context, slot int) (d worker.Doc, v worker.Version, err error) {
	err = s.withTable(ctx, func() error {
		d, v, err = s.read(ctx, slot)
		return err
	})
	return d, v, err
}

// read reads a row. It locks the row, so that proxies that split reads and writes do not use
// a replica. It reads owner as bytes, independent of the connection's character set.
func (s *slots) read(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	var (
		d         worker.Doc
		hw, found int64
	)
	rows, err := s.db.QueryContext(ctx, fmt.Sprintf(
		"SELECT nonce, hw, free, CAST(owner AS BINARY), registry FROM %s WHERE worker_id = %d FOR UPDATE", s.table, slot))
	if err != nil {
		return worker.Doc{}, "", err
	}
	defer rows.Close()
	for ; rows.Next(); found++ {
		if err := rows.Scan(&d.Nonce, &hw, &d.Free, &d.Owner, &d.Registry); err != nil {
			return worker.Doc{}, "", err
		}
	}
	switch err := rows.Err(); {
	case err != nil:
		return worker.Doc{}, "", err
	case found == 0:
		return worker.Doc{}, "", nil
	case found > 1: // two processes could hold the worker id, with one row each
		return worker.Doc{}, "", s.duplicateRowsError(slot, found)
	}
	d.HighWater = time.UnixMilli(hw)
	text := d.Encode()
	if err := d.Decode(text); err != nil {
		return worker.Doc{}, "", &tableError{s.table, "stop the processes that use this worker id, wait two minutes, and delete the row", fmt.Errorf("worker_id %d: %w", slot, errprefix.Trim(err))}
	}
	return d, worker.Version(text), nil
}

// Put implements worker.Slots. A statement in autocommit mode is atomic. If the statement affected one row, this row
// was at the expected version. This is also true with clientFoundRows, which also counts rows that
// were found and not changed.
func (s *slots) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	text := d.Encode()
	var statement string
	if expected == "" {
		statement = s.insert(slot, d)
	} else {
		var was worker.Doc
		if err := was.Decode(string(expected)); err != nil {
			return "", false, &worker.NotWrittenError{Err: err}
		}
		statement = s.update(slot, d, was)
	}
	var rows int64
	err := s.withTable(ctx, func() error {
		res, err := s.db.ExecContext(ctx, statement) // the pool retries it only if it was certainly not sent
		if err == nil {
			rows, err = res.RowsAffected() // waits while another request uses the connection
		}
		return err
	})
	switch {
	case expected == "" && servererr.Is(err, servererr.DuplicateKey), servererr.Is(err, mysqlerr.LostRace...):
		return "", false, nil
	case err != nil:
		return "", false, err
	case rows == 0:
		return "", false, nil
	case rows > 1:
		return "", false, s.duplicateRowsError(slot, rows)
	}
	return worker.Version(text), true, nil
}

// duplicateRowsError returns the error for a table with a key that is not unique.
func (s *slots) duplicateRowsError(slot int, rows int64) error {
	return &tableError{s.table, "delete all but the row with the highest hw, and make worker_id the primary key", fmt.Errorf("it has %d rows for worker_id %d", rows, slot)}
}

func (s *slots) insert(slot int, d worker.Doc) string {
	return fmt.Sprintf("INSERT INTO %s (worker_id, nonce, hw, free, owner, registry) VALUES (%d, %s)",
		s.table, slot, values(d, "%s, %d, %t, %s, %s"))
}

func (s *slots) update(slot int, d, was worker.Doc) string {
	return fmt.Sprintf("UPDATE %s SET %s WHERE worker_id = %d AND %s", s.table,
		values(d, "nonce = %s, hw = %d, free = %t, owner = %s, registry = %s"), slot,
		values(was, "nonce = %s AND hw = %d AND free = %t AND owner = %s AND registry = %s"))
}

// values returns a document's five columns in a format.
func values(d worker.Doc, format string) string {
	return fmt.Sprintf(format, quote.Literal(d.Nonce), max(d.HighWater.UnixMilli(), 0), d.Free, quote.Literal(strings.ToValidUTF8(d.Owner, "?")), quote.Literal(d.Registry))
}
