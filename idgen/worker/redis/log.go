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

// go-redis has one logger for the whole process, which writes to standard error. What this
// package's clients say there is in the errors of worker ids already. So until the
// application sets a logger of its own (redis.SetLogger), a quiet one leaves it out, and
// writes what others' clients say as go-redis would.
func init() {
	redis.SetLogger(quiet{log.New(os.Stderr, "redis: ", log.LstdFlags|log.Lshortfile)})
}

type quiet struct{ others *log.Logger }

func (q quiet) Printf(_ context.Context, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if !slices.ContainsFunc(args, isOurs) && !(sentinels.Load() && strings.Contains(line, "sentinel")) {
		q.others.Output(3, line) // where go-redis says it
	}
}

// sentinels is whether a source in this process has asked Sentinels. Their lines do not say
// whose they are.
var sentinels atomic.Bool

// A dialError is that of a connection that this package wanted.
type dialError struct{ error }

func (e dialError) Unwrap() error { return e.error }

func isOurs(arg any) bool {
	err, ok := arg.(error)
	if !ok {
		return false
	}
	_, ok = errors.AsType[dialError](err)
	return ok
}

type dialer = func(ctx context.Context, network, address string) (net.Conn, error)

// marked is a dialer whose errors are dialErrors.
func marked(dial dialer) dialer {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		c, err := dial(ctx, network, address)
		if err != nil {
			return nil, dialError{err}
		}
		return c, nil
	}
}
