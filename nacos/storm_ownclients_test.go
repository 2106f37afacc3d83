//go:build storm

package nacos

import (
	"context"
	"net"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// testOwnClients leases through the SDK's clients of an application, which is
// a registered service itself. The race detector finds the SDK's own races where
// it connects again, so this is without it.
func testOwnClients(t *testing.T, s *nacostest.Server) {
	host, port, err := net.SplitHostPort(s.Addr())
	if err != nil {
		t.Fatal(err)
	}
	p, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		t.Fatal(err)
	}
	dir, err := os.MkdirTemp("", "ownclients")
	if err != nil {
		t.Fatal(err)
	}
	// The clients write into it for a moment after they were closed.
	t.Cleanup(func() { eventually(t, "an empty folder", func() bool { return os.RemoveAll(dir) == nil }) })
	param := vo.NacosClientParam{
		ClientConfig: constant.NewClientConfig(
			constant.WithNamespaceId("shop"), constant.WithNotLoadCacheAtStart(true),
			constant.WithLogDir(dir), constant.WithCacheDir(dir), constant.WithLogLevel("error")),
		ServerConfigs: []constant.ServerConfig{*constant.NewServerConfig(host, p)},
	}
	naming, err := clients.NewNamingClient(param)
	if err != nil {
		t.Fatal(err)
	}
	defer naming.CloseClient()
	config, err := clients.NewConfigClient(param)
	if err != nil {
		t.Fatal(err)
	}
	defer config.CloseClient()
	eventually(t, "the application's registration", func() bool { // its client may not be connected yet
		_, err := naming.RegisterInstance(vo.RegisterInstanceParam{
			ServiceName: "shop", Ip: "10.1.2.3", Port: 8080, Weight: 1, Enable: true, Healthy: true, Ephemeral: true,
		})
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	cfg := Config{
		ConfigClient: config, NamingClient: naming,
		Instance: Instance{IP: "10.1.2.3", Port: 8080, Metadata: map[string]string{"zone": "a"}},
	}
	began := time.Now()
	var k *worker.Keeper
	eventually(t, "a worker id", func() bool { // a server refuses a request now and then
		k, err = keep(t, func(ctx context.Context) (worker.Source, error) { return Open(ctx, cfg) }, worker.Config{NewRegistry: true, Workers: 16})
		return err == nil
	})
	t.Logf("worker id acquired in %v", time.Since(began).Round(time.Millisecond))
	c := look(t, s, worker.Options{"Namespace": "shop"})
	shown := func() (in api.Instance, n int) {
		list, err := c.list(t.Context())
		if err != nil {
			t.Log(err)
			return in, -1
		}
		if len(list) > 0 {
			in = list[0]
		}
		return in, len(list)
	}
	eventually(t, "the application's instance", func() bool {
		in, n := shown()
		return n == 1 && in.IP == "10.1.2.3" && in.Port == 8080 && in.Metadata["zone"] == "a" &&
			in.Metadata[metaWorker] == strconv.Itoa(k.Status().Worker)
	})
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "no instance", func() bool { _, n := shown(); return n == 0 })
	if ok, err := config.PublishConfig(vo.ConfigParam{DataId: "d", Group: "g", Content: "c"}); !ok {
		t.Errorf("the application's client was closed: %v", err)
	}
}
