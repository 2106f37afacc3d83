package nacos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"sync"
	"time"

	pb "github.com/nacos-group/nacos-sdk-go/v2/api/grpc"
	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"
)

// This is the one file that knows the Go SDK: its wire format, for connections
// of our own, and its clients, for applications that pass theirs.
//
// Connections of our own do not go through the SDK's clients. Those send a
// request up to three times, which turns a compare-and-set that was applied
// into a refusal; they know no context, write a file for each document read,
// limit reads to five a second, leave a UDP socket behind when closed, and
// register persistent instances only over an HTTP API that new servers lack.

// clientVersion is what servers are told; they look at the prefix.
const clientVersion = "Nacos-Go-Client:v2.3.5"

// link is a connection to one server. The server knows it by a stream that
// stays open; requests are sent beside it.
type link struct {
	target   string
	conn     *grpc.ClientConn
	requests pb.RequestClient
	cancel   context.CancelFunc
	gone     chan struct{} // closed when the stream has ended
}

// connect opens a link and returns when the server has accepted it.
func connect(ctx context.Context, target string, conf *tls.Config, namespace string) (*link, error) {
	creds := insecure.NewCredentials()
	if conf != nil {
		creds = credentials.NewTLS(conf)
	}
	conn, err := grpc.NewClient(target, grpc.WithTransportCredentials(creds))
	if err != nil {
		return nil, err
	}
	life, cancel := context.WithCancel(context.Background())
	l := &link{target: target, conn: conn, requests: pb.NewRequestClient(conn), cancel: cancel, gone: make(chan struct{})}
	if err := l.introduce(ctx, life, namespace); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *link) introduce(ctx, life context.Context, namespace string) error {
	open := false
	defer func() {
		if !open {
			close(l.gone)
		}
	}()
	// The stream is to outlive ctx, but not to wait longer for a server that
	// takes the connection and says nothing.
	inTime := context.AfterFunc(ctx, l.cancel)
	defer inTime()
	stream, err := pb.NewBiRequestStreamClient(l.conn).RequestBiStream(life)
	if err != nil {
		return err
	}
	open = true
	go l.listen(stream)
	setup, err := payload("ConnectionSetupRequest", nil, setupRequest{
		Module: "internal", ClientVersion: clientVersion, Tenant: namespace,
		Labels: map[string]string{"source": "sdk", "module": "config"},
	})
	if err != nil {
		return err
	}
	if err := stream.Send(setup); err != nil {
		return err
	}
	// The setup has no reply. Until the server has read it, it answers that
	// the connection is not registered.
	for {
		var health status
		err := l.call(ctx, "HealthCheckRequest", nil, internalRequest{"internal"}, &health)
		if !isCode(err, codeUnregistered) {
			return err
		}
		select {
		case <-l.gone:
			return errors.New("the server ended the stream")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// listen answers what the server asks on the stream: whether we are there, and
// to go to another server, which ends the link.
func (l *link) listen(stream pb.BiRequestStream_RequestBiStreamClient) {
	defer close(l.gone)
	defer l.cancel()
	for {
		in, err := stream.Recv()
		if err != nil {
			return
		}
		var answer string
		switch in.GetMetadata().GetType() {
		case "ClientDetectionRequest":
			answer = "ClientDetectionResponse"
		case "ConnectResetRequest":
			answer = "ConnectResetResponse"
		default:
			continue
		}
		var asked struct {
			RequestID string `json:"requestId"`
		}
		if json.Unmarshal(in.GetBody().GetValue(), &asked) != nil {
			return
		}
		out, err := payload(answer, nil, reply{ResultCode: 200, Success: true, RequestID: asked.RequestID})
		if err != nil || stream.Send(out) != nil || answer == "ConnectResetResponse" {
			return
		}
	}
}

// call sends one request, once, and reads the reply. An error that is not a
// *ServerError leaves open whether the request was carried out.
func (l *link) call(ctx context.Context, kind string, headers map[string]string, body, into any) error {
	out, err := payload(kind, headers, body)
	if err != nil {
		return err
	}
	in, err := l.requests.Request(ctx, out)
	if err != nil {
		return fmt.Errorf("%s: %w", kind, err)
	}
	var st status
	raw := in.GetBody().GetValue()
	if err := json.Unmarshal(raw, &st); err != nil {
		return fmt.Errorf("%s: the reply is no JSON: %w", kind, err)
	}
	if st.ResultCode != 200 {
		return &ServerError{Request: kind, Code: st.ErrorCode, Message: st.Message}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: the reply can't be read: %w", kind, err)
	}
	return nil
}

// close ends the link and waits until nothing of it runs.
func (l *link) close() {
	l.cancel()
	_ = l.conn.Close() // fails only if it is closed
	<-l.gone
}

func payload(kind string, headers map[string]string, body any) (*pb.Payload, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &pb.Payload{Metadata: &pb.Metadata{Type: kind, Headers: headers}, Body: &anypb.Any{Value: b}}, nil
}

// ConfigClient is what the SDK's config client must be able to do for this
// package. An application that has one passes it in Config.
type ConfigClient interface {
	GetConfig(vo.ConfigParam) (string, error)
	PublishConfig(vo.ConfigParam) (bool, error)
}

// NamingClient is the same of the SDK's naming client.
type NamingClient interface {
	RegisterInstance(vo.RegisterInstanceParam) (bool, error)
	DeregisterInstance(vo.DeregisterInstanceParam) (bool, error)
	SelectAllInstances(vo.SelectAllInstancesParam) ([]model.Instance, error)
	Unsubscribe(*vo.SubscribeParam) error
}

// sdkConfig is the config service through an application's client. Which
// server that one goes to, and when to another, can't be seen.
type sdkConfig struct {
	client         ConfigClient
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
	err := probe(ctx, s, "the application's client", s.service)
	s.compares = err == nil
	return err
}

func (s *sdkConfig) settle(ctx context.Context, f func(context.Context, documents) (string, error)) (string, error) {
	if err := s.ready(ctx); err != nil {
		return "", err
	}
	return f(ctx, s)
}

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
		if !sleep(ctx, sdkReads) {
			return "", false, err
		}
	}
}

// publish can't keep the SDK from sending a request again after an error. A
// text is never used twice, so a repetition writes nothing; but a refusal may
// then be that of the repetition, and proves nothing. The SDK pauses for
// 100 ms before it repeats.
func (s *sdkConfig) publish(ctx context.Context, id, text, md5 string) error {
	began := time.Now()
	ok, err := within(ctx, func() (bool, error) {
		return s.client.PublishConfig(vo.ConfigParam{DataId: id, Group: s.group, Content: text, CasMd5: md5, Type: "json"})
	})
	switch {
	case ok:
		return nil
	case err == nil:
		return errors.New("the server did not say why it refused")
	case isCasMiss(err.Error()) && time.Since(began) < 90*time.Millisecond:
		return &ServerError{Request: "ConfigPublishRequest", Code: codeFailed, Message: err.Error()}
	}
	return err
}

// sdkNaming is the naming service through an application's client.
type sdkNaming struct {
	client         NamingClient
	service, group string
}

func (s *sdkNaming) register(ctx context.Context, in instance) error {
	_, err := within(ctx, func() (bool, error) {
		return s.client.RegisterInstance(vo.RegisterInstanceParam{
			ServiceName: s.service, GroupName: s.group, ClusterName: in.ClusterName,
			Ip: in.IP, Port: uint64(in.Port), Weight: in.Weight, Enable: true, Healthy: true,
			Metadata: in.Metadata,
		})
	})
	return err
}

func (s *sdkNaming) deregister(ctx context.Context, in instance) error {
	_, err := within(ctx, func() (bool, error) {
		return s.client.DeregisterInstance(vo.DeregisterInstanceParam{
			ServiceName: s.service, GroupName: s.group, Cluster: in.ClusterName, Ip: in.IP, Port: uint64(in.Port),
		})
	})
	return err
}

// list asks anew each time: the SDK answers from what it had once it has
// subscribed.
func (s *sdkNaming) list(ctx context.Context) ([]instance, error) {
	hosts, err := within(ctx, func() ([]model.Instance, error) {
		defer s.client.Unsubscribe(&vo.SubscribeParam{ServiceName: s.service, GroupName: s.group})
		return s.client.SelectAllInstances(vo.SelectAllInstancesParam{ServiceName: s.service, GroupName: s.group})
	})
	list := make([]instance, 0, len(hosts))
	for _, h := range hosts {
		list = append(list, instance{
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
