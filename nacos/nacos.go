// Package nacos leases worker ids through a Nacos registry. Applications
// import it for its side effect and name it in the DSN:
//
//	import _ "github.com/leafsql/leafsql/nacos"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake"+
//		"&leafWorker=nacos(n1:8848,n2:8848)&leafNacosNamespace=leafsql")
//
// Parameters of the DSN, all optional, are leafNacosNamespace (the id, not the name),
// leafNacosGroup, leafNacosService; leafNacosUsername and leafNacosPassword; leafNacosIP,
// leafNacosPort and leafNacosCluster, the address of the process in the console;
// leafNacosGRPCPort and leafNacosContextPath, if they differ from Nacos' defaults;
// leafNacosTLS (true, or skip-verify); leafNacosCA, leafNacosCert and leafNacosKey, the
// PEM files for TLS; and leafNacosPlainHTTP=true if only gRPC has TLS. Config has the
// same settings in Go. It also accepts the SDK clients of an application that is
// registered in Nacos already.
//
// Use a separate namespace for the registry: it has a document for each worker id, which
// would fill other lists and quotas. In 3.x the default namespace is also stored under
// two names at once, and now and then refuses writes for some seconds. Nacos accepts a
// namespace that does not exist: leafsql then creates a new registry there, which no
// console shows. A warning in the log names the place of a new registry.
//
// On Nacos 2.3 and 3 every worker id is one config document,
// "<service>.worker.<n>". It is changed only by compare-and-set; package
// worker makes the leases. "<service>.registry" is the registry's own document,
// and "<service>.probe" is written to check servers. None of these documents may
// be edited or deleted while processes run. In addition, each process with a worker id is a
// persistent instance of the service, with its worker id in the metadata, so that
// operators see it in the console. Nothing depends on these instances: they may be
// stale or edited. It is normal that Nacos shows them as unhealthy, unless a server listens on
// the port.
//
// A server that ignores the comparison in a compare-and-set (2.0.x) is detected and refused, at the
// start and whenever the process changes to another server. All servers must belong to
// one cluster, which is checked at the start. A worker id that was taken in one cluster
// is never renewed in another; it is lost when its lease ends.
//
// Nacos 1.4.1 to 1.4.8 has no compare-and-set. There the worker id is the
// integer instance id that the server gives a persistent instance. These servers
// may give one id to several instances that register at once. So each id is
// verified for some seconds, and the same documents protect it. Worker ids are then not guaranteed
// to be unique, and a warning is logged. A process that takes a worker id
// which was never used waits for 60 s plus 1.25 times the lease. Versions before
// 1.4.1 are refused.
//
// The package does not discover services, does not read configuration, and
// does not create namespaces. It does not start the SDK's logger or write
// files. After the source is closed, no goroutine runs and no socket is open.
package nacos

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/spec"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/nacos14"
)

func init() { worker.Register("nacos", openDSN) }

func openDSN(address string, opts worker.Options) (func(context.Context) (worker.Source, error), error) {
	cfg, err := parse(address, opts)
	if err == nil {
		checked := cfg
		err = checked.complete()
	}
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context) (worker.Source, error) {
		own := cfg // the function may be called concurrently
		own.readOnly = spec.IsReadOnly(ctx)
		return Open(ctx, own)
	}, nil
}

var errClosed = errors.New("leafsql: the Nacos source of worker ids was closed")

// openTime is the longest time for which Open waits for servers that do not answer.
const openTime = 10 * time.Second

// Open returns a source of worker ids; the caller, usually a worker.Keeper,
// closes it. The error is a worker.UnusableError if the servers or the user's
// rights are not sufficient. Other errors mean that cfg is invalid, or that no
// server answers; a worker.Keeper then calls Open again.
func Open(ctx context.Context, cfg Config) (worker.Source, error) {
	if err := cfg.complete(); err != nil {
		return worker.Source{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if cfg.ConfigClient != nil {
		var err error
		if cfg.Namespace, err = checkClient(cfg.ConfigClient); err != nil {
			return worker.Source{}, err
		}
		s := services{configs: &sdkConfig{client: cfg.ConfigClient, group: cfg.Group, service: cfg.Service, namespace: cfg.Namespace}, close: func() error { return nil }}
		if cfg.NamingClient != nil {
			s.names = &sdkNaming{client: cfg.NamingClient, service: cfg.Service, group: cfg.Group}
		}
		return s.source(ctx, cfg)
	}
	h := api.NewHTTP(cfg.urls(), cfg.TLS, cfg.Username, cfg.Password)
	c := newCluster(cfg, h)
	end := func() error { c.close(); h.Close(); return nil }
	_, err := c.connection(ctx)
	switch {
	case err != nil:
		// Either no server answers, or the servers are older than gRPC, or the time
		// is up.
		version, found := h.Version(ctx)
		if !found {
			end()
			return worker.Source{}, err
		}
		if strings.HasPrefix(version, "1.") {
			c.close()
			return nacos14.Open(nacos14.Config{
				HTTP: h, Version: version, Servers: cfg.String(), Name: cfg.name(), Namespace: cfg.Namespace, Group: cfg.Group,
				Service: cfg.Service, Logger: cfg.Logger,
				Self: api.Instance{IP: cfg.Instance.IP, Port: cfg.Instance.Port, ClusterName: cfg.Instance.Cluster, Metadata: cfg.Instance.Metadata},
			})
		}
	case len(c.targets) > 1:
		if err := c.checkCluster(ctx); err != nil {
			end()
			return worker.Source{}, err
		}
	}
	return services{configs: c, names: c, time: h.Time, close: end}.source(ctx, cfg)
}

// services has the clients of Nacos' config service and naming service. The config service stores documents; the
// naming service has the list of instances that the console shows.
type services struct {
	configs configs
	names   naming // nil: no entry in the console
	time    func(context.Context) (time.Time, error)
	close   func() error
}

// source returns the source for servers with compare-and-set.
func (s services) source(ctx context.Context, cfg Config) (worker.Source, error) {
	if err := s.configs.ready(ctx); isFinal(err) {
		s.close()
		return worker.Source{}, err
	}
	r := &registry{configs: s.configs, service: cfg.Service, servers: cfg.String(), readOnly: cfg.readOnly, written: make(map[int]writtenVersions)}
	src := worker.Source{Slots: r, Name: cfg.name(), Inserts: true, Time: s.time, Close: s.close}
	if s.names != nil {
		p := &presence{names: s.names, slots: r, self: cfg.Instance, log: cfg.Logger}
		src.Last, src.OnChange = p.lastWorker, p.onChange
	}
	return src, nil
}

// isFinal reports whether a retry would not help.
func isFinal(err error) bool {
	_, unusable := errors.AsType[*worker.UnusableError](err)
	return unusable
}
