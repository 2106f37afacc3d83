package nacos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"testing"

	"github.com/nacos-group/nacos-sdk-go/v2/model"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// ownClients replace the SDK's clients of an application.
type ownClients struct{ c *cluster }

func (o ownClients) GetConfig(p vo.ConfigParam) (string, error) {
	text, _, err := o.c.query(context.Background(), p.DataId)
	return text, err
}

func (o ownClients) PublishConfig(p vo.ConfigParam) (bool, error) {
	err := o.c.publish(context.Background(), p.DataId, p.Content, p.CasMd5)
	return err == nil, err
}

func (o ownClients) RegisterInstance(p vo.RegisterInstanceParam) (bool, error) {
	err := o.c.register(context.Background(), api.Instance{IP: p.Ip, Port: int(p.Port), ClusterName: p.ClusterName, Metadata: p.Metadata})
	return err == nil, err
}

func (o ownClients) DeregisterInstance(p vo.DeregisterInstanceParam) (bool, error) {
	err := o.c.deregister(context.Background(), api.Instance{IP: p.Ip, Port: int(p.Port), ClusterName: p.Cluster})
	return err == nil, err
}

func (o ownClients) SelectAllInstances(vo.SelectAllInstancesParam) (hosts []model.Instance, err error) {
	list, err := o.c.list(context.Background())
	for _, in := range list {
		hosts = append(hosts, model.Instance{InstanceId: in.InstanceID, Ip: in.IP, Port: uint64(in.Port), ClusterName: in.ClusterName, Metadata: in.Metadata})
	}
	return hosts, err
}

func (ownClients) Unsubscribe(*vo.SubscribeParam) error { return nil }

// TestOwnClientsStayOpen: leases work with the clients of an application, which stay open.
func TestOwnClientsStayOpen(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	own := ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}
	cfg := Config{ConfigClient: own, NamingClient: own, Instance: Instance{IP: "10.1.2.3", Port: 8080, Metadata: map[string]string{"zone": "a"}}}
	k, err := keep(t, func(ctx context.Context) (worker.Source, error) { return Open(ctx, cfg) }, worker.Config{NewRegistry: true, Workers: 16})
	if err != nil {
		t.Fatal(err)
	}
	held := k.Status().Worker
	eventually(t, "the application's instance", func() bool {
		list := s.Instances(fakeService)
		return len(list) == 1 && list[0].IP == "10.1.2.3" && list[0].Port == 8080 &&
			list[0].Metadata["zone"] == "a" && list[0].Metadata[metaWorker] == strconv.Itoa(held)
	})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	if list := s.Instances(fakeService); len(list) != 0 {
		t.Errorf("after Close there is %v, want no list", list)
	}
	if !maps.Equal(cfg.Instance.Metadata, map[string]string{"zone": "a"}) {
		t.Errorf("the application's metadata is %v, want %+v", cfg.Instance.Metadata, map[string]string{"zone": "a"})
	}
	if _, _, err := own.c.query(t.Context(), "any"); err != nil {
		t.Errorf("the application's client was closed: %v", err)
	}
}

// tracedError has a stack trace if it is formatted with %+v, as slog does, like the errors of the SDK.
type tracedError struct{ error }

func (e tracedError) Format(f fmt.State, _ rune) {
	io.WriteString(f, e.Error())
	if f.Flag('+') {
		io.WriteString(f, "\nmain.main\n\tmain.go:1")
	}
}

// failingNaming is a naming client that cannot reach its server.
type failingNaming struct{ ownClients }

func (failingNaming) DeregisterInstance(vo.DeregisterInstanceParam) (bool, error) {
	return false, tracedError{errors.New("client not connected")}
}

// TestLogHasNoStackTrace: the log line about an instance that cannot be removed is a single line.
func TestLogHasNoStackTrace(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Modern)
	own := ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}
	var log bytes.Buffer
	cfg := Config{ConfigClient: own, NamingClient: failingNaming{own}, Instance: Instance{IP: "10.1.2.3", Port: 8080}, Logger: slog.New(slog.NewTextHandler(&log, nil))}
	k, err := ownLease(t, cfg, 16)
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, "the application's instance", func() bool { return len(s.Instances(fakeService)) == 1 })
	k.Close()
	want := "the application's Nacos client: client not connected; check that Nacos runs"
	if text := log.String(); !strings.Contains(text, "still lists this process") || !strings.Contains(text, want) || strings.Contains(text, "main.go") {
		t.Errorf("the log is %q, want the warning with %q and without the stack trace", text, want)
	}
}

// TestOwnClientOfALyingServerIsRefused: the server is detected when the source is opened,
// or a slot is taken.
func TestOwnClientOfALyingServerIsRefused(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	own := ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}
	s.Fault(func(f *fakenacos.Faults) { f.NoCompare = true })
	_, err := keep(t, func(ctx context.Context) (worker.Source, error) { return Open(ctx, Config{ConfigClient: own}) }, worker.Config{NewRegistry: true})
	if e, unusable := errors.AsType[*worker.UnusableError](err); !unusable || !strings.Contains(e.Error(), "compare-and-set") {
		t.Errorf("a server that compares nothing: %v, want unusable = true and text with \"compare-and-set\"", err)
	}
}
