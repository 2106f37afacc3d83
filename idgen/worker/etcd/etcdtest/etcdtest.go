//go:build unix

// Package etcdtest starts real, private etcd servers: a single one, and a cluster of three.
//
//	s := etcdtest.Start(t, etcdtest.Config{Password: "secret"})
//	client, err := clientv3.New(s.ClientConfig())
//	...
//	s.Kill9()
//	s.Start() // with its data; after s.Wipe() without
//
// Each server listens on free ports of 127.0.0.1. It ends with the test process, and its folder is removed. install.sh unpacks
// Debian's server; a missing server fails the test. To cut the network between clients and servers, use package netfault.
//
// If a server or all servers of a cluster are wiped and started again, the cluster id and the member ids do not change, since etcd
// derives them from names and addresses.
package etcdtest

import (
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/leafsql/leafsql/testutil/freeport"
	"github.com/leafsql/leafsql/testutil/process"
	"github.com/leafsql/leafsql/testutil/selfsigned"
)

// Config configures servers. The zero value is a server without a password and without TLS.
type Config struct {
	Password string   // required from clients, which log in as the user root
	TLS      bool     // clients must use TLS
	Args     []string // further options
}

// A Server is an etcd server. Its methods are for one goroutine at a time.
type Server struct {
	*process.Process
	Addr string // 127.0.0.1 and its port

	// With Config.TLS, the paths of a certificate and of its key. Clients trust the certificate and may present it.
	CertFile, KeyFile string

	cfg     Config
	cert    *selfsigned.Certificate
	name    string
	peer    string // address for other members
	cluster string // "new", or "existing" for a member that joins
	members string // all members with their peer addresses
}

// Start starts a single server for one test.
func Start(tb testing.TB, cfg Config) *Server {
	tb.Helper()
	return start(tb, cfg, 1)[0]
}

func start(tb testing.TB, cfg Config, n int) []*Server {
	tb.Helper()
	servers, err := newServers(cfg, n)
	for _, s := range servers {
		s.Finish(tb)
	}
	if err == nil {
		err = process.StartAll(servers...)
	}
	if err == nil && cfg.Password != "" {
		err = servers[0].EnableAuth()
	}
	if err != nil {
		tb.Fatal(err)
	}
	return servers
}

// newServers creates the members of one cluster. With an error it returns the members created so far.
func newServers(cfg Config, n int) (servers []*Server, err error) {
	program, err := process.Find("etcd", "etcd", "idgen/worker/etcd/etcdtest")
	if err != nil {
		return nil, err
	}
	var cert *selfsigned.Certificate
	if cfg.TLS {
		if cert, err = selfsigned.New(); err != nil {
			return nil, err
		}
	}
	port, err := freeport.Find(0, 1, 2, 3, 4, 5)
	if err != nil {
		return nil, err
	}
	addr := func(port int) string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)) }
	var members []string
	for i := range n {
		members = append(members, fmt.Sprintf("n%d=http://%s", i, addr(port+3+i)))
	}
	for i := range n {
		s := &Server{
			Addr: addr(port + i), cfg: cfg, cert: cert,
			name: fmt.Sprintf("n%d", i), peer: "http://" + addr(port+3+i), cluster: "new", members: strings.Join(members, ","),
		}
		s.Process, err = process.New(process.Config{
			Name:    "etcd",
			Command: func(dir string) *exec.Cmd { return program.Command(s.args(dir)...) },
			Ready:   s.healthy,
		})
		if err != nil {
			return servers, err
		}
		servers = append(servers, s)
		if cert != nil {
			if s.CertFile, s.KeyFile, err = cert.Write(s.Dir()); err != nil {
				return servers, err
			}
		}
	}
	return servers, nil
}

func (s *Server) args(dir string) []string {
	args := []string{
		"--name", s.name, "--data-dir", filepath.Join(dir, "data"),
		"--listen-client-urls", s.url(), "--advertise-client-urls", s.url(),
		"--listen-peer-urls", s.peer, "--initial-advertise-peer-urls", s.peer,
		"--initial-cluster", s.members, "--initial-cluster-state", s.cluster, "--initial-cluster-token", "leafsql",
		"--heartbeat-interval", "50", "--election-timeout", "500", // half of the defaults
		"--strict-reconfig-check=false", // members may be replaced in the first seconds too
		"--unsafe-no-fsync",             // kill -9 does not need it, and after a crash of the machine the data is not needed
		"--logger", "zap", "--log-level", "error",
	}
	if s.cert != nil {
		args = append(args, "--cert-file", s.CertFile, "--key-file", s.KeyFile, "--trusted-ca-file", s.CertFile)
	}
	return append(args, s.cfg.Args...)
}

func (s *Server) url() string {
	if s.cert != nil {
		return "https://" + s.Addr
	}
	return "http://" + s.Addr
}

// Wipe removes all data of the server, which must not run. The server then starts as a member of a new cluster, so all members
// of its cluster have to be wiped. [Cluster.Replace] wipes a single member.
func (s *Server) Wipe() error {
	s.cluster = "new"
	return s.Process.Wipe()
}

// healthy returns an error unless the server answers a linearizable read.
func (s *Server) healthy(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url()+"/health", nil)
	if err != nil {
		return err
	}
	transport := &http.Transport{DisableKeepAlives: true}
	if s.cert != nil {
		transport.TLSClientConfig = s.cert.Client()
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	var is struct{ Health string }
	if err := json.NewDecoder(resp.Body).Decode(&is); err != nil || is.Health != "true" {
		return fmt.Errorf("etcdtest: %s does not serve: %q, %w", s.Addr, is.Health, err)
	}
	return nil
}

// ClientConfig returns the configuration of a client.
func (s *Server) ClientConfig() clientv3.Config { return clientConfig(s) }

func clientConfig(servers ...*Server) clientv3.Config {
	first := servers[0]
	c := clientv3.Config{DialTimeout: answerTime} // without a timeout, creating a client with a password may wait forever
	for _, s := range servers {
		c.Endpoints = append(c.Endpoints, s.url())
	}
	if first.cfg.Password != "" {
		c.Username, c.Password = "root", first.cfg.Password
	}
	if first.cert != nil {
		c.TLS = first.cert.Client()
	}
	return c
}

// EnableAuth makes the server and its cluster require Config.Password. Start and StartCluster call it. It has to be called again
// after Wipe, which also removes the users.
func (s *Server) EnableAuth() error {
	return s.with(context.Background(), func(ctx context.Context, c *clientv3.Client) error {
		if _, err := c.UserAdd(ctx, "root", s.cfg.Password); err != nil {
			return err
		}
		if _, err := c.UserGrantRole(ctx, "root", "root"); err != nil {
			return err
		}
		_, err := c.AuthEnable(ctx)
		return err
	})
}

// with calls use with a client that connects to this server only.
func (s *Server) with(ctx context.Context, use func(context.Context, *clientv3.Client) error) error {
	ctx, cancel := context.WithTimeout(ctx, answerTime)
	defer cancel()
	c, err := clientv3.New(s.ClientConfig())
	if err != nil {
		return fmt.Errorf("etcdtest: %s: %w", s.Addr, err)
	}
	defer c.Close()
	if err := use(ctx, c); err != nil {
		return fmt.Errorf("etcdtest: %s: %w", s.Addr, err)
	}
	return nil
}

// answerTime is the timeout of requests to a running server.
const answerTime = 20 * time.Second
