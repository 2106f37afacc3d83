package nacos

import (
	"context"
	"errors"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

func fakeConfig(servers ...*fakenacos.Server) Config {
	var cfg Config
	for _, s := range servers {
		cfg.Servers = append(cfg.Servers, Server{Host: "127.0.0.1", Port: s.Port, GRPCPort: s.GRPCPort})
	}
	return cfg
}

// openFake gives the registry on a fake, or the error.
func openFake(t *testing.T, cfg Config) (*registry, error) {
	t.Helper()
	src, err := Open(within30s(t), cfg)
	if err != nil {
		return nil, err
	}
	r := src.Slots.(*registry)
	t.Cleanup(func() { r.Close() })
	return r, nil
}

func mustOpenFake(t *testing.T, cfg Config) *registry {
	t.Helper()
	r, err := openFake(t, cfg)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestProbe(t *testing.T) {
	for name, c := range map[string]struct {
		faults fakenacos.Faults
		usable bool
	}{
		"good":                       {usable: true},
		"stale reads":                {fakenacos.Faults{ReadLag: 300 * time.Millisecond}, true},
		"replies lost":               {fakenacos.Faults{LoseReplies: 2}, true},
		"several creators told ok":   {fakenacos.Faults{AllCreators: true}, true},
		"refused now and then":       {fakenacos.Faults{RefuseRight: 2}, true},
		"refused texts are served":   {fakenacos.Faults{RefuseRight: 2, ServeRefused: true, ReadLag: 50 * time.Millisecond}, true},
		"ok to everything":           {fakenacos.Faults{Lie: true}, false},
		"ok without effect":          {fakenacos.Faults{LieWhenRight: true}, false},
		"the same, with stale reads": {fakenacos.Faults{LieWhenRight: true, ServeRefused: true, ReadLag: 50 * time.Millisecond}, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakenacos.Start(t, fakenacos.Modern)
			s.Fault(func(f *fakenacos.Faults) { *f = c.faults })
			r, err := openFake(t, fakeConfig(s))
			_, unusable := errors.AsType[*UnusableError](err)
			if unusable == c.usable || err != nil && !unusable {
				t.Fatalf("Open: %v", err)
			}
			for c.usable { // a lost reply leaves it to the next call
				if err := r.ready(within30s(t)); err == nil {
					break
				}
			}
		})
	}
}

func TestRightSumRefusedForAWhile(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	s.Fault(func(f *fakenacos.Faults) { f.RefuseRight = 1 })
	time.AfterFunc(time.Second, func() { s.Fault(func(f *fakenacos.Faults) { f.RefuseRight = 0 }) })
	r := mustOpenFake(t, fakeConfig(s))
	if !r.proven {
		t.Error("the probe gave up")
	}
}

// doc is any document that has not been used.
func doc() worker.Doc {
	return worker.Doc{Nonce: noSum(), HW: time.Now().UnixMilli()}
}

func TestPut(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := mustOpenFake(t, fakeConfig(s))
	ctx := within30s(t)
	first := doc()
	v, res, err := r.Put(ctx, 7, first, "")
	if res != worker.OK {
		t.Fatal(res, err)
	}
	if _, res, err := r.Put(ctx, 7, doc(), ""); res != worker.Refused || err != nil {
		t.Errorf("upon an existing slot taken for missing: %v, %v", res, err)
	}
	if _, res, err := r.Put(ctx, 7, doc(), worker.Version(noSum())); res != worker.Refused || err != nil {
		t.Errorf("upon another version: %v, %v", res, err)
	}
	if d, got, err := r.Get(ctx, 7); err != nil || got != v || !d.Same(first) {
		t.Errorf("Get: %v, %s, %v", d, got, err)
	}

	s.Fault(func(f *fakenacos.Faults) { f.LoseReplies = 1 })
	before, second := s.Publishes(), doc()
	if _, res, err := r.Put(ctx, 7, second, v); res != worker.Unknown || err == nil {
		t.Errorf("with the reply lost: %v, %v", res, err)
	}
	if n := s.Publishes() - before; n != 1 {
		t.Errorf("it was sent %d times", n)
	}
	s.Fault(func(f *fakenacos.Faults) { f.LoseReplies = 0 })
	d, v, err := r.Get(ctx, 7)
	if err != nil || !d.Same(second) {
		t.Errorf("after the lost reply: %v, %v", d, err)
	}

	s.Fault(func(f *fakenacos.Faults) { f.ReadLag = 200 * time.Millisecond })
	third := doc()
	if _, res, err := r.Put(ctx, 7, third, v); res != worker.OK {
		t.Fatal(res, err)
	}
	if d, _, err := r.Get(ctx, 7); err != nil || !d.Same(third) {
		t.Errorf("a read after a write shows what was before: %v, %v", d, err)
	}
}

func TestUnreadableDocument(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := mustOpenFake(t, fakeConfig(s))
	if err := r.configs.publish(t.Context(), r.id(1), "edited by hand", noSum()); err != nil {
		t.Fatal(err)
	}
	if _, v, err := r.Get(t.Context(), 1); err == nil || v != "" {
		t.Errorf("Get: version %q, %v; want an error", v, err)
	}
}

func TestServerAway(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	dead := fakenacos.Start(t, fakenacos.Legacy) // has no gRPC
	deadConfig := fakeConfig(dead)
	deadConfig.Servers[0].Port = dead.GRPCPort // nor HTTP
	r := mustOpenFake(t, deadConfig)
	if _, _, err := r.Get(t.Context(), 1); err == nil {
		t.Error("Get from nobody: no error")
	}
	if _, res, err := r.Put(t.Context(), 1, doc(), ""); res != worker.Refused || err == nil {
		t.Errorf("Put to nobody: %v, %v; want refused, for nothing was sent", res, err)
	}
	for range 8 { // whichever comes first
		both := fakeConfig(s)
		both.Servers = append(both.Servers, deadConfig.Servers...)
		if _, err := mustOpenFake(t, both).Anchor(t.Context()); err != nil {
			t.Errorf("with one of two servers: %v", err)
		}
	}
}

func TestConnection(t *testing.T) {
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
	for name, disturb := range map[string]func(){
		"broken": s.Break, "reset": s.Reset, "its token forgotten": s.Forget,
	} {
		disturb()
		eventually(t, "an answer on a connection that was "+name, func() bool {
			_, err := r.Anchor(t.Context())
			return err == nil
		})
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, _, err := r.Get(ctx, 1); err == nil {
		t.Error("Get with a context that has ended: no error")
	}
	if err := r.Close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := r.Get(t.Context(), 1); !errors.Is(err, errClosed) {
		t.Errorf("Get after Close: %v", err)
	}
	goleak.VerifyNone(t, before, goleak.IgnoreAnyFunction("google.golang.org/grpc/internal/transport.(*http2Server).HandleStreams"),
		goleak.IgnoreAnyFunction("net/http.(*conn).serve"))
}

func TestWipeShowsInTheAnchor(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	s.Fault(func(f *fakenacos.Faults) { f.AllCreators, f.ReadLag = true, 100*time.Millisecond })
	var rs [8]*registry
	for i := range rs {
		rs[i] = mustOpenFake(t, fakeConfig(s))
	}
	anchors := func() string {
		var got [8]string
		eventually(t, "one anchor for all", func() bool {
			var wg sync.WaitGroup
			for i, r := range rs {
				wg.Go(func() {
					var err error
					if got[i], err = r.Anchor(within30s(t)); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
			for _, a := range got {
				if a != got[0] {
					return false
				}
			}
			return true
		})
		return got[0]
	}
	first := anchors()
	if anchors() != first {
		t.Error("the anchor changed by itself")
	}
	s.Wipe()
	time.Sleep(150 * time.Millisecond)
	if anchors() == first {
		t.Error("the anchor is the same after a wipe")
	}
}

const fakeService = "public/DEFAULT_GROUP@@leafsql"

func TestPresence(t *testing.T) {
	for name, faults := range map[string]fakenacos.Faults{
		"over gRPC, the old API gone": {NoHTTP: 410},
		"over the old API":            {NoPersistent: true},
		"seen late":                   {ListLag: 500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			s := fakenacos.Start(t, fakenacos.Modern)
			former := mustOpenFake(t, fakeConfig(s)).configs.(*cluster)
			crashed := instance{IP: "10.0.0.2", Port: 80, Metadata: map[string]string{metaWorker: "0"}}
			if err := former.register(t.Context(), crashed); err != nil {
				t.Fatal(err)
			}
			time.Sleep(faults.ListLag)
			s.Fault(func(f *fakenacos.Faults) { *f = faults; f.RefuseNaming = true })
			cfg := fakeConfig(s)
			cfg.Instance = Instance{IP: "10.0.0.1", Port: 80}
			src, err := Open(within30s(t), cfg)
			if err != nil {
				t.Fatal(err)
			}
			// A registration that is refused keeps nobody from a worker id.
			l, err := worker.Acquire(within30s(t), src, worker.Config{NewRegistry: true, Workers: 1})
			if err != nil {
				t.Fatal(err)
			}
			s.Fault(func(f *fakenacos.Faults) { f.RefuseNaming = false })
			eventually(t, "our instance alone", func() bool {
				list := s.Instances(fakeService)
				return len(list) == 1 && list[0].Port == 80 && list[0].IP == "10.0.0.1" &&
					list[0].Metadata[metaWorker] == strconv.Itoa(l.Worker())
			})
			eventually(t, "the last worker id of an equal address", func() bool {
				id, ok := src.Last(t.Context())
				return ok && id == l.Worker()
			})
			s.Revert()
			if id, ok := src.Last(t.Context()); ok {
				t.Errorf("a last worker id, %d, from an instance without metadata", id)
			}
			if err := l.Close(); err != nil {
				t.Fatal(err)
			}
			if list := s.Instances(fakeService); len(list) > 0 {
				t.Errorf("after Close there is %v", list)
			}
		})
	}
}

// ids counts timestamps that were issued twice under one worker id.
type ids struct {
	mu   sync.Mutex
	upTo map[int][]span
	dups int
}

type span struct{ first, last int64 }

func (i *ids) issued(id int, s span) {
	i.mu.Lock()
	defer i.mu.Unlock()
	for _, o := range i.upTo[id] {
		if s.first <= o.last && o.first <= s.last {
			i.dups++
		}
	}
	i.upTo[id] = append(i.upTo[id], s)
}

// TestChurn has processes come, go and crash while everything goes wrong.
func TestChurn(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	r := mustOpenFake(t, fakeConfig(s))
	if _, err := r.Anchor(t.Context()); err != nil {
		t.Fatal(err)
	}
	for slot := range 512 {
		d := doc()
		d.Free = true
		if _, res, err := r.Put(t.Context(), slot, d, ""); res != worker.OK {
			t.Fatal(res, err)
		}
	}
	s.Fault(func(f *fakenacos.Faults) {
		*f = fakenacos.Faults{ReadLag: 30 * time.Millisecond, LoseReplies: 10, RefuseRight: 10, ServeRefused: true}
	})
	seen := ids{upTo: make(map[int][]span)}
	var lives, crashes atomic.Int64
	end := time.Now().Add(8 * time.Second)
	var wg sync.WaitGroup
	for p := range 12 {
		wg.Go(func() {
			for life := 0; time.Now().Before(end); life++ {
				src, err := Open(within30s(t), fakeConfig(s))
				if err != nil {
					t.Error(err)
					return
				}
				l, err := worker.Acquire(within30s(t), src, worker.Config{Workers: 512, Bound: 6 * time.Second})
				if err != nil {
					t.Log(err)
					continue // a registry this bad may give up
				}
				var last atomic.Int64
				last.Store(l.Start() - 1)
				if err := l.Bind(last.Load); err != nil {
					t.Error(err)
				}
				for range 5 {
					last.Store(min(l.Now(), l.Limit()))
					if last.Load() > l.Limit() { // it ended meanwhile
						break
					}
					time.Sleep(10 * time.Millisecond)
				}
				if issued := (span{l.Start(), last.Load()}); issued.last >= issued.first {
					seen.issued(l.Worker(), issued)
				}
				lives.Add(1)
				if (p+life)%4 == 0 { // nobody is told that it went
					src.Slots.(*registry).Close()
					crashes.Add(1)
				}
				l.Close()
			}
		})
	}
	for time.Now().Before(end) {
		time.Sleep(300 * time.Millisecond)
		s.Break()
	}
	wg.Wait()
	t.Logf("%d leases, %d not given back", lives.Load(), crashes.Load())
	if seen.dups > 0 || lives.Load() < 20 {
		t.Errorf("%d leases, %d overlap in time with another of their worker id", lives.Load(), seen.dups)
	}
}
