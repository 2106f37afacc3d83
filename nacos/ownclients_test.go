package nacos

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/config_client"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// sdkClients returns SDK clients as an application creates them.
func sdkClients(t *testing.T, s *nacostest.Server, namespace, user, password string) (config_client.IConfigClient, naming_client.INamingClient) {
	t.Helper()
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
	// The clients write into the folder for a moment after they were closed.
	t.Cleanup(func() { eventually(t, "an empty folder", func() bool { return os.RemoveAll(dir) == nil }) })
	param := vo.NacosClientParam{
		ClientConfig: constant.NewClientConfig(
			constant.WithNamespaceId(namespace), constant.WithUsername(user), constant.WithPassword(password),
			constant.WithNotLoadCacheAtStart(true), constant.WithDisableUseSnapShot(true),
			constant.WithLogDir(dir), constant.WithCacheDir(dir), constant.WithLogLevel("error")),
		ServerConfigs: []constant.ServerConfig{*constant.NewServerConfig(host, p)},
	}
	naming, err := clients.NewNamingClient(param)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(naming.CloseClient)
	config, err := clients.NewConfigClient(param)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(config.CloseClient)
	return config, naming
}

// ownLease takes a worker id through an application's clients.
func ownLease(t *testing.T, cfg Config, workers int) (*worker.Keeper, error) {
	return keep(t, func(ctx context.Context) (worker.Source, error) { return Open(ctx, cfg) }, worker.Config{NewRegistry: true, Workers: workers})
}

// testClientsOfTheDefaultNamespace tries every name of the default namespace: a
// DSN and clients share one registry, or the client is refused.
func testClientsOfTheDefaultNamespace(t *testing.T, s *nacostest.Server) {
	const service = "names"
	mustLease(t, specOf(s), worker.Options{"Service": service, "Namespace": "public"}, worker.Config{Workers: 1})
	public, naming := sdkClients(t, s, "public", "", "")
	k, err := ownLease(t, Config{ConfigClient: public, Service: service}, 1)
	if err == nil {
		k.Close()
	}
	mustRefusePublic(t, err)

	empty, _ := sdkClients(t, s, "", "", "")
	eventually(t, "a refusal, as the only worker id is held", func() bool {
		k, err := ownLease(t, Config{ConfigClient: empty, Service: service}, 1)
		if err == nil {
			k.Close()
			t.Fatal("a client with an empty NamespaceId took a worker id that a DSN holds")
		}
		t.Log(err)
		e, ok := errors.AsType[*worker.UnavailableError](err)
		return ok && e.Reason == "taken"
	})

	// The naming service has only one name for the default namespace.
	eventually(t, "a worker id", func() bool {
		k, err = ownLease(t, Config{ConfigClient: empty, NamingClient: naming, Service: "shown", Instance: Instance{IP: "10.1.2.3", Port: 8080}}, 16)
		if err != nil {
			t.Log(err)
		}
		return err == nil
	})
	defer k.Close()
	c := look(t, s, worker.Options{"Service": "shown"})
	eventually(t, "the instance of a naming client with NamespaceId public", func() bool {
		list, err := c.list(t.Context())
		if err != nil {
			t.Log(err)
			return false
		}
		return len(list) == 1 && list[0].IP == "10.1.2.3" && list[0].Metadata[metaWorker] == strconv.Itoa(k.Status().Worker) &&
			list[0].InstanceID != strconv.Itoa(k.Status().Worker) // the SDK sends none
	})
}

func mustRefusePublic(t *testing.T, err error) {
	t.Helper()
	e, unusable := errors.AsType[*worker.UnusableError](err)
	if !unusable || !strings.Contains(e.Error(), "leave NamespaceId empty") {
		t.Errorf("NamespaceId public: got %v, want an UnusableError with \"leave NamespaceId empty\"", err)
	}
}

// configured replaces a client of the SDK, which returns its configuration.
type configured struct {
	ownClients
	namespace string
	err       error
}

func (c configured) GetClientConfig() (constant.ClientConfig, error) {
	return constant.ClientConfig{NamespaceId: c.namespace}, c.err
}

func TestClientNamespaceIsChecked(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	cfg := fakeConfig(s)
	for _, namespace := range []string{"", "shop", "public"} {
		cfg.Namespace = namespace
		client := configured{ownClients{mustOpenFake(t, cfg).configs.(*cluster)}, namespace, nil}
		src, err := Open(t.Context(), Config{ConfigClient: client})
		switch {
		case namespace == "public":
			mustRefusePublic(t, err)
		case err != nil:
			t.Errorf("NamespaceId %q: %v", namespace, err)
		default:
			want := "Nacos through the application's client, namespace " + map[string]string{"": "public"}[namespace] + namespace + ", group DEFAULT_GROUP, service leafsql"
			if src.Name != want {
				t.Errorf("NamespaceId %q: the source is %q, want %q", namespace, src.Name, want)
			}
			src.Close()
		}
	}
	if _, err := Open(t.Context(), Config{ConfigClient: configured{err: errors.New("unset")}}); err == nil || !strings.Contains(err.Error(), "unset") {
		t.Errorf("a client without a configuration: got %v, want its error", err)
	}
}

// TestClientErrorsNameNacos: errors of servers that refuse a client, or are down,
// mention Nacos.
func TestClientErrorsNameNacos(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	client := ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}
	mustShowHint := func(err error, cause string) {
		t.Helper()
		for _, part := range []string{"the application's Nacos client: ", cause, "user, password and rights"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("got %v, want an error with %q", err, part)
			}
		}
		if err != nil && strings.Contains(err.Error(), "check that it runs") {
			t.Errorf("err = %v, want a single hint", err)
		}
	}
	s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "u", "p" })
	_, err := ownLease(t, Config{ConfigClient: client}, 4)
	mustShowHint(err, "user not found")
	s.Kill()
	_, err = ownLease(t, Config{ConfigClient: client}, 4)
	mustShowHint(err, "no Nacos server can be used")
}
