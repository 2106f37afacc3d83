package nacos

import (
	"context"
	"errors"
	"net"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

func fakeConfig(servers ...*fakenacos.Server) Config {
	var cfg Config
	for _, s := range servers {
		cfg.Servers = append(cfg.Servers, Server{Host: "127.0.0.1", Port: s.Port, GRPCPort: s.GRPCPort})
	}
	return cfg
}

func httpOf(cfg Config) *api.HTTP {
	return api.NewHTTP(cfg.urls(), cfg.TLS, cfg.Username, cfg.Password)
}

// openFake returns the registry on a fake, or the error.
func openFake(t *testing.T, cfg Config) (*registry, error) {
	t.Helper()
	src, err := Open(within30s(t), cfg)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { src.Close() })
	return src.Slots.(*registry), nil
}

func mustOpenFake(t *testing.T, cfg Config) *registry {
	t.Helper()
	var r *registry
	eventually(t, "a source", func() bool {
		var err error
		if r, err = openFake(t, cfg); err != nil {
			t.Log(err)
		}
		return err == nil
	})
	return r
}

// TestProbeRefusesALyingServer: a server's compare-and-set is checked when the source is opened
// and a slot is taken.
func TestProbeRefusesALyingServer(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		faults fakenacos.Faults
		usable bool
	}{
		"good":                       {usable: true},
		"stale reads":                {fakenacos.Faults{ReadLag: 300 * time.Millisecond}, true},
		"replies lost":               {fakenacos.Faults{LoseReplies: 2}, true},
		"several creators told true": {fakenacos.Faults{AllCreators: true}, true},
		"refused now and then":       {fakenacos.Faults{RefuseRight: 2}, true},
		"refused texts are served":   {fakenacos.Faults{RefuseRight: 2, ServeRefused: true, ReadLag: 50 * time.Millisecond}, true},
		"ok to everything":           {fakenacos.Faults{Lie: true}, false},
		"overwritten in any case":    {fakenacos.Faults{NoCompare: true}, false},
		"ok without effect":          {fakenacos.Faults{LieWhenRight: true}, false},
		"the same, with stale reads": {fakenacos.Faults{LieWhenRight: true, ServeRefused: true, ReadLag: 50 * time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakenacos.Start(t, fakenacos.Modern)
			s.Fault(func(f *fakenacos.Faults) { *f = c.faults })
			r, err := openFake(t, fakeConfig(s))
			if err == nil {
				err = takeSlot(t, r)
			}
			_, unusable := errors.AsType[*worker.UnusableError](err)
			if unusable == c.usable || err != nil && !unusable {
				t.Fatal(err)
			}
		})
	}
}

// takeSlot creates a slot and takes it, however often the server fails, and
// returns an error only if the server is unusable.
func takeSlot(t *testing.T, r *registry) error {
	ctx := within30s(t)
	for ; ctx.Err() == nil; api.Sleep(ctx, 100*time.Millisecond) { // the pause lets reads of refused text end
		_, v, err := r.Get(ctx, 3)
		if err != nil {
			continue
		}
		d := doc()
		if v == "" {
			d = worker.Doc{Nonce: "initial", Free: true}
		}
		_, ok, err := r.Put(ctx, 3, d, v)
		if _, unusable := errors.AsType[*worker.UnusableError](err); unusable || ok && v != "" {
			return err
		}
	}
	return ctx.Err()
}

// doc returns a document that has not been used.
func doc() worker.Doc {
	return worker.Doc{Nonce: unusedSum(), HighWater: time.UnixMilli(time.Now().UnixMilli())}
}

func TestPutComparesVersions(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := mustOpenFake(t, fakeConfig(s))
	ctx := within30s(t)
	first := doc()
	v, ok, err := r.Put(ctx, 7, first, "")
	if !ok {
		t.Fatal(err)
	}
	if _, ok, err := r.Put(ctx, 7, doc(), ""); ok || err != nil {
		t.Errorf("upon an existing slot taken for missing: %v, %v, want ok = false and no error", ok, err)
	}
	if _, ok, err := r.Put(ctx, 7, doc(), worker.Version(unusedSum())); ok || err != nil {
		t.Errorf("upon another version: %v, %v, want ok = false and no error", ok, err)
	}
	if d, got, err := r.Get(ctx, 7); err != nil || got != v || d != first {
		t.Errorf("Get: %v, %s, %v, want got = %v, d = %v and no error", d, got, err, v, first)
	}

	s.Fault(func(f *fakenacos.Faults) { f.LoseReplies = 1 })
	before, second := s.Publishes(), doc()
	if _, ok, err := r.Put(ctx, 7, second, v); ok || err == nil || leasetest.NotWritten(err) {
		t.Errorf("reply lost: Put() = %v, %v, want false and an error after which the write may exist", ok, err)
	}
	if n := s.Publishes() - before; n != 1 {
		t.Errorf("it was sent %d times, want 1", n)
	}
	s.Fault(func(f *fakenacos.Faults) { f.LoseReplies = 0 })
	d, v, err := r.Get(ctx, 7)
	if err != nil || d != second {
		t.Errorf("after the lost reply: %v, %v, want d = %v and no error", d, err, second)
	}

	const lag = 200 * time.Millisecond
	s.Fault(func(f *fakenacos.Faults) { f.ReadLag = lag })
	time.Sleep(lag) // afterwards reads do not show the text that the unconfirmed write replaced
	third := doc()
	if _, ok, err := r.Put(ctx, 7, third, v); !ok {
		t.Fatal(err)
	}
	if d, _, err := r.Get(ctx, 7); err != nil || d != third {
		t.Errorf("a read after a write shows what was before: %v, %v, want d = %v and no error", d, err, third)
	}
}

func TestUnreadableDocumentIsAnError(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := mustOpenFake(t, fakeConfig(s))
	if err := r.configs.publish(t.Context(), api.DocumentID(r.service, 1), "edited by hand", unusedSum()); err != nil {
		t.Fatal(err)
	}
	if _, v, err := r.Get(t.Context(), 1); err == nil || v != "" {
		t.Errorf("Get: version %q, %v; want an error", v, err)
	}
}

func TestServerAwayRefusesPuts(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	away := fakenacos.Start(t, fakenacos.Modern)
	deadConfig := fakeConfig(away)
	r := mustOpenFake(t, deadConfig)
	away.Kill()
	if _, err := openFake(t, deadConfig); err == nil {
		t.Error("Open() without a running server = <nil>, want an error")
	}
	if _, _, err := r.Get(t.Context(), 1); err == nil {
		t.Error("Get() without a running server = <nil>, want an error")
	}
	if _, ok, err := r.Put(t.Context(), 1, doc(), ""); ok || !leasetest.NotWritten(err) {
		t.Errorf("Put to nobody: %v, %v; want refused, for nothing was sent", ok, err)
	}
	for range 8 { // the first server is random
		both := fakeConfig(s)
		both.Servers = append(both.Servers, deadConfig.Servers...)
		if _, _, err := mustOpenFake(t, both).Get(t.Context(), 1); err != nil {
			t.Errorf("Get() with one of two servers = %v, want no error", err)
		}
	}
}

// TestSilentServerIsSkipped: one of two servers accepts connections and never answers.
func TestSilentServerIsSkipped(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	silent, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts the connections
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	cfg := fakeConfig(s, s)
	cfg.Servers[0].GRPCPort = silent.Addr().(*net.TCPAddr).Port
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	c := newCluster(cfg, httpOf(cfg))
	defer c.close()
	eventually(t, "an answer from one of two servers", func() bool {
		c.next = 0
		_, _, err := c.query(within30s(t), "anything")
		return err == nil
	})
}

func TestEndedConnectionFailsCalls(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "u", "p" })
	before := goleak.IgnoreCurrent()
	cfg := fakeConfig(s)
	cfg.Username, cfg.Password = "u", "p"
	src, err := Open(within30s(t), cfg)
	if err != nil {
		t.Fatal(err)
	}
	r := src.Slots.(*registry)
	c := r.configs.(*cluster)
	for _, d := range []struct {
		what    string
		disturb func()
		moves   bool // changes to another connection
	}{
		{"broken", s.Break, true}, {"reset", s.Reset, true}, {"with its token forgotten", s.Forget, false},
	} {
		was, err := c.connection(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		d.disturb()
		eventually(t, "an answer after a connection "+d.what, func() bool {
			if _, _, err := r.Get(t.Context(), 1); err != nil {
				return false
			}
			is, err := c.connection(t.Context())
			return err == nil && (is != was) == d.moves
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Get(ctx, 1); err == nil {
		t.Error("Get() with an ended context = <nil>, want an error")
	}
	if err := src.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Get(t.Context(), 1); !errors.Is(err, errClosed) {
		t.Errorf("Get after Close: %v, want errClosed", err)
	}
	nothingRuns(t, before)
}

// nothingRuns fails if goroutines are left, except those of the fake.
func nothingRuns(t *testing.T, before goleak.Option) {
	t.Helper()
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/transport.(*http2Server).HandleStreams"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}

// TestRefusedServerLeavesNoGoroutine: no goroutine is left after a search that
// refused the server.
func TestRefusedServerLeavesNoGoroutine(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	s.Fault(func(f *fakenacos.Faults) { f.Lie = true })
	before := goleak.IgnoreCurrent()
	_, err := keep(t, func(ctx context.Context) (worker.Source, error) { return Open(ctx, fakeConfig(s)) }, worker.Config{NewRegistry: true})
	if _, unusable := errors.AsType[*worker.UnusableError](err); !unusable {
		t.Fatal(err)
	}
	nothingRuns(t, before)
}
