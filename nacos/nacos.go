// Package nacos leases worker ids through a Nacos registry. Applications
// import it for its effect and name it in the DSN:
//
//	import _ "github.com/leafsql/leafsql/nacos"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake"+
//		"&leafWorker=nacos(n1:8848,n2:8848)&leafNacosNamespace=leafsql")
//
// Parameters of the DSN, all optional, are leafNacosNamespace (the id, not the
// name), leafNacosGroup, leafNacosService; leafNacosUsername and
// leafNacosPassword; leafNacosIP, leafNacosPort and leafNacosCluster, with which
// the process shows in the console; leafNacosGRPCPort and leafNacosContextPath
// where they are not Nacos' own; leafNacosTLS (true, or skip-verify), which
// leafNacosCA, leafNacosCert and leafNacosKey name PEM files for, and
// leafNacosPlainHTTP=true where only gRPC has TLS. Config says the same in Go,
// and takes the SDK's clients of a service that is registered already.
//
// On Nacos 2 and 3 every worker id is one config document,
// "<service>.worker.<n>", that is changed by compare-and-set alone; the lease
// is package worker's. Beside it each holder is a persistent instance of the
// service, with its worker id in the metadata, for people who look at the
// console. Nothing depends on the instances: what they show may be stale or
// edited. A server whose compare-and-set does not compare (2.0.x) is found out
// and refused, at the start and whenever the process goes on to another. The
// servers are to be of one cluster: a worker id that was taken in one is not
// renewed in another, nor in one that came back without its documents, but lost
// when its bound is over.
//
// On Nacos 1.4.1 to 1.4.8, which has no compare-and-set, the worker id is the
// integer instance id that the server gives a persistent instance registered
// with preserved.instance.id.generator=snowflake. Those servers give one id to
// several instances that register at once, so each id is verified for some
// seconds and guarded by the same documents; that is the best such a server
// allows, and a warning says so. Versions before 1.4.1 are refused.
//
// A namespace of its own is best: in 3.x the default one is kept under two
// names at once, and now and then refuses writes for some seconds.
//
// The package does not discover services, does not read configuration, and
// does not create namespaces. It starts no logger of the SDK's, writes no
// file, and leaves no goroutine or socket behind when the lease is closed.
package nacos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

func init() { worker.Register("nacos", openDSN) }

func openDSN(ctx context.Context, address string, opts worker.Options) (worker.Source, error) {
	cfg, err := parse(address, opts)
	if err != nil {
		return worker.Source{}, err
	}
	return Open(ctx, cfg)
}

// UnusableError says why a server can't be a registry of worker ids, however
// often it is asked.
type UnusableError struct {
	Servers string
	Reason  string
}

func (e *UnusableError) Error() string {
	return fmt.Sprintf("leafsql: Nacos at %s can't hold worker ids: %s; use Nacos 2.3 or later, or another source of worker ids", e.Servers, e.Reason)
}

var errClosed = errors.New("leafsql: the Nacos source of worker ids was closed")

// openTime bounds what Open waits for servers that do not answer.
const openTime = 10 * time.Second

// Open gives the source that a worker id is leased from. A server that answers
// and can't be used is an error. One that does not answer yet is not: it is
// asked again when a worker id is wanted.
func Open(ctx context.Context, cfg Config) (worker.Source, error) {
	if err := cfg.complete(); err != nil {
		return worker.Source{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, openTime)
	defer cancel()
	if cfg.ConfigClient != nil {
		return modern(ctx, cfg, given(cfg))
	}
	w := newWeb(cfg)
	c := newCluster(cfg, w)
	if _, err := c.connection(ctx); err != nil {
		// Either nobody is there, or the servers are from before gRPC.
		if version, found := w.version(ctx); found && !atLeast(version, 2, 0, 0) {
			c.close()
			return old(cfg, w, version)
		}
	}
	return modern(ctx, cfg, services{configs: c, names: c, close: func() { c.close(); w.close() }})
}

// old opens the source on servers that have HTTP alone.
func old(cfg Config, w *web, version string) (worker.Source, error) {
	if atLeast(version, 1, 4, 1) {
		return newLegacy(cfg, w).source(), nil
	}
	w.close()
	return worker.Source{}, &UnusableError{Servers: cfg.String(), Reason: "it is version " + version + ", whose instance ids change when an instance registers again"}
}

// atLeast reports whether a version is at least major.minor.patch.
func atLeast(version string, major, minor, patch int) bool {
	var a, b, c int
	fmt.Sscanf(version, "%d.%d.%d", &a, &b, &c)
	return cmp.Or(cmp.Compare(a, major), cmp.Compare(b, minor), cmp.Compare(c, patch)) >= 0
}

// services are the two of a Nacos, however they are reached.
type services struct {
	configs configs
	names   naming // nil: nothing is shown in the console
	close   func()
}

func given(cfg Config) services {
	s := services{configs: &sdkConfig{client: cfg.ConfigClient, group: cfg.Group, service: cfg.Service}, close: func() {}}
	if cfg.NamingClient != nil {
		s.names = &sdkNaming{client: cfg.NamingClient, service: cfg.Service, group: cfg.Group}
	}
	return s
}

// modern opens the source on servers with compare-and-set.
func modern(ctx context.Context, cfg Config, s services) (worker.Source, error) {
	r := &registry{configs: s.configs, service: cfg.Service, servers: cfg.String(), stop: s.close, written: make(map[int]written)}
	src := worker.Source{Slots: r}
	if s.names != nil {
		p := &presence{names: s.names, self: cfg.Instance, log: cfg.Logger}
		src.Last, src.Held = p.last, p.held
	}
	if err := r.configs.ready(ctx); isFinal(err) {
		r.stop()
		return worker.Source{}, err
	}
	return src, nil
}

// isFinal reports whether asking again would not help.
func isFinal(err error) bool {
	if _, ok := errors.AsType[*UnusableError](err); ok {
		return true
	}
	if _, ok := errors.AsType[*LoginError](err); ok {
		return true
	}
	return isCode(err, codeForbidden)
}
