//go:build storm

package nacos

import (
	"context"
	"strconv"
	"testing"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// testOwnClients leases through the SDK clients of an application, which is
// itself a registered service. The race detector finds races inside the SDK when
// it reconnects, so this test runs without it.
func testOwnClients(t *testing.T, s *nacostest.Server) {
	config, naming := sdkClients(t, s, "shop", "", "")
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
	var err error
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
		t.Errorf("the application's client was closed: %v, want ok = true", err)
	}
}
