package nacos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/nacos/internal/api"
)

// dialTime is the timeout of a connection attempt, and of the checks on a new
// connection.
const dialTime = 2 * time.Second

// cluster is a gRPC client of several servers. It uses one server at a time, and changes to
// another server if this server fails. It connects when it is first needed. Checks
// of one server prove nothing about the next server, so each new link (the connection to one server)
// is checked before any other request.
type cluster struct {
	targets   []string // host:port of gRPC
	tls       *tls.Config
	namespace string
	group     string
	service   string
	readOnly  bool      // write nothing to check servers
	http      *api.HTTP // for logins

	dialing *semaphore.Weighted // a mutex that respects contexts

	mu           sync.Mutex
	link         *link
	next         int             // the target to try first
	slot         int             // the worker id held, or held last
	heldRegistry string          // identity of the registry in which the worker id is held
	heldUpTo     time.Time       // time until which the worker id is held; until then, servers of new links must have heldRegistry
	shownBy      map[string]bool // targets that had heldRegistry
	lastDrop     time.Time       // time at which a link was last dropped because of a server's errors
	closed       bool
}

func newCluster(cfg Config, h *api.HTTP) *cluster {
	c := &cluster{
		tls: cfg.TLS, namespace: cfg.Namespace, group: cfg.Group, service: cfg.Service, readOnly: cfg.readOnly,
		http: h, dialing: semaphore.NewWeighted(1), next: rand.IntN(len(cfg.Servers)), shownBy: make(map[string]bool),
	}
	for _, s := range cfg.Servers {
		c.targets = append(c.targets, s.grpc())
	}
	return c
}

// current returns the link in use, or nil if there is none.
func (c *cluster) current() (*link, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return nil, errClosed
	}
	if c.link != nil {
		select {
		case <-c.link.ended:
			c.link.close()
			c.link = nil
		default:
		}
	}
	return c.link, nil
}

// connection returns the link in use, or opens a new one.
func (c *cluster) connection(ctx context.Context) (*link, error) {
	if l, err := c.current(); l != nil || err != nil {
		return l, err
	}
	if c.dialing.Acquire(ctx, 1) != nil {
		return nil, context.Cause(ctx)
	}
	defer c.dialing.Release(1)
	if l, err := c.current(); l != nil || err != nil {
		return l, err
	}
	if _, err := c.http.Token(ctx); err != nil { // without a token every server would fail
		return nil, err
	}
	var failed []error
	var final error
	for range c.targets {
		target := c.targets[c.next]
		c.next = (c.next + 1) % len(c.targets)
		l, err := c.connectTo(ctx, target)
		if err == nil {
			return l, c.setLink(l)
		}
		failed = append(failed, fmt.Errorf("%s: %w", target, err))
		if isFinal(err) {
			final = err
		}
	}
	if final != nil {
		return nil, final
	}
	return nil, fmt.Errorf("no Nacos server can be used over gRPC (port of HTTP + 1000, or leafNacosGRPCPort): %w", errors.Join(failed...))
}

// connectTo connects to one server, checks it, and returns the link.
func (c *cluster) connectTo(ctx context.Context, target string) (*link, error) {
	dialCtx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	l, err := connect(dialCtx, target, c.tls, c.namespace)
	if err != nil {
		return nil, err
	}
	checkCtx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if !c.readOnly {
		err = checkCAS(checkCtx, pinnedLink{c, l}, target, c.service)
	}
	if err == nil {
		err = c.checkRegistry(checkCtx, target, pinnedLink{c, l})
	}
	if err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (c *cluster) setLink(l *link) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		l.close()
		return errClosed
	}
	c.link = l
	return nil
}

// setHeld implements configs. It ignores the free documents that a process with a worker id creates for other
// processes.
func (c *cluster) setHeld(slot int, registry string, upTo time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if upTo.IsZero() && slot != c.slot {
		return
	}
	c.slot = slot
	if c.heldRegistry != registry {
		clear(c.shownBy)
	}
	c.heldRegistry, c.heldUpTo = registry, upTo
	if c.link != nil {
		c.shownBy[c.link.target] = true
	}
}

// drop closes a link that failed. It does not close a newer link that another goroutine
// has opened.
func (c *cluster) drop(l *link) {
	c.mu.Lock()
	if c.link == l {
		c.link = nil
	}
	c.mu.Unlock()
	l.close()
}

func (c *cluster) close() {
	c.mu.Lock()
	l := c.link
	c.link, c.closed = nil, true
	c.mu.Unlock()
	if l != nil {
		l.close()
	}
}

// caller sends a request and reads the reply.
type caller func(ctx context.Context, kind string, body, into any) error

// call sends a request that is executed at most once. The request is sent a second
// time only if the server rejected it without executing it, because the connection is not
// registered, or because the token is too old.
func (c *cluster) call(ctx context.Context, kind string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, api.RequestTime)
	defer cancel()
	for again := false; ; again = true {
		l, err := c.connection(ctx)
		if err != nil {
			return api.UnsentError{Err: err}
		}
		err = pinnedLink{c, l}.call(ctx, kind, body, into)
		c.dropIfBroken(ctx, l, err)
		if !api.HasCode(err, api.Unregistered) {
			return err
		}
		if again {
			return api.UnsentError{Err: err}
		}
	}
}

// pinnedLink sends requests over one link and never changes to another.
type pinnedLink struct {
	c *cluster
	l *link
}

func (p pinnedLink) call(ctx context.Context, kind string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, api.RequestTime)
	defer cancel()
	for again := false; ; again = true {
		token, err := p.c.http.Token(ctx)
		if err != nil {
			return api.UnsentError{Err: err}
		}
		err = p.l.call(ctx, kind, headers(token), body, into)
		if !api.HasCode(err, api.Forbidden) {
			return err
		}
		p.c.http.ForgetToken(token)
		if again || token == "" {
			e, _ := errors.AsType[*api.ServerError](err)
			return api.DeniedError(p.l.target, p.c.http.User(), e.Message)
		}
	}
}

func (p pinnedLink) query(ctx context.Context, id string) (string, bool, error) {
	return p.c.read(ctx, p.call, id)
}

func (p pinnedLink) publish(ctx context.Context, id, text, md5 string) error {
	return p.c.write(ctx, p.call, id, text, md5)
}

func headers(token string) map[string]string {
	h := map[string]string{"exConfigInfo": "true", "charset": "utf-8"}
	if token != "" {
		h["accessToken"] = token
	}
	return h
}

// dropIfBroken drops a link if the error shows that the link cannot be used. If a
// server answers requests to its config service only with errors, another server
// replaces it. Errors of its naming service do not count, as the naming service
// needs more running nodes than the config service does.
func (c *cluster) dropIfBroken(ctx context.Context, l *link, err error) {
	e, answered := errors.AsType[*api.ServerError](err)
	_, login := errors.AsType[*api.LoginError](err)
	switch {
	case err == nil || login || api.IsUnsent(err):
	case !answered:
		if !errors.Is(ctx.Err(), context.Canceled) {
			c.drop(l)
		}
	case e.Code == api.Unregistered:
		c.drop(l)
	case e.Code/100 == 5 && !api.IsCASMismatch(e) && strings.HasPrefix(e.Request, "Config") && c.mayChangeServer():
		c.drop(l)
	}
}

// mayChangeServer reports whether there is another server, but returns true at most
// once a second. This limits new connections while a cluster has no leader.
func (c *cluster) mayChangeServer() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.targets) == 1 || time.Since(c.lastDrop) < time.Second {
		return false
	}
	c.lastDrop = time.Now()
	return true
}

// A server that is writing a document to its disk refuses to read the document. 3.1.0 refuses reads
// for up to a second after a start. Refused reads are repeated.
const (
	busyPause    = 100 * time.Millisecond
	maxBusyReads = 20
)

func isBusy(err error) bool {
	e, ok := errors.AsType[*api.ServerError](err)
	return ok && e.Code == 400 && strings.Contains(e.Message, "being modified")
}

// read reads a config.
func (c *cluster) read(ctx context.Context, call caller, id string) (text string, found bool, err error) {
	for busy := 0; ; busy++ {
		var r configReply
		err := call(ctx, "ConfigQueryRequest", c.newConfigRequest(id), &r)
		switch {
		case err == nil:
			return r.Content, true, nil
		case api.HasCode(err, api.Missing):
			return "", false, nil
		case !isBusy(err) || busy == maxBusyReads || !api.Sleep(ctx, busyPause):
			return "", false, err
		}
	}
}

// write writes a config if its present text has the md5, or if it is missing.
func (c *cluster) write(ctx context.Context, call caller, id, text, md5 string) error {
	var r status
	return call(ctx, "ConfigPublishRequest", publishRequest{
		configRequest: c.newConfigRequest(id), Content: text, CasMD5: md5,
		AdditionMap: map[string]string{"type": "json"},
	}, &r)
}

func (c *cluster) newConfigRequest(id string) configRequest {
	return configRequest{Module: "config", Tenant: c.namespace, Group: c.group, DataID: id}
}

func (c *cluster) ready(ctx context.Context) error {
	_, err := c.connection(ctx)
	return err
}

// query reads a config. Reads can be repeated, so another server is used if the first
// server does not answer.
func (c *cluster) query(ctx context.Context, id string) (text string, found bool, err error) {
	for range len(c.targets) + 1 {
		text, found, err = c.read(ctx, c.call, id)
		_, answered := errors.AsType[*api.ServerError](err)
		if err == nil || answered || api.IsUnsent(err) || ctx.Err() != nil { // unsent: every server was tried
			break
		}
	}
	return text, found, err
}

func (c *cluster) publish(ctx context.Context, id, text, md5 string) error {
	return c.write(ctx, c.call, id, text, md5)
}

// register and deregister write persistent instances.
func (c *cluster) register(ctx context.Context, in api.Instance) error {
	return c.sendInstance(ctx, "registerInstance", in)
}

func (c *cluster) deregister(ctx context.Context, in api.Instance) error {
	return c.sendInstance(ctx, "deregisterInstance", in)
}

func (c *cluster) sendInstance(ctx context.Context, what string, in api.Instance) error {
	var r status
	return c.call(ctx, "PersistentInstanceRequest", instanceRequest{
		serviceRequest: c.newServiceRequest(), Type: what, Instance: in,
	}, &r)
}

func (c *cluster) list(ctx context.Context) ([]api.Instance, error) {
	var r serviceReply
	err := c.call(ctx, "ServiceQueryRequest", c.newServiceRequest(), &r)
	return r.ServiceInfo.Hosts, err
}

// newServiceRequest returns the part of a request that names the service. The default
// namespace has an empty name in the config service and is "public" in the
// naming service.
func (c *cluster) newServiceRequest() serviceRequest {
	ns := c.namespace
	if ns == "" {
		ns = "public"
	}
	return serviceRequest{Module: "naming", Namespace: ns, ServiceName: c.service, GroupName: c.group}
}
