package nacos

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// Times that bound one request and one connection attempt. A lease does not
// trust an answer that took longer than 5 s.
const (
	requestTime = 3 * time.Second
	dialTime    = 2 * time.Second
)

// cluster speaks gRPC with one of several servers at a time, and goes to
// another when that one is gone. It connects when it is first needed. What was
// seen of one server says nothing about the next, so each new link is vetted
// before anything else is asked.
type cluster struct {
	targets   []string // host:port of gRPC
	tls       *tls.Config
	namespace string
	group     string
	service   string
	web       *web

	turn   chan struct{} // holds one token; guards what follows
	link   *link
	next   int             // the target to try first
	anchor string          // what every new link has to show; "": anything
	shown  map[string]bool // targets that have shown it
	left   time.Time       // when a link was last dropped for a server's errors
	closed bool
}

func newCluster(cfg Config, w *web) *cluster {
	c := &cluster{
		tls: cfg.TLS, namespace: cfg.Namespace, group: cfg.Group, service: cfg.Service,
		web: w, turn: make(chan struct{}, 1), next: rand.IntN(len(cfg.Servers)),
	}
	for _, s := range cfg.Servers {
		c.targets = append(c.targets, s.grpc())
	}
	return c
}

// connection gives the link in use, or a new one.
func (c *cluster) connection(ctx context.Context) (*link, error) {
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if c.closed {
		return nil, errClosed
	}
	if c.link != nil {
		select {
		case <-c.link.gone:
			c.link.close()
			c.link = nil
		default:
			return c.link, nil
		}
	}
	if _, err := c.web.token(ctx); err != nil { // no server would do without
		return nil, err
	}
	var failed []error
	var final error
	for range c.targets {
		target := c.targets[c.next]
		c.next = (c.next + 1) % len(c.targets)
		l, err := c.open(ctx, target)
		if err == nil {
			c.link = l
			return l, nil
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

// open gives a link to one server that was vetted.
func (c *cluster) open(ctx context.Context, target string) (*link, error) {
	dialCtx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	l, err := connect(dialCtx, target, c.tls, c.namespace)
	if err != nil {
		return nil, err
	}
	vetCtx, cancel := context.WithTimeout(ctx, dialTime)
	defer cancel()
	if err := c.vet(vetCtx, target, pinned{c, l}); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

// drop ends a link that failed. Others may have replaced it already.
func (c *cluster) drop(l *link) {
	c.turn <- struct{}{}
	if c.link == l {
		c.link = nil
	}
	<-c.turn
	l.close()
}

func (c *cluster) close() {
	c.turn <- struct{}{}
	l := c.link
	c.link, c.closed = nil, true
	<-c.turn
	if l != nil {
		l.close()
	}
}

// call has a request carried out at most once. It is sent a second time only
// after the server said that it did not look at it: because it does not know
// the connection, or because the token is too old.
func (c *cluster) call(ctx context.Context, kind string, body, into any) error {
	ctx, cancel := context.WithTimeout(ctx, requestTime)
	defer cancel()
	for again := false; ; again = true {
		l, err := c.connection(ctx)
		if err != nil {
			return unsentError{err}
		}
		err = pinned{c, l}.call(ctx, kind, body, into)
		c.judge(ctx, l, err)
		if !isCode(err, codeUnregistered) {
			return err
		}
		if again {
			return unsentError{err}
		}
	}
}

// judge ends a link that its answer shows to be of no use. A server that
// answers only with errors is left for another, but not for its naming service,
// which needs more nodes than the config service does.
func (c *cluster) judge(ctx context.Context, l *link, err error) {
	e, answered := errors.AsType[*ServerError](err)
	switch {
	case err == nil || isUnsent(err):
	case !answered:
		if !errors.Is(ctx.Err(), context.Canceled) {
			c.drop(l)
		}
	case e.Code == codeUnregistered:
		c.drop(l)
	case e.Code/100 == 5 && !isCasMiss(e.Message) && strings.HasPrefix(e.Request, "Config"):
		if c.mayLeave() {
			c.drop(l)
		}
	}
}

// mayLeave reports whether there is another server, and keeps a cluster that
// has no leader anywhere from being dialled more than once a second.
func (c *cluster) mayLeave() bool {
	c.turn <- struct{}{}
	defer func() { <-c.turn }()
	if len(c.targets) == 1 || time.Since(c.left) < time.Second {
		return false
	}
	c.left = time.Now()
	return true
}

func isServerError(err error) bool {
	_, ok := errors.AsType[*ServerError](err)
	return ok
}

func headers(token string) map[string]string {
	h := map[string]string{"exConfigInfo": "true", "charset": "utf-8"}
	if token != "" {
		h["accessToken"] = token
	}
	return h
}

// caller sends a request and reads the reply.
type caller func(ctx context.Context, kind string, body, into any) error

// read reads a config.
func (c *cluster) read(ctx context.Context, call caller, id string) (text string, found bool, err error) {
	for busy := 0; ; busy++ {
		var r configReply
		err := call(ctx, "ConfigQueryRequest", c.config(id), &r)
		switch {
		case err == nil:
			return r.Content, true, nil
		case isCode(err, codeMissing):
			return "", false, nil
		case !isBusy(err) || busy == maxBusy || !sleep(ctx, busyPause):
			return "", false, err
		}
	}
}

// A server that is just writing a document to its disk refuses to read it:
// 3.1.0 for up to a second after a start. It is asked again meanwhile.
const (
	busyPause = 100 * time.Millisecond
	maxBusy   = 20
)

func isBusy(err error) bool {
	e, ok := errors.AsType[*ServerError](err)
	return ok && e.Code == 400 && strings.Contains(e.Message, "being modified")
}

// write writes a config whose present text has that md5, or that is missing.
func (c *cluster) write(ctx context.Context, call caller, id, text, md5 string) error {
	var r status
	return call(ctx, "ConfigPublishRequest", publishRequest{
		configRequest: c.config(id), Content: text, CasMD5: md5,
		AdditionMap: map[string]string{"type": "json"},
	}, &r)
}

func (c *cluster) ready(ctx context.Context) error {
	_, err := c.connection(ctx)
	return err
}

// query reads a config. Reading does no harm twice, so another server is asked
// when one does not answer.
func (c *cluster) query(ctx context.Context, id string) (text string, found bool, err error) {
	for range len(c.targets) + 1 {
		text, found, err = c.read(ctx, c.call, id)
		if err == nil || isServerError(err) || isUnsent(err) || ctx.Err() != nil { // unsent: every server was tried
			break
		}
	}
	return text, found, err
}

func (c *cluster) publish(ctx context.Context, id, text, md5 string) error {
	return c.write(ctx, c.call, id, text, md5)
}

func (c *cluster) config(id string) configRequest {
	return configRequest{Module: "config", Tenant: c.namespace, Group: c.group, DataID: id}
}

// register and deregister write persistent instances. Versions from before
// the request existed have the old HTTP API for it.
func (c *cluster) register(ctx context.Context, in instance) error {
	err := c.instance(ctx, "registerInstance", in)
	if isCode(err, codeNoHandler) {
		err = c.web.register(ctx, in)
	}
	return err
}

func (c *cluster) deregister(ctx context.Context, in instance) error {
	err := c.instance(ctx, "deregisterInstance", in)
	if isCode(err, codeNoHandler) {
		err = c.web.deregister(ctx, in)
	}
	return err
}

func (c *cluster) instance(ctx context.Context, what string, in instance) error {
	var r status
	return c.call(ctx, "PersistentInstanceRequest", instanceRequest{
		serviceRequest: c.naming(), Type: what, Instance: in,
	}, &r)
}

func (c *cluster) list(ctx context.Context) ([]instance, error) {
	var r serviceReply
	err := c.call(ctx, "ServiceQueryRequest", c.naming(), &r)
	return r.ServiceInfo.Hosts, err
}

func (c *cluster) naming() serviceRequest {
	return serviceRequest{
		Module: "naming", Namespace: namingNamespace(c.namespace), ServiceName: c.service, GroupName: c.group,
	}
}

// namingNamespace is the name that the naming service has for a namespace; the
// default one has none in the config service.
func namingNamespace(ns string) string {
	if ns == "" {
		return "public"
	}
	return ns
}
