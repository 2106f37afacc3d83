package redis

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"os"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// go-redis has one logger for the whole process, which writes to standard error. The lines of this
// package's clients only repeat errors that are also reported for worker ids. So until the
// application sets its own logger (redis.SetLogger), the logger of this file drops these lines, and
// writes the lines of other clients as go-redis does.
func init() {
	redis.SetLogger(quietLogger{log.New(os.Stderr, "redis: ", log.LstdFlags|log.Lshortfile)})
}

type quietLogger struct{ others *log.Logger }

func (q quietLogger) Printf(_ context.Context, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(args, isDialError) && !(usesSentinels.Load() && strings.Contains(line, "sentinel")) {
		q.others.Output(3, line) // with the file and line in go-redis
	}
}

// usesSentinels is true if a source in this process has used Sentinels. go-redis' lines about
// Sentinels do not name the client.
var usesSentinels atomic.Bool

// A dialError is the error of a connection that this package tried to open.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func isDialError(arg any) bool {
	err, ok := arg.(error)
	if !ok {
		return false
	}
	_, ok = errors.AsType[dialError](err)
	return ok
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// markErrors returns a dialer that wraps the errors of dial in dialErrors.
func markErrors(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, dialError{err}
		}
		return c, nil
	}
}
