// Package etcd leases worker ids through etcd. Applications import it for its
// side effect and name it in the DSN:
//
//	import _ "github.com/leafsql/leafsql/idgen/worker/etcd"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafWorker=etcd(h1:2379,h2:2379,h3:2379)")
//
// The servers are members of one cluster. Parameters of the DSN, all optional,
// are leafEtcdUsername and leafEtcdPassword; leafEtcdTLS (true, or skip-verify);
// leafEtcdCA, leafEtcdCert and leafEtcdKey, the PEM files for TLS; and
// leafEtcdPrefix (default leafsql), with which several registries can share a
// cluster. Config has the same settings in Go. The user needs the right to read and
// write the keys that begin with the prefix and a slash.
//
// Every worker id is one key, leafsql/worker/<n>. It is changed only by
// compare-and-set: a transaction that compares its revision and value.
// leafsql/registry is the registry's own key. These keys have no etcd lease,
// because an etcd lease ends by the cluster's clock. The keys must not be edited or deleted
// while processes run. A process that holds a worker id writes once per sixth of the lease
// and reads nothing.
//
// A write that etcd has acknowledged is stored on a majority of its members, so no
// write is lost if the leader fails. A registry is identified by the cluster's id and a random key, which a
// wiped cluster lacks. Both remain the same if a snapshot is restored, or
// if --force-new-cluster is used on a member that lags: stop the writers two
// minutes before you do either. Clients cannot read etcd's clock. So a process with a
// clock far ahead takes worker ids that others hold, and these worker ids are blocked until the
// other clocks reach its time.
//
// The package does not accept a client of the application, since a client that retries writes
// by itself is not safe.
package etcd

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.uber.org/zap"
	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/setting"
)

func init() { worker.Register("etcd", openDSN) }

func openDSN(address string, opts worker.Options) (func(context.Context) (worker.Source, error), error) {
	s := setting.New("Etcd", opts)
	cfg := Config{
		Username: s.Text("Username"), Password: s.Text("Password"), Prefix: s.Text("Prefix"),
		TLS: s.TLS(), Servers: s.Servers(address, "2379"),
	}
	if err := s.Err(); err != nil {
		return nil, err
	}
	return func(context.Context) (worker.Source, error) { return Open(cfg) }, nil
}

// Config configures Open. Fields other than Servers may be zero.
type Config struct {
	Servers []string // host:port, members of one cluster

	Username, Password string
	TLS                *tls.Config // nil: no TLS

	Prefix string // prefix of the keys; "" means leafsql
}

// Open returns the source. With a user name it logs in. It returns the client's error, or an error that
// wraps context.DeadlineExceeded if no server answers within 5 s. Without a user name it sends nothing
// before a worker id is requested.
func Open(cfg Config) (worker.Source, error) {
	if len(cfg.Servers) == 0 {
		return worker.Source{}, errors.New("leafsql: etcd: no server; write for example etcd(h1:2379,h2:2379)")
	}
	scheme := "http://"
	if cfg.TLS != nil {
		scheme = "https://"
	}
	endpoints := make([]string, len(cfg.Servers))
	for i, s := range cfg.Servers {
		endpoints[i] = scheme + s
	}
	client, err := clientv3.New(clientv3.Config{
		Endpoints: endpoints, Username: cfg.Username, Password: cfg.Password, TLS: cfg.TLS,
		DialTimeout:          loginTimeout, // for logins, which would wait forever otherwise
		DialKeepAliveTime:    10 * time.Second,
		DialKeepAliveTimeout: callTimeout,
		MaxUnaryRetries:      1, // number of attempts; 1, so that no write is sent twice
		DialOptions:          []grpc.DialOption{grpc.WithConnectParams(connectParams)},
		Logger:               zap.NewNop(),
	})
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no answer to the login within %v, check the address, leafEtcdTLS and leafEtcdCA: %w", loginTimeout, err)
	}
	if err != nil {
		return worker.Source{}, fmt.Errorf("leafsql: etcd %s: %w", strings.Join(cfg.Servers, ","), err)
	}
	prefix := cmp.Or(cfg.Prefix, "leafsql")
	r := &registry{client: client, prefix: prefix}
	return worker.Source{
		Slots:    r,
		Name:     "etcd " + strings.Join(cfg.Servers, ",") + ", prefix " + prefix,
		Identity: r.identity,
		Close:    client.Close,
	}, nil
}

const (
	loginTimeout = 5 * time.Second

	// callTimeout is the timeout of one call. After the leader has died, other servers answer only after
	// 7 s; a frozen server never answers. After the timeout another server is tried.
	callTimeout = 2 * time.Second
)

// connectParams suits servers that are starting or frozen. By default gRPC waits 20 s for a server that accepts
// the connection and sends nothing, and up to two minutes between attempts.
var connectParams = grpc.ConnectParams{
	Backoff:           backoff.Config{BaseDelay: 100 * time.Millisecond, Multiplier: 1.6, Jitter: 0.2, MaxDelay: 3 * time.Second},
	MinConnectTimeout: 3 * time.Second,
}

// identity returns the cluster's id. The random part of the registry's identity is in the registry's document.
func (r *registry) identity(ctx context.Context) (string, error) {
	resp, err := r.read(ctx, r.key(worker.RegistrySlot))
	if err != nil {
		return "", err
	}
	return strconv.FormatUint(resp.Header.ClusterId, 16), nil
}
