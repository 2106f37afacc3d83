package tagtable

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"math"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/internal/mysqlerr"
)

// Pauses between attempts: doubled from MinRetry to MaxRetry, each shortened by up to a half at random.
// Concurrent writers of one row of a Galera cluster need more than a few quick attempts.
const MinRetry, MaxRetry = 2 * time.Millisecond, 250 * time.Millisecond

const (
	RetryTime      = 5 * time.Second // duration of the attempts if the context has no deadline
	BriefRetryTime = 2 * time.Second // duration of the attempts while all answers have RetryBriefly set
)

// Error describes why ids cannot be taken from a row in the present state of the row or its table, and the fix.
type Error struct{ Reason, Fix string }

func (e *Error) Error() string { return e.Reason + "; " + e.Fix }

// ErrNoRow means that the tag has no row.
var ErrNoRow = errors.New("the tag has no row")

// duplicateRowsError returns the Error of a tag that has more than one row.
func (r *Rows) duplicateRowsError() error {
	return &Error{"the tag has more than one row", "delete all but the row with the highest value and make " + r.Tag + " the primary key"}
}

// Answer is an error of a caller. Like after Error and ErrNoRow, Retry stops, unless RetryBriefly is set.
type Answer struct {
	Err          error
	RetryBriefly bool // retried for BriefRetryTime: a balancer may have chosen a node that has not applied another node's changes yet
}

func (e Answer) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e Answer) Unwrap() error { return e.Err }

// noConnError is the error if the pool gave no connection.
type noConnError struct{ error }

func (e noConnError) Unwrap() error { return e.error }

// errNoInsertID causes another attempt, which uses a transaction.
var errNoInsertID = errors.New("leafsql: the UPDATE of a range returned no insert id")

// Retry runs do, each time on another connection, until it succeeds or fails with an error that is not
// transient. Without a deadline in ctx, it stops after RetryTime. It returns the last error of do, or the
// pool's if there was no connection.
func (r *Rows) Retry(ctx context.Context, do func(*sql.Conn) error) error {
	until := time.Duration(math.MaxInt64)
	if _, limited := ctx.Deadline(); !limited {
		until = RetryTime
	}
	var last error
	began := time.Now()
	since := began // time of the first of the current consecutive answers with RetryBriefly
	for pause := MinRetry; ; pause = min(2*pause, MaxRetry) {
		err := attempt(ctx, r.DB.DB, do)
		answer, _ := errors.AsType[Answer](err)
		if !answer.RetryBriefly {
			since = time.Now()
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && last != nil:
			return last // the last error is more helpful than the context's
		case ctx.Err() != nil || time.Since(began) >= until || time.Since(since) >= retryTimeFor(err):
			return err
		}
		if number, _ := ServerError(err); answer.RetryBriefly || number != 0 { // the context's error is more helpful than a broken connection
			last = err
		}
		select {
		case <-time.After(pause/2 + rand.N(pause/2)):
		case <-ctx.Done():
			return err
		}
	}
}

func attempt(ctx context.Context, db *sql.DB, do func(*sql.Conn) error) error {
	c, err := db.Conn(ctx)
	if err != nil {
		return noConnError{err}
	}
	defer c.Close()
	err = do(c)
	if n, _ := ServerError(err); slices.Contains(mysqlerr.NotWritable, n) {
		Discard(c) // the next connection may lead to another server
	}
	return err
}

// retryTimeFor returns for how long attempts may be repeated after err.
func retryTimeFor(err error) time.Duration {
	answer, isAnswer := errors.AsType[Answer](err)
	_, isError := errors.AsType[*Error](err)
	_, noConn := errors.AsType[noConnError](err)
	number, state := ServerError(err)
	switch {
	case answer.RetryBriefly:
		return BriefRetryTime
	case isAnswer, isError, noConn, errors.Is(err, ErrNoRow):
		return 0
	case number != 0 && !slices.Contains(mysqlerr.Conflicts, number) && !slices.Contains(mysqlerr.NotWritable, number) && !strings.HasPrefix(state, "40"):
		return 0
	}
	// An error that did not come from the server means a broken connection. The statement may have been executed;
	// another attempt takes other ids.
	return math.MaxInt64
}

// ServerError returns the number and SQLSTATE of a server's error, 0 and "" for other errors. It parses the
// message: drivers have no common error type, and this package imports no driver.
func ServerError(err error) (number uint16, state string) {
	if err == nil {
		return 0, ""
	}
	m := errorText.FindStringSubmatch(err.Error())
	if m == nil {
		return 0, ""
	}
	n, _ := strconv.ParseUint(m[1], 10, 16)
	return uint16(n), m[2]
}

// errorText finds the number and the SQLSTATE in "Error 1213 (40001): Deadlock found".
var errorText = regexp.MustCompile(`Error (\d{4,5})(?: \((\w{5})\))?: `)

// NoSuchTableNumber is the number of "Table doesn't exist".
const NoSuchTableNumber = 1146

// Discard makes the pool close the connection, which ends its transaction.
func Discard(c *sql.Conn) {
	c.Raw(func(any) error { return driver.ErrBadConn })
}

// Commit and Rollback end a transaction independently of the session's completion_type: CHAIN would immediately
// open the next transaction, and RELEASE would close the connection.
const (
	Commit   = "COMMIT AND NO CHAIN NO RELEASE"
	Rollback = "ROLLBACK AND NO CHAIN NO RELEASE"
)

// runInTransaction runs do in a transaction. COMMIT and ROLLBACK are sent as text under ctx, because sql.Tx's
// Commit has no context, and a cluster without a majority makes a COMMIT wait forever.
func runInTransaction(ctx context.Context, c *sql.Conn, do func() error) error {
	if _, err := c.ExecContext(ctx, "START TRANSACTION"); err != nil {
		return err
	}
	err := do()
	if err == nil {
		if _, err = c.ExecContext(ctx, Commit); err != nil {
			Discard(c)
		}
	} else if _, rerr := c.ExecContext(ctx, Rollback); rerr != nil {
		Discard(c)
	}
	return err
}
