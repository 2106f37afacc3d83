package proxyserver

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/servererr"
)

// Interval and timeout of probes. Many balancers give up on /readyz after one second, so the timeout is shorter.
const (
	probeInterval = time.Second
	probeTimeout  = 700 * time.Millisecond
)

// A probe is the result of the last ping as leafsql's account.
type probe struct {
	mu       sync.Mutex
	at       time.Time
	err      error
	isLogged bool // err was logged
}

// probeServer pings the server, or returns the last result if that is younger than probeInterval. It logs changes.
func (s *Server) probeServer() error {
	p := &s.probe
	p.mu.Lock()
	defer p.mu.Unlock()
	if time.Since(p.at) < probeInterval {
		return p.err
	}
	ctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
	defer cancel()
	p.err = s.proxy.Ping(ctx)
	hint := databases.Hint(p.err)
	if p.err == nil {
		p.err, hint = s.pingServer(ctx), "check that the server runs, and the address of -server"
	}
	p.at = time.Now()
	switch {
	case p.err != nil && !p.isLogged:
		s.log.Warn("leafsql: the server does not answer leafsql's account", "err", p.err, "hint", hint)
	case p.err == nil && p.isLogged:
		s.log.Info("leafsql: the server answers leafsql's account again")
		s.warnIncrement(ctx) // it may be another server now
	}
	p.isLogged = p.err != nil
	return p.err
}

// watch pings the server periodically, so that the log and the page are up to date even if nothing requests
// /readyz.
func (s *Server) watch(ctx context.Context) {
	tick := time.NewTicker(probeInterval)
	defer tick.Stop()
	for {
		s.probeServer()
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// configurationHint returns a hint, with its separator, for an error that lasts until the DSN, the account or
// the database is corrected. wrong is false for other errors, such as an unreachable server.
func configurationHint(err error) (hint string, wrong bool) {
	_, config := errors.AsType[*driver.ConfigError](err)
	switch {
	case config: // the error contains a hint
		return "", true
	case servererr.Is(err, servererr.NoSuchTable):
		return "; create the table with leafsql init or leafCreate=true in the DSN", true
	case databases.IsDenied(err):
		return "; GRANT SELECT, UPDATE on leaf_alloc to this user", true
	case servererr.Is(err, servererr.LoginDenied, servererr.SocketLoginDenied, servererr.UnknownDatabase, servererr.NoDatabase):
		return "; " + databases.Hint(err), true
	}
	return "", false
}
