package nacos

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/nacos/internal/api"
)

// The clients of the Go SDK, for applications that pass theirs.

// configClient is what the SDK's config client must be able to do for this
// package.
type configClient interface {
	GetConfig(vo.ConfigParam) (string, error)
	PublishConfig(vo.ConfigParam) (bool, error)
}

// namingClient is the same of the SDK's naming client.
type namingClient interface {
	RegisterInstance(vo.RegisterInstanceParam) (bool, error)
	DeregisterInstance(vo.DeregisterInstanceParam) (bool, error)
	SelectAllInstances(vo.SelectAllInstancesParam) ([]model.Instance, error)
	Unsubscribe(*vo.SubscribeParam) error
}

// sdkConfig is the config service through an application's client. Which
// server that one goes to, and when to another, can't be seen.
type sdkConfig struct {
	client         configClient
	service, group string

	mu       sync.Mutex
	compares bool // a server was seen to refuse a wrong md5
}

// ready tries again each time until a server could be judged.
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

// hold implements configs: to which server the client goes can't be seen.
func (s *sdkConfig) hold(int, string, time.Time) {}

// sdkReads is how far apart reads of one document are kept: the SDK refuses
// more than five a second.
const sdkReads = 210 * time.Millisecond

func (s *sdkConfig) query(ctx context.Context, id string) (string, bool, error) {
	for {
		text, err := within(ctx, func() (string, error) {
			return s.client.GetConfig(vo.ConfigParam{DataId: id, Group: s.group})
		})
		if err == nil || err.Error() != "ConfigQueryRequest is limited" {
			return text, text != "", err
		}
		if !api.Sleep(ctx, sdkReads) {
			return "", false, err
		}
	}
}

// publish can't keep the SDK from sending a request again after an error. A
// text is never used twice, so a repetition writes nothing; but a refusal may
// then be that of the repetition, and proves nothing.
func (s *sdkConfig) publish(ctx context.Context, id, text, md5 string) error {
	ok, err := within(ctx, func() (bool, error) {
		return s.client.PublishConfig(vo.ConfigParam{DataId: id, Group: s.group, Content: text, CasMd5: md5, Type: "json"})
	})
	if !ok && err == nil {
		err = errors.New("the server did not say why it refused")
	}
	return err
}

// sdkNaming is the naming service through an application's client.
type sdkNaming struct {
	client         namingClient
	service, group string
}

func (s *sdkNaming) register(ctx context.Context, in api.Instance) error {
	_, err := within(ctx, func() (bool, error) {
		return s.client.RegisterInstance(vo.RegisterInstanceParam{
			ServiceName: s.service, GroupName: s.group, ClusterName: in.ClusterName,
			Ip: in.IP, Port: uint64(in.Port), Weight: in.Weight, Enable: true, Healthy: true,
			Metadata: in.Metadata,
		})
	})
	return err
}

func (s *sdkNaming) deregister(ctx context.Context, in api.Instance) error {
	_, err := within(ctx, func() (bool, error) {
		return s.client.DeregisterInstance(vo.DeregisterInstanceParam{
			ServiceName: s.service, GroupName: s.group, Cluster: in.ClusterName, Ip: in.IP, Port: uint64(in.Port),
		})
	})
	return err
}

// list asks anew each time: the SDK answers from what it had once it has
// subscribed.
func (s *sdkNaming) list(ctx context.Context) ([]api.Instance, error) {
	hosts, err := within(ctx, func() ([]model.Instance, error) {
		defer s.client.Unsubscribe(&vo.SubscribeParam{ServiceName: s.service, GroupName: s.group})
		return s.client.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: s.service, GroupName: s.group})
	})
	list := make([]api.Instance, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, api.Instance{
			InstanceID: h.InstanceId, IP: h.Ip, Port: int(h.Port), ClusterName: h.ClusterName, Metadata: h.Metadata,
		})
	}
	return list, err
}

// within gives a call that knows no context up when ctx ends. The call itself
// goes on until the SDK's own time-out.
func within[T any](ctx context.Context, call func() (T, error)) (T, error) {
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
