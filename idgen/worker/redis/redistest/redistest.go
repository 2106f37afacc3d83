//go:build unix

// Package redistest starts real, private Redis servers: a single one, a primary with replicas and Sentinels, and a cluster.
//
//	s := redistest.Start(t, redistest.Config{Password: "secret"})
//	client := redis.NewUniversalClient(s.Options())
//	...
//	s.Kill9()
//	s.Start() // with its data, or without it after s.Wipe()
//
// A fail-over that loses an acknowledged write:
//
//	r := redistest.StartReplicated(t, redistest.Config{})
//	client := redis.NewUniversalClient(r.Options())
//	r.CutReplication()
//	client.Incr(ctx, "n") // 1
//	r.FailOver()
//	client.Get(ctx, "n") // redis.Nil
//
// Each server listens on a free port of 127.0.0.1. It ends with the test process, and its folder is removed. Acknowledged writes
// are on disk. install.sh unpacks Debian's server; a missing server fails the test. To cut the network between clients
// and servers, use package netfault.
package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/process"
	"github.com/leafsql/leafsql/testutil/selfsigned"
)

// Config configures servers. The zero value is a server without a password and without TLS.
type Config struct {
	Password string   // required from clients
	User     string   // the user with the password; empty: "default", which clients need not name
	TLS      bool     // clients must use TLS
	Lines    []string // further lines of redis.conf: "maxmemory-policy allkeys-lru"
}

// A Server is a Redis server. Its methods are for one goroutine at a time.
type Server struct {
	*process.Process
	Addr string // 127.0.0.1 and its port

	// With Config.TLS, the paths of a certificate and of its key. Clients trust the certificate and may present it.
	CertFile, KeyFile string

	party party
}

// Start starts a single server for one test.
func Start(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	p, err := newParty(cfg, 0)
	if err != nil {
		tb.Fatal(err)
	}
	s, err := p.newNode(0)
	if err != nil {
		tb.Fatal(err)
	}
	s.Finish(tb)
	if err := s.Start(); err != nil {
		tb.Fatal(err)
	}
	return s
}

// A party holds the settings that the servers of one group have in common.
type party struct {
	cfg  Config
	cert *selfsigned.Certificate // nil without TLS
	port int                     // the first of their ports
}

func newParty(cfg Config, offsets ...int) (p party, err error) {
	p.cfg = cfg
	if p.port, err = freeport.Find(offsets...); err == nil && cfg.TLS {
		p.cert, err = selfsigned.New()
	}
	return p, err
}

// newNode returns a server that stores data. Its port is the group's first port plus offset. The lines come before
// Config.Lines in its configuration.
func (p party) newNode(offset int, lines ...string) (*Server, error) {
	return p.newServer(offset, func(dir string) []string {
		all := []string{
			fmt.Sprintf("dir %q", filepath.Join(dir, "data")),
			"appendonly yes", "appendfsync always", `save ""`, // acknowledged writes are on disk
			"repl-diskless-sync-delay 0", // replicas are synchronized at once
			// Replication has its own user, so that CutReplication can stop it.
			"user replica on >replica +psync +replconf +ping", "masteruser replica", "masterauth replica",
		}
		switch {
		case p.cfg.User != "":
			all = append(all, "user default off", fmt.Sprintf("user %s on >%s ~* &* +@all", p.cfg.User, p.cfg.Password))
		case p.cfg.Password != "":
			all = append(all, "requirepass "+p.cfg.Password)
		}
		return slices.Concat(all, lines, p.cfg.Lines)
	})
}

// newServer returns a server of any kind. Its configuration is a file, to which the server itself may also write.
func (p party) newServer(offset int, lines func(dir string) []string, args ...string) (*Server, error) {
	program, err := process.Find("redis-server", "redis", "idgen/worker/redis/redistest")
	if err != nil {
		return nil, err
	}
	port := p.port + offset
	s := &Server{Addr: net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), party: p}
	s.Process, err = process.New(process.Config{
		Name: "redis",
		Command: func(dir string) *exec.Cmd {
			return program.Command(append([]string{filepath.Join(dir, "redis.conf")}, args...)...)
		},
		Ready: s.ready,
	})
	if err != nil {
		return nil, err
	}
	conf := []string{"bind 127.0.0.1"}
	if p.cert == nil {
		conf = append(conf, fmt.Sprintf("port %d", port))
	} else {
		if s.CertFile, s.KeyFile, err = p.cert.Write(s.Dir()); err != nil {
			return nil, errors.Join(err, s.Stop())
		}
		conf = append(conf, "port 0", fmt.Sprintf("tls-port %d", port), "tls-replication yes", "tls-auth-clients optional",
			fmt.Sprintf("tls-cert-file %q", s.CertFile), fmt.Sprintf("tls-key-file %q", s.KeyFile), fmt.Sprintf("tls-ca-cert-file %q", s.CertFile))
	}
	text := strings.Join(append(conf, lines(s.Dir())...), "\n") + "\n"
	if err := os.WriteFile(filepath.Join(s.Dir(), "redis.conf"), []byte(text), 0o600); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

// Options returns the options of a client.
func (s *Server) Options() *redis.UniversalOptions { return s.party.options(s) }

func (p party) options(servers ...*Server) *redis.UniversalOptions {
	o := &redis.UniversalOptions{Username: p.cfg.User, Password: p.cfg.Password}
	for _, s := range servers {
		o.Addrs = append(o.Addrs, s.Addr)
	}
	if p.cert != nil {
		o.TLSConfig = p.cert.Client()
	}
	return o
}

// FlushAll removes all keys, like an operator's mistake.
func (s *Server) FlushAll() error {
	_, err := s.ask(context.Background(), "FLUSHALL")
	return err
}

func (s *Server) ready(ctx context.Context) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", s.Addr) // the client would log errors until the server has started
	if err != nil {
		return err
	}
	conn.Close()
	_, err = s.ask(ctx, "PING")
	return err
}

// ask runs one command on this server only.
func (s *Server) ask(ctx context.Context, command ...any) (answer any, err error) {
	o := s.Options().Simple()
	o.ContextTimeoutEnabled, o.MaxRetries, o.DialerRetries, o.PoolSize = true, -1, 1, 1
	c := redis.NewClient(o)
	defer c.Close()
	if answer, err = c.Do(ctx, command...).Result(); err != nil {
		err = fmt.Errorf("redistest: %s: %v: %w", s.Addr, command[0], err)
	}
	return answer, err
}
