package nacos

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	pb "github.com/nacos-group/nacos-sdk-go/v2/api/grpc"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/types/known/anypb"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// beginAt opens the registry on the first of the config's servers.
func beginAt(t *testing.T, cfg Config) worker.Source {
	t.Helper()
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	c := newCluster(cfg, httpOf(cfg))
	c.next = 0
	src, err := services{configs: c, names: c, close: func() error { c.close(); return nil }}.source(within30s(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { src.Close() })
	return src
}

// taken takes a slot and returns its version.
func taken(t *testing.T, r *registry, slot int) worker.Version {
	t.Helper()
	here := doc()
	here.Free = true
	if _, ok, err := r.Put(within30s(t), worker.RegistrySlot, here, ""); !ok {
		t.Fatal(err)
	}
	v, ok, err := r.Put(within30s(t), slot, heldIn(here.Nonce), "")
	if !ok {
		t.Fatal(err)
	}
	return v
}

// heldIn returns the document of a slot that is held in a registry.
func heldIn(registry string) worker.Doc {
	d := doc()
	d.Registry, d.HighWater = registry, d.HighWater.Add(time.Minute)
	return d
}

// refused fails the test unless puts are refused for a reason, however often they
// are tried.
func refused(t *testing.T, r *registry, slot int, v worker.Version, why string) {
	t.Helper()
	for range 3 {
		if _, ok, err := r.Put(within30s(t), slot, doc(), v); ok || !leasetest.NotWritten(err) || !strings.Contains(err.Error(), why) {
			t.Errorf("%v, %v; want refused: %s", ok, err, why)
		}
	}
}

// TestFailoverRefusesALyingServer: a next server of version 2.0.4 is refused.
// This can happen in an upgrade node by node, or if an address changes to
// another server.
func TestFailoverRefusesALyingServer(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := mustOpenFake(t, fakeConfig(s))
	v := taken(t, r, 3)
	s.Fault(func(f *fakenacos.Faults) { f.Lie = true })
	s.Break()
	eventually(t, "a new connection", func() bool {
		_, _, err := r.Get(t.Context(), 3)
		_, unusable := errors.AsType[*worker.UnusableError](err)
		return unusable
	})
	refused(t, r, 3, v, "wrong md5")
	s.Fault(func(f *fakenacos.Faults) { f.Lie = false })
	if _, ok, err := r.Put(within30s(t), 3, doc(), v); !ok {
		t.Errorf("on a good server: %v, %v, want ok = true", ok, err)
	}
}

// TestGoodServerIsUsedNextToALyingOne: the good one of two servers is used,
// whichever comes first.
func TestGoodServerIsUsedNextToALyingOne(t *testing.T) {
	good, liar := fakenacos.Start(t, fakenacos.Modern), fakenacos.Start(t, fakenacos.Modern)
	mustOpenFake(t, fakeConfig(liar)) // creates its probe document
	liar.Fault(func(f *fakenacos.Faults) { f.Lie = true })
	taken(t, beginAt(t, fakeConfig(liar, good)).Slots.(*registry), 3)
	if n := len(good.Instances("public/DEFAULT_GROUP@@leafsql")); n != 0 || good.Publishes() == 0 {
		t.Errorf("%d instances, %d writes, want n = 0 and good.Publishes() other than 0", n, good.Publishes())
	}
}

// TestFailoverRefusesAnotherCluster: the servers of two clusters are configured as
// one.
func TestFailoverRefusesAnotherCluster(t *testing.T) {
	for name, used := range map[string]bool{"empty": false, "used": true} {
		t.Run(name, func(t *testing.T) {
			a, b := fakenacos.Start(t, fakenacos.Modern), fakenacos.Start(t, fakenacos.Modern)
			if used {
				taken(t, mustOpenFake(t, fakeConfig(b)), 5)
			}
			r := beginAt(t, fakeConfig(a, b)).Slots.(*registry)
			v := taken(t, r, 3)
			spare := heldIn(r.configs.(*cluster).heldRegistry)
			spare.Free = true
			if _, ok, err := r.Put(within30s(t), 4, spare, ""); !ok { // a holder creates slots for others
				t.Fatal(err)
			}
			a.Kill()
			eventually(t, "a new connection", func() bool {
				_, _, err := r.Get(t.Context(), 3)
				return errors.Is(err, errAnotherRegistry)
			})
			refused(t, r, 3, v, "one cluster")
			a.Revive()
			if _, ok, err := r.Put(within30s(t), 3, doc(), v); !ok {
				t.Errorf("the first cluster is back: %v, %v, want ok = true", ok, err)
			}
		})
	}
}

// TestAnotherClusterEndsALease: a lease does not continue in another cluster.
// The process takes a worker id of that cluster.
func TestAnotherClusterEndsALease(t *testing.T) {
	t.Parallel()
	a, b := fakenacos.Start(t, fakenacos.Modern), fakenacos.Start(t, fakenacos.Modern)
	const lease = 6 * time.Second
	cfg := fakeConfig(a, b)
	src := beginAt(t, cfg)
	k, err := keep(t, func(context.Context) (worker.Source, error) { return src, nil },
		worker.Config{Workers: 1, NewRegistry: true, Lease: lease, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer k.Close()
	var was *worker.Status
	eventually(t, "a renewal", func() bool {
		was = k.Status()
		return was.Limit.After(was.Start.Add(lease + 500*time.Millisecond))
	})
	holds := a
	if l, err := src.Slots.(*registry).configs.(*cluster).current(); err == nil && l != nil && l.target == cfg.Servers[1].grpc() {
		holds = b // on a busy machine the first server may have been too late
	}
	holds.Kill()
	limit := time.Now().Add(lease + 100*time.Millisecond) // limit of earlier renewals, however late their answers arrive
	eventually(t, "the end of the lease", func() bool {
		s := k.Status()
		if s.Since.Equal(was.Since) && s.Limit.After(limit) {
			t.Fatal("the lease was renewed in a cluster in which it was not taken, want its end")
		}
		return s.Phase == "searching"
	})
}

// TestWipeKeepsALiveHolder: renewals continue in the same registry, over the
// old link and over a new one.
func TestWipeKeepsALiveHolder(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := beginAt(t, fakeConfig(s)).Slots.(*registry)
	v := taken(t, r, 3)
	registry := r.configs.(*cluster).heldRegistry
	for range 2 {
		s.Wipe()
		var (
			ok  bool
			err error
		)
		if v, ok, err = r.Put(within30s(t), 3, heldIn(registry), v); !ok {
			t.Errorf("Put(within30s(t), 3, heldIn(registry), v) = %v, %v, want ok = true", ok, err)
		}
		s.Break()
		eventually(t, "a new connection", func() bool {
			_, _, err := r.Get(t.Context(), 3)
			return err == nil
		})
	}
}

// TestAnotherClusterIsAcceptedWithoutALease: without a held slot any cluster is
// accepted, also one that replaces the first.
func TestAnotherClusterIsAcceptedWithoutALease(t *testing.T) {
	t.Parallel()
	a, b := fakenacos.Start(t, fakenacos.Modern), fakenacos.Start(t, fakenacos.Modern)
	r := beginAt(t, fakeConfig(a, b)).Slots.(*registry)
	v := taken(t, r, 3)
	given := heldIn(r.configs.(*cluster).heldRegistry)
	given.Free = true
	if _, ok, err := r.Put(within30s(t), 3, given, v); !ok {
		t.Fatal(err)
	}
	a.Kill()
	eventually(t, "the other one", func() bool {
		_, v, err := r.Get(t.Context(), 3)
		return err == nil && v == ""
	})
}

// TestTwoClustersInOneListAreRefused: servers of two clusters are refused at the start,
// whichever comes first, unless one of them is down or both are new.
func TestTwoClustersInOneListAreRefused(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		b      func(b *fakenacos.Server, r *registry)
		lag    time.Duration
		refuse bool
	}{
		"both used":                {func(_ *fakenacos.Server, r *registry) { taken(t, r, 5) }, 0, true},
		"one is empty":             {func(*fakenacos.Server, *registry) {}, 0, true},
		"one is away":              {func(b *fakenacos.Server, r *registry) { taken(t, r, 5); b.Kill() }, 0, false},
		"one shows it a bit later": {nil, 500 * time.Millisecond, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a, b := fakenacos.Start(t, fakenacos.Modern), fakenacos.Start(t, fakenacos.Modern)
			taken(t, mustOpenFake(t, fakeConfig(a)), 3)
			if tt.b == nil {
				b = a // one server with two names, with late reads
				a.Fault(func(f *fakenacos.Faults) { f.ReadLag, f.StaleReads = tt.lag, 2 })
			} else {
				tt.b(b, mustOpenFake(t, fakeConfig(b)))
			}
			_, err := openFake(t, fakeConfig(a, b))
			if e, refused := errors.AsType[*worker.UnusableError](err); refused != tt.refuse || err != nil && !refused || refused && !strings.Contains(e.Error(), "two clusters") {
				t.Errorf("err = %v, want refused = %v, (no error or refused = true) and (refused = false or text with \"two clusters\")", err, tt.refuse)
			}
		})
	}
}

// brokenServer is a node that, while it is ill, accepts connections, compares, and
// answers every other request with an error: no leader, no database.
type brokenServer struct {
	pb.UnimplementedRequestServer
	pb.UnimplementedBiRequestStreamServer
	asked atomic.Int64
}

func (*brokenServer) RequestBiStream(st pb.BiRequestStream_RequestBiStreamServer) error {
	<-st.Context().Done()
	return nil
}

func (s *brokenServer) Request(_ context.Context, in *pb.Payload) (*pb.Payload, error) {
	body := map[string]any{"resultCode": 200, "success": true}
	switch kind := in.GetMetadata().GetType(); {
	case strings.HasSuffix(kind, "CheckRequest"):
	case strings.Contains(string(in.GetBody().GetValue()), "leafsql.probe"):
		body = map[string]any{"resultCode": 500, "message": "Cas publish fail,server md5 may have changed."}
	default:
		s.asked.Add(1)
		body = map[string]any{"resultCode": 500, "errorCode": 500, "message": "CP raft group has no leader"}
	}
	b, err := json.Marshal(body)
	return &pb.Payload{Metadata: &pb.Metadata{Type: "R"}, Body: &anypb.Any{Value: b}}, err
}

// startWithBrokenServer returns a cluster that begins at a server that answers only
// with errors.
func startWithBrokenServer(t *testing.T, s *fakenacos.Server) (*cluster, *brokenServer) {
	t.Helper()
	lis, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g, ill := grpc.NewServer(), &brokenServer{}
	pb.RegisterRequestServer(g, ill)
	pb.RegisterBiRequestStreamServer(g, ill)
	go g.Serve(lis)
	t.Cleanup(g.Stop)
	cfg := fakeConfig(s, s)
	cfg.Servers[0] = Server{Host: "127.0.0.1", Port: 1, GRPCPort: lis.Addr().(*net.TCPAddr).Port}
	return beginAt(t, cfg).Slots.(*registry).configs.(*cluster), ill
}

func TestSickServerIsLeft(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	c, ill := startWithBrokenServer(t, s)
	err := c.publish(within30s(t), "d", "text", unusedSum())
	if !api.HasCode(err, api.Failed) || ill.asked.Load() != 1 || s.Publishes() != 0 {
		t.Errorf("publish() = %v with %d requests to the failing server and %d to the other, want an error, 1 and 0", err, ill.asked.Load(), s.Publishes())
	}
	if err := c.publish(within30s(t), "d", "text", unusedSum()); err != nil {
		t.Errorf("the next publish() with one good server = %v, want no error", err)
	}
}

// TestNamingErrorsKeepTheLink: registrations need more nodes than leases do, so their
// errors do not end a link.
func TestNamingErrorsKeepTheLink(t *testing.T) {
	c, _ := startWithBrokenServer(t, fakenacos.Start(t, fakenacos.Modern))
	before, err := c.connection(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if err := c.register(within30s(t), api.Instance{}); !api.HasCode(err, api.Failed) {
		t.Fatal(err)
	}
	if after, err := c.connection(t.Context()); after != before {
		t.Errorf("the link was given up for a registration: %v, want after = %v", err, before)
	}
}
