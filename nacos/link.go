package nacos

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	pb "github.com/nacos-group/nacos-sdk-go/v2/api/grpc"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/leafsql/leafsql/nacos/internal/api"
)

// A link, the connection to one server, uses the SDK's wire format but not its clients. The SDK's clients send
// a request up to three times. A compare-and-set that was executed at the first attempt is then
// reported as refused. The clients also accept no context, write a file for each document read,
// limit reads to five a second, leave a UDP socket open when closed, and
// register persistent instances only over an HTTP API that new servers lack.

// link is a connection to one server. It has a stream, which stays open and
// identifies the connection to the server; requests are sent outside the stream.
type link struct {
	target   string
	conn     *grpc.ClientConn
	requests pb.RequestClient
	cancel   context.CancelFunc
	ended    chan struct{} // closed when the stream has ended
}

// connect opens a link and returns it when the server has accepted it.
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
	l := &link{target: target, conn: conn, requests: pb.NewRequestClient(conn), cancel: cancel, ended: make(chan struct{})}
	if err := l.handshake(ctx, life, namespace); err != nil {
		l.close()
		return nil, err
	}
	return l, nil
}

func (l *link) handshake(ctx, life context.Context, namespace string) error {
	open := false
	defer func() {
		if !open {
			close(l.ended)
		}
	}()
	// The stream outlives ctx, but ctx limits the wait for a server that
	// accepts the connection and does not answer.
	inTime := context.AfterFunc(ctx, l.cancel)
	defer inTime()
	stream, err := pb.NewBiRequestStreamClient(l.conn).RequestBiStream(life)
	if err != nil {
		return err
	}
	open = true
	go l.listen(stream)
	setup, err := payload("ConnectionSetupRequest", nil, setupRequest{
		Module: "internal", ClientVersion: api.ClientVersion, Tenant: namespace,
		Labels: map[string]string{"source": "sdk", "module": "config"},
	})
	if err != nil {
		return err
	}
	if err := stream.Send(setup); err != nil {
		return err
	}
	// The setup request has no reply. Until the server has read it, the server answers
	// other requests with the error that the connection is not registered.
	for {
		var health status
		err := l.call(ctx, "HealthCheckRequest", nil, internalRequest{"internal"}, &health)
		if !api.HasCode(err, api.Unregistered) {
			return err
		}
		select {
		case <-l.ended:
			return errors.New("the server ended the stream")
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(5 * time.Millisecond):
		}
	}
}

// listen answers the server's requests on the stream. These are checks of the connection,
// and the request to change to another server, which ends the link.
func (l *link) listen(stream pb.BiRequestStream_RequestBiStreamClient) {
	defer close(l.ended)
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

// call sends one request, once, and reads the reply. After an error that is not
// a *ServerError the request may have been executed.
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
		return &api.ServerError{Request: kind, Code: st.ErrorCode, Message: st.Message}
	}
	if err := json.Unmarshal(raw, into); err != nil {
		return fmt.Errorf("%s: the reply can't be read: %w", kind, err)
	}
	return nil
}

// close closes the link and waits for its goroutines.
func (l *link) close() {
	l.cancel()
	_ = l.conn.Close() // fails only if it is already closed
	<-l.ended
}

func payload(kind string, headers map[string]string, body any) (*pb.Payload, error) {
	b, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	return &pb.Payload{Metadata: &pb.Metadata{Type: kind, Headers: headers}, Body: &anypb.Any{Value: b}}, nil
}
