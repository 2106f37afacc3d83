package nacos

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
)

// This file uses the clients of Nacos' Go SDK that an application passes in Config.

// configClient has the methods of the SDK's config client that this package
// needs.
type configClient interface {
	GetConfig(vo.ConfigParam) (string, error)
	PublishConfig(vo.ConfigParam) (bool, error)
}

// namingClient has the methods of the SDK's naming client that this package needs.
type namingClient interface {
	RegisterInstance(vo.RegisterInstanceParam) (bool, error)
	DeregisterInstance(vo.DeregisterInstanceParam) (bool, error)
	SelectAllInstances(vo.SelectAllInstancesParam) ([]model.Instance, error)
	Unsubscribe(*vo.SubscribeParam) error
}

// checkClient returns the namespace of an application's client, or an error for two settings. The NamespaceId "public"
// is an error because in the config service of Nacos 2 it differs from the empty name, which a DSN uses for the default
// namespace, so there would be two registries. Snapshots are an error: if the server does not answer a read, such a
// client returns the text that it has on its disk. After a wipe of the registry this text may show a worker id as free
// that a running process holds. Its document is missing then, and Nacos writes a missing document whatever md5 is
// expected, so both processes would issue ids. checkClient returns "" for a client that is not of the SDK's type, since
// such a client has no access to its settings.
func checkClient(client configClient) (namespace string, err error) {
	c, ok := client.(interface {
		GetClientConfig() (constant.ClientConfig, error)
	})
	if !ok {
		return "", nil
	}
	cfg, err := c.GetClientConfig()
	switch {
	case err != nil:
		return "", wrapClientError(err)
	case cfg.NamespaceId == "public":
		return "", &worker.UnusableError{Err: errors.New(`leafsql: Nacos: the ConfigClient's NamespaceId is "public", which Nacos 2 keeps apart from the default namespace; leave NamespaceId empty, and see "Worker ids from Nacos" in docs/worker-ids.md before changing a client that is in use`)}
	case !cfg.DisableUseSnapShot:
		return "", &worker.UnusableError{Err: errors.New("leafsql: Nacos: the ConfigClient returns old texts from its disk if the server does not answer, so two processes could get one worker id; set DisableUseSnapShot: true in its ClientConfig, or pass a second ConfigClient that has this setting")}
	}
	return cfg.NamespaceId, nil
}

// clientError adds a prefix and a hint to an error of an application's client.
type clientError struct{ err error }

func (e *clientError) Error() string {
	return fmt.Sprintf("the application's Nacos client: %v; %s", e.err, e.Hint())
}

func (e *clientError) Unwrap() error { return e.err }

// Hint returns the hint that ends the text.
func (e *clientError) Hint() string {
	if isReadLimit(e.err) {
		return "the SDK sends at most five reads of one document a second; check that only leafsql reads its documents"
	}
	return "check that Nacos runs, and the client's addresses, user, password and rights"
}

// sdkConfig is the config service through an application's client. The server
// that the client uses is unknown, and may change.
type sdkConfig struct {
	client                    configClient
	service, group, namespace string

	mu       sync.Mutex
	compares bool // a server has refused a wrong md5
}

// ready checks the compare-and-set in every call until a check has succeeded.
func (s *sdkConfig) ready(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.compares {
		return nil
	}
	err := checkCAS(ctx, s, "the application's client", s.service)
	s.compares = err == nil
	return err
}

// setHeld implements configs. It does nothing, as the server that the client uses is
// unknown.
func (s *sdkConfig) setHeld(int, string, time.Time) {}

// sdkReadPause is the pause before a read that the SDK or a server has refused for a moment is repeated.
const sdkReadPause = 250 * time.Millisecond

// readPacers has a *readPacer for each document that this process has read. The SDK refuses more than five reads
// of a document in a second, counted for all clients of the process, and sends no request for them. As other
// clients of the application may use some of the five, leafsql waits before the fifth.
var readPacers sync.Map

// readPacer allows four reads at once, and then one after each sdkReadPause.
type readPacer struct {
	mu   sync.Mutex
	full time.Time // when four reads are allowed again
}

// reserve reserves a read, and returns the pause before it.
func (p *readPacer) reserve() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if p.full.Before(now) {
		p.full = now
	}
	p.full = p.full.Add(sdkReadPause)
	return p.full.Sub(now) - 4*sdkReadPause
}

// cancel takes a reservation back.
func (p *readPacer) cancel() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.full = p.full.Add(-sdkReadPause)
}

func (s *sdkConfig) pacer(id string) *readPacer {
	p, _ := readPacers.LoadOrStore([3]string{id, s.group, s.namespace}, &readPacer{})
	return p.(*readPacer)
}

// readLimit is the text in the SDK's error for a read that it has not sent because of its limit.
const readLimit = "ConfigQueryRequest is limited"

// isReadLimit reports whether the SDK has not sent a read because of its limit.
func isReadLimit(err error) bool {
	return strings.Contains(err.Error(), readLimit)
}

func (s *sdkConfig) query(ctx context.Context, id string) (string, bool, error) {
	pacer := s.pacer(id)
	for {
		if pause := pacer.reserve(); pause > 0 && !api.Sleep(ctx, pause) {
			pacer.cancel()
			return "", false, wrapClientError(fmt.Errorf("%s: %w", readLimit, context.Cause(ctx)))
		}
		text, err := callWithin(ctx, func() (string, error) {
			return s.client.GetConfig(vo.ConfigParam{DataId: id, Group: s.group})
		})
		if err == nil || !isReadLimit(err) && !strings.Contains(err.Error(), "being modified") || !api.Sleep(ctx, sdkReadPause) {
			return text, text != "", wrapClientError(err)
		}
	}
}

// wrapClientError returns an error of an application's client as a *clientError. A log line with the SDK's own error
// would also contain its stack trace.
func wrapClientError(err error) error {
	if err == nil {
		return nil
	}
	return &clientError{err}
}

// publish writes a document. The SDK may repeat the request after an error.
// As no text is used twice, the repeated request writes nothing. A refusal may be
// the answer to the repeated request, so the document may have been written even after a refusal.
func (s *sdkConfig) publish(ctx context.Context, id, text, md5 string) error {
	ok, err := callWithin(ctx, func() (bool, error) {
		return s.client.PublishConfig(vo.ConfigParam{DataId: id, Group: s.group, Content: text, CasMd5: md5, Type: "json"})
	})
	if !ok && err == nil {
		err = errors.New("the server gave no reason for the refusal")
	}
	return wrapClientError(err)
}

// sdkNaming is the naming service through an application's client.
type sdkNaming struct {
	client         namingClient
	service, group string
}

func (s *sdkNaming) register(ctx context.Context, in api.Instance) error {
	_, err := callWithin(ctx, func() (bool, error) {
		return s.client.RegisterInstance(vo.RegisterInstanceParam{
			ServiceName: s.service, GroupName: s.group, ClusterName: in.ClusterName,
			Ip: in.IP, Port: uint64(in.Port), Weight: in.Weight, Enable: true, Healthy: true,
			Metadata: in.Metadata,
		})
	})
	return wrapClientError(err)
}

func (s *sdkNaming) deregister(ctx context.Context, in api.Instance) error {
	_, err := callWithin(ctx, func() (bool, error) {
		return s.client.DeregisterInstance(vo.DeregisterInstanceParam{
			ServiceName: s.service, GroupName: s.group, Cluster: in.ClusterName, Ip: in.IP, Port: uint64(in.Port),
		})
	})
	return wrapClientError(err)
}

// list reads the list from the server each time: after a subscription, the SDK
// would return a cached list.
func (s *sdkNaming) list(ctx context.Context) ([]api.Instance, error) {
	hosts, err := callWithin(ctx, func() ([]model.Instance, error) {
		defer s.client.Unsubscribe(&vo.SubscribeParam{ServiceName: s.service, GroupName: s.group})
		return s.client.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: s.service, GroupName: s.group})
	})
	list := make([]api.Instance, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, api.Instance{
			InstanceID: h.InstanceId, IP: h.Ip, Port: int(h.Port), ClusterName: h.ClusterName, Metadata: h.Metadata,
		})
	}
	return list, wrapClientError(err)
}

// callWithin returns the result of a call that accepts no context, or an error when
// ctx ends. The call itself continues until the SDK's own timeout.
func callWithin[T any](ctx context.Context, call func() (T, error)) (T, error) {
	type result struct {
		v   T
		err error
	}
	done := make(chan result, 1)
	go func() {
		v, err := call()
		done <- result{v, err}
	}()
	select {
	case r := <-done:
		return r.v, r.err
	case <-ctx.Done():
		var zero T
		return zero, context.Cause(ctx)
	}
}
