package tagrow

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

// Pauses between attempts: doubled from the one to the other, each shortened by up to
// a half at random. Writers that meet on one row of a Galera cluster need more than a
// few quick attempts.
const MinRetry, MaxRetry = 2 * time.Millisecond, 250 * time.Millisecond

const (
	RetryTime = 5 * time.Second // how long attempts go on where the context sets no limit
	SoonTime  = 2 * time.Second // and from the first of several answers in a row that are not final
)

// Error says why a row, or its table, cannot give ids as it stands, and what mends it.
type Error struct{ Reason, Fix string }

func (e *Error) Error() string { return e.Reason + "; " + e.Fix }

// ErrNone means that the tag has no row.
var ErrNone = errors.New("the tag has no row")

// twoRows is the Error of a tag that has more than one row.
func (r *Rows) twoRows() error {
	return &Error{"the tag has more than one row", "delete all but the highest and make " + r.Tag + " the primary key"}
}

// Answer is an error of a caller's own that is the row's answer, as Error and ErrNone are:
// no attempt follows.
type Answer struct {
	Err  error
	Soon bool // some do: behind a balancer, the node that answers may not have applied yet what another one told us
}

func (e Answer) Error() string { return e.Err.Error() }
func (e Answer) Unwrap() error { return e.Err }

// noConnError is a failure to get a connection: then the store is away.
type noConnError struct{ error }

func (e noConnError) Unwrap() error { return e.error }

// errNoInsertID asks for another attempt, in a transaction.
var errNoInsertID = errors.New("leafsql: the UPDATE of a range came back without its insert id")

// Retry runs do, each time on a connection of its own choosing, until it works or fails
// with something that does not pass by itself.
func (r *Rows) Retry(ctx context.Context, do func(*sql.Conn) error) error {
	until := time.Duration(math.MaxInt64)
	if _, limited := ctx.Deadline(); !limited {
		until = RetryTime
	}
	var last error
	began := time.Now()
	since := began // when the answers that are not final began to come one after another
	for pause := MinRetry; ; pause = min(2*pause, MaxRetry) {
		err := attempt(ctx, r.DB.DB, do)
		answer, _ := errors.AsType[Answer](err)
		if !answer.Soon {
			since = time.Now()
		}
		switch {
		case err == nil:
			return nil
		case ctx.Err() != nil && last != nil:
			return last // says more than that the time is up
		case ctx.Err() != nil || time.Since(began) >= until || time.Since(since) >= patience(err):
			return err
		}
		if number, _ := ServerError(err); answer.Soon || number != 0 { // a connection that broke says less than that the time is up
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
		Discard(c) // the next one may lead to another server
	}
	return err
}

// patience says for how long another attempt may follow on err.
func patience(err error) time.Duration {
	answer, isAnswer := errors.AsType[Answer](err)
	_, isError := errors.AsType[*Error](err)
	_, noConn := errors.AsType[noConnError](err)
	number, state := ServerError(err)
	switch {
	case answer.Soon:
		return SoonTime
	case isAnswer, isError, noConn, errors.Is(err, ErrNone):
		return 0
	case number != 0 && !slices.Contains(mysqlerr.Conflicts, number) && !slices.Contains(mysqlerr.NotWritable, number) && !strings.HasPrefix(state, "40"):
		return 0
	}
	// What is no server's error is a connection that broke: whether the statement was
	// carried out is unknown, and another attempt takes other ids.
	return math.MaxInt64
}

// ServerError gives the number and SQLSTATE in a server's error, 0 in any other. It
// reads the text: drivers have no type in common, and this package knows none of them.
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

// ErrNoTable is the number of "Table doesn't exist".
const ErrNoTable = 1146

// Discard makes the pool close the connection, with which its transaction ends.
func Discard(c *sql.Conn) {
	c.Raw(func(any) error { return driver.ErrBadConn })
}

// Commit and Rollback end a transaction whatever the session's completion_type is: CHAIN
// would open the next one at once, and RELEASE would close the connection.
const (
	Commit   = "COMMIT AND NO CHAIN NO RELEASE"
	Rollback = "ROLLBACK AND NO CHAIN NO RELEASE"
)

// transaction runs do in a transaction. Its ends are text under ctx, because sql.Tx's
// Commit knows no context, and a cluster without a majority lets a COMMIT wait for ever.
func transaction(ctx context.Context, c *sql.Conn, do func() error) error {
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
