package fakenacos

import (
	"context"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strconv"

	pb "github.com/nacos-group/nacos-sdk-go/v2/api/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/anypb"
)

type requests struct {
	pb.UnimplementedRequestServer
	s *Server
}

type streams struct {
	pb.UnimplementedBiRequestStreamServer
	s *Server
}

func newGRPC(s *Server) *grpc.Server {
	g := grpc.NewServer()
	pb.RegisterRequestServer(g, requests{s: s})
	pb.RegisterBiRequestStreamServer(g, streams{s: s})
	return g
}

// body has the fields of all supported requests.
type body struct {
	Tenant      string   `json:"tenant"`
	Group       string   `json:"group"`
	DataID      string   `json:"dataId"`
	Content     string   `json:"content"`
	CasMD5      string   `json:"casMd5"`
	Namespace   string   `json:"namespace"`
	ServiceName string   `json:"serviceName"`
	GroupName   string   `json:"groupName"`
	Type        string   `json:"type"`
	Instance    Instance `json:"instance"`
}

func (b body) config() string  { return b.Tenant + "/" + b.Group + "/" + b.DataID }
func (b body) service() string { return b.Namespace + "/" + b.GroupName + "@@" + b.ServiceName }

// reply is a response's type and body.
type reply struct {
	kind string
	body map[string]any
}

func ok(kind string, more map[string]any) reply {
	b := map[string]any{"resultCode": 200, "errorCode": 0, "success": true}
	for k, v := range more {
		b[k] = v
	}
	return reply{kind, b}
}

func fail(kind string, code int, message string) reply {
	return reply{kind, map[string]any{"resultCode": 500, "errorCode": code, "success": false, "message": message}}
}

func (r reply) payload() *pb.Payload {
	b, err := json.Marshal(r.body)
	if err != nil {
		panic(err) // strings and numbers can always be marshalled
	}
	return &pb.Payload{Metadata: &pb.Metadata{Type: r.kind}, Body: &anypb.Any{Value: b}}
}

// Request answers the unary requests.
func (r requests) Request(ctx context.Context, in *pb.Payload) (*pb.Payload, error) {
	from := remote(ctx)
	kind := in.GetMetadata().GetType()
	if kind == "ServerCheckRequest" {
		return ok("ServerCheckResponse", map[string]any{"connectionId": from}).payload(), nil
	}
	var b body
	if err := json.Unmarshal(in.GetBody().GetValue(), &b); err != nil {
		return nil, status.Error(codes.InvalidArgument, err.Error())
	}
	s := r.s
	s.mu.Lock()
	_, known := s.conns[from]
	f := s.faults
	allowed := f.Username == "" || s.tokens[in.GetMetadata().GetHeaders()["accessToken"]]
	s.mu.Unlock()
	switch {
	case !known:
		return fail("ErrorResponse", 301, "Connection is unregistered.").payload(), nil
	case kind == "HealthCheckRequest":
		return ok("HealthCheckResponse", nil).payload(), nil
	case !allowed:
		return fail("ErrorResponse", 403, "user not found!").payload(), nil
	}
	switch kind {
	case "ConfigQueryRequest":
		text, found := s.query(b.config())
		if !found {
			return fail("ConfigQueryResponse", 300, "config data not exist").payload(), nil
		}
		return ok("ConfigQueryResponse", map[string]any{"content": text, "md5": sum(text)}).payload(), nil
	case "ConfigPublishRequest":
		switch s.publish(b.config(), b.Content, b.CasMD5) {
		case refused:
			return fail("ConfigPublishResponse", 0, "Cas publish fail,server md5 may have changed.").payload(), nil
		case doneButLost:
			return nil, status.Error(codes.Unavailable, "the connection broke")
		}
		return ok("ConfigPublishResponse", nil).payload(), nil
	case "PersistentInstanceRequest":
		if f.NoPersistent {
			break
		}
		act := s.register
		if b.Type == "deregisterInstance" {
			act = s.deregister
		}
		if !act(b.service(), b.Instance) {
			return fail("InstanceResponse", 500, "no leader").payload(), nil
		}
		return ok("InstanceResponse", map[string]any{"type": b.Type}).payload(), nil
	case "ServiceQueryRequest":
		return ok("QueryServiceResponse", map[string]any{
			"serviceInfo": map[string]any{"hosts": s.list(b.service())},
		}).payload(), nil
	}
	return fail("ErrorResponse", 302, "RequestHandler Not Found").payload(), nil
}

// RequestBiStream registers a connection for as long as its stream is open.
func (st streams) RequestBiStream(stream pb.BiRequestStream_RequestBiStreamServer) error {
	in, err := stream.Recv()
	if err != nil || in.GetMetadata().GetType() != "ConnectionSetupRequest" {
		return err
	}
	s, from := st.s, remote(stream.Context())
	ended := make(chan struct{}, 1)
	asked := make(chan struct{}, 1)
	signal := func(c chan struct{}) func() {
		return func() {
			select {
			case c <- struct{}{}:
			default:
			}
		}
	}
	s.mu.Lock()
	s.conns[from], s.resets[from] = signal(ended), signal(asked)
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.conns, from)
		delete(s.resets, from)
	}()
	// Servers check a connection that was idle.
	if err := stream.Send(ask("ClientDetectionRequest")); err != nil {
		return err
	}
	answered := make(chan string)
	go func() {
		defer close(answered)
		for {
			in, err := stream.Recv()
			if err != nil {
				return
			}
			select {
			case answered <- in.GetMetadata().GetType():
			case <-stream.Context().Done():
				return
			}
		}
	}()
	for {
		select {
		case kind, more := <-answered:
			if !more || kind == "ConnectResetResponse" {
				return nil
			}
		case <-ended:
			return status.Error(codes.Unavailable, "the connection broke")
		case <-asked:
			if err := stream.Send(ask("ConnectResetRequest")); err != nil {
				return err
			}
		}
	}
}

// ask returns a request of the server to the client.
func ask(kind string) *pb.Payload {
	return reply{kind, map[string]any{"requestId": "1", "module": "internal"}}.payload()
}

// remote returns the name of the connection of a call.
func remote(ctx context.Context) string {
	p, _ := peer.FromContext(ctx)
	return p.Addr.String()
}

// newID returns an id like those of the generator "snowflake" of 2.3 and 3.1.
func newID() string { return strconv.FormatInt(rand.Int64(), 10) }

// unused returns the smallest id that no instance has.
func unused(list []Instance) string {
	for id := 0; ; id++ {
		text := strconv.Itoa(id)
		if !slices.ContainsFunc(list, func(in Instance) bool { return in.InstanceID == text }) {
			return text
		}
	}
}
