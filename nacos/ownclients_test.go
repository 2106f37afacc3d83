package nacos

import (
	"context"
	"errors"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nacos-group/nacos-sdk-go/v2/clients"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/config_client"
	"github.com/nacos-group/nacos-sdk-go/v2/clients/naming_client"
	"github.com/nacos-group/nacos-sdk-go/v2/common/constant"
	"github.com/nacos-group/nacos-sdk-go/v2/util"
	"github.com/nacos-group/nacos-sdk-go/v2/vo"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// sdkFolders has the folders of SDK clients, which write into them until the tests' process ends.
var sdkFolders sync.Map

func removeSDKFolders() {
	sdkFolders.Range(func(dir, _ any) bool {
		os.RemoveAll(dir.(string))
		return true
	})
}

// sdkClients returns SDK clients as an application creates them. They stay open: CloseClient deletes from a map of the whole
// process without a lock, while clients of parallel tests read this map.
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
	sdkFolders.Store(dir, nil)
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
	config, err := clients.NewConfigClient(param)
	if err != nil {
		t.Fatal(err)
	}
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

// testFreshGroups takes the first worker id of new registries through an application's clients: leafsql reads no document
// so often that the SDK refuses to send the request.
func testFreshGroups(t *testing.T, s *nacostest.Server) {
	config, naming := sdkClients(t, s, "fresh", "", "")
	for i := range 3 {
		cfg := Config{ConfigClient: config, NamingClient: naming, Group: "fresh" + strconv.Itoa(i)}
		eventually(t, "a worker id", func() bool {
			k, err := ownLease(t, cfg, 1024)
			if err == nil {
				k.Close()
				return true
			}
			t.Log(err) // a server refuses a request now and then
			if isReadLimit(err) {
				t.Fatalf("group %s: Wait() = %v, want no read that the SDK refuses", cfg.Group, err)
			}
			return false
		})
	}
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
	snapshots bool // it returns old texts from its disk
	err       error
}

func (c configured) GetClientConfig() (constant.ClientConfig, error) {
	return constant.ClientConfig{NamespaceId: c.namespace, DisableUseSnapShot: !c.snapshots}, c.err
}

func TestClientNamespaceIsChecked(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	cfg := fakeConfig(s)
	for _, namespace := range []string{"", "shop", "public"} {
		cfg.Namespace = namespace
		client := configured{ownClients: ownClients{mustOpenFake(t, cfg).configs.(*cluster)}, namespace: namespace}
		src, err := Open(t.Context(), Config{ConfigClient: client})
		switch {
		case namespace == "public":
			mustRefusePublic(t, err)
		case err != nil:
			t.Errorf("NamespaceId %q: %v", namespace, err)
		default:
			want := map[string]string{"": "default namespace", "shop": "namespace shop"}[namespace]
			if want = "Nacos through the application's client, " + want + ", group DEFAULT_GROUP, service leafsql"; src.Name != want {
				t.Errorf("NamespaceId %q: the source is %q, want %q", namespace, src.Name, want)
			}
			src.Close()
		}
	}
	if _, err := Open(t.Context(), Config{ConfigClient: configured{err: errors.New("unset")}}); err == nil || !strings.Contains(err.Error(), "unset") {
		t.Errorf("a client without a configuration: got %v, want its error", err)
	}
}

// TestClientWithSnapshotsIsRefused: after a failed read the SDK's client returns an old text from its disk unless
// DisableUseSnapShot is set, and two processes could get one worker id.
func TestClientWithSnapshotsIsRefused(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	own := ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}
	_, err := Open(t.Context(), Config{ConfigClient: configured{ownClients: own, snapshots: true}})
	if e, unusable := errors.AsType[*worker.UnusableError](err); !unusable || !strings.Contains(e.Error(), "set DisableUseSnapShot: true") {
		t.Errorf("Open() with snapshots = %v, want an UnusableError with \"set DisableUseSnapShot: true\"", err)
	}
}

// snapshotClient is a client of an application's own type. If old is set, it returns the texts of its last reads, as the
// SDK's client does with snapshots on its disk.
type snapshotClient struct {
	ownClients
	texts sync.Map
	old   atomic.Bool
}

func (c *snapshotClient) GetConfig(p vo.ConfigParam) (string, error) {
	if text, ok := c.texts.Load(p.DataId); ok && c.old.Load() {
		return text.(string), nil
	}
	text, err := c.ownClients.GetConfig(p)
	if err == nil {
		c.texts.Store(p.DataId, text)
	}
	return text, err
}

// TestOldTextsLeaseNothing: as long as documents are not lost, a worker id that old texts show as free is not taken from
// its holder, and no lease is renewed by a read.
func TestOldTextsLeaseNothing(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Modern)
	own := ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}
	take := func(client configClient, service string, workers int, lease time.Duration) (*worker.Keeper, error) {
		return keep(t, func(ctx context.Context) (worker.Source, error) {
			return Open(ctx, Config{ConfigClient: client, Service: service})
		},
			worker.Config{NewRegistry: true, Workers: workers, Lease: lease, Issued: time.Now})
	}
	old := &snapshotClient{ownClients: own}
	k, err := take(old, "old", 1, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	k.Close()
	if text, err := old.GetConfig(vo.ConfigParam{DataId: "old.worker.0"}); err != nil || !strings.Contains(text, `"free":true`) {
		t.Fatalf("the document of a released worker id is %s, %v; want a free one", text, err)
	}
	holder, err := take(own, "old", 1, 20*time.Second)
	if err != nil {
		t.Fatal(err)
	}
	defer holder.Close()
	old.old.Store(true)
	if k, err := take(old, "old", 1, 20*time.Second); err == nil {
		k.Close()
		t.Error("a client with old texts took a worker id that another process holds")
	}
	if st := holder.Status(); st.Phase != "holding" {
		t.Errorf("the holder's status is %+v, want phase holding", st)
	}

	old.old.Store(false)
	const lease = 6 * time.Second
	k, err = take(old, "lost", 2, lease)
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	old.old.Store(true)
	s.Kill()
	killed := time.Now()
	eventually(t, "the loss of the worker id", func() bool {
		st := k.Status()
		if st.Limit.After(killed.Add(lease)) {
			t.Fatalf("ids are issued up to %v, want at most a lease after %v, when the server was killed", st.Limit, killed)
		}
		return st.Phase == "searching"
	})
}

// limitedClient refuses reads like the SDK's client, whose limit holds for the whole process.
type limitedClient struct {
	ownClients
	refused *atomic.Int64
}

func (c limitedClient) GetConfig(p vo.ConfigParam) (string, error) {
	if config_client.IsLimited(util.GetConfigCacheKey(p.DataId, p.Group, "")) {
		c.refused.Add(1)
		return "", errors.New("get config from remote nacos server fail, and is not allowed to read local file, err:ConfigQueryRequest is limited")
	}
	return c.ownClients.GetConfig(p)
}

// TestReadsKeepTheSDKsLimit: the first worker id of a new registry needs several reads of one document, and more of
// them if reads show writes late. Two pools of the process have separate sources.
func TestReadsKeepTheSDKsLimit(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	s.Fault(func(f *fakenacos.Faults) { f.ReadLag = 700 * time.Millisecond })
	var refused atomic.Int64
	client := limitedClient{ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}, &refused}
	var pools sync.WaitGroup
	for range 2 {
		pools.Go(func() {
			k, err := ownLease(t, Config{ConfigClient: client, Service: "limit"}, 1024)
			if err != nil {
				t.Errorf("Wait() of a new registry = %v, want no error", err)
				return
			}
			k.Close()
		})
	}
	pools.Wait()
	if n := refused.Load(); n != 0 {
		t.Errorf("the SDK refused %d reads, want 0", n)
	}
}

// refusingClient refuses its first two reads.
type refusingClient struct {
	ownClients
	reads *atomic.Int64
}

func (c refusingClient) GetConfig(p vo.ConfigParam) (string, error) {
	if c.reads.Add(1) <= 2 {
		return "", errors.New("get config from remote nacos server fail, and is not allowed to read local file, err:" + readLimit)
	}
	return c.ownClients.GetConfig(p)
}

// TestRefusedReadsAreRepeated: other code of the application may use up the SDK's limit.
func TestRefusedReadsAreRepeated(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	var reads atomic.Int64
	client := refusingClient{ownClients{mustOpenFake(t, fakeConfig(s)).configs.(*cluster)}, &reads}
	k, err := ownLease(t, Config{ConfigClient: client, Service: "used"}, 1024)
	if err != nil {
		t.Fatalf("Wait() = %v, want no error", err)
	}
	k.Close()
	if n := reads.Load(); n <= 2 {
		t.Errorf("leafsql has read %d times, want more than the 2 refused reads", n)
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
