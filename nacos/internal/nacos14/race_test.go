package nacos14

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/leasetest"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// TestLateTieEndsTheLoser: a verified instance id is given to another instance, which
// registered earlier, shows later, and takes the document. The loser leaves and
// finds another worker id.
func TestLateTieEndsTheLoser(t *testing.T) {
	t.Parallel()
	for name, when := range map[string]func(*worker.Source, func()){
		"before the document is read": func(src *worker.Source, rival func()) {
			last := src.Last
			src.Last = func(ctx context.Context) (int, bool) {
				id, ok := last(ctx)
				rival()
				return id, ok
			}
		},
		"when the document is created": func(src *worker.Source, rival func()) {
			src.Slots = &interrupted{registry: src.Slots.(*registry), created: rival, taken: func() {}}
		},
		"while the document is left alone": func(src *worker.Source, rival func()) {
			src.Slots = &interrupted{registry: src.Slots.(*registry), created: func() {}, taken: rival}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakenacos.Start(t, fakenacos.Legacy)
			s.Fault(func(f *fakenacos.Faults) { f.SameID = 1 })
			l := quick(t, s)
			var once sync.Once
			src := l.source()
			when(&src, func() {
				once.Do(func() {
					in := api.Instance{IP: "10.0.0.1", Port: 1, Metadata: map[string]string{metaSince: "1"}}
					if err := l.register(t.Context(), in); err != nil {
						t.Error(err)
					}
					held := worker.Doc{Nonce: "rival", HighWater: time.Now().Add(time.Minute)}
					if err := l.publish(t.Context(), l.id(0), held.Encode()); err != nil {
						t.Error(err)
					}
					s.Fault(func(f *fakenacos.Faults) { f.SameID = 0 })
				})
			})
			id, k := leased(within30s(t), t, src)
			defer k.Close()
			list := s.Instances(fakeService)
			if id != 1 || len(list) != 2 || list[0].InstanceID != "0" || list[0].IP != "10.0.0.1" || list[1].InstanceID != "1" {
				t.Errorf("worker id %d, instances %+v, want id = 1, len(list) = 2, list[0].InstanceID = \"0\", list[0].IP = \"10.0.0.1\" and list[1].InstanceID = \"1\"", id, list)
			}
		})
	}
}

// interrupted calls a function when a document was created, or while it is
// taken.
type interrupted struct {
	*registry
	created, taken func()
}

func (i *interrupted) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	if slot == worker.RegistrySlot {
		return i.registry.Put(ctx, slot, d, expected)
	}
	if d.Free {
		defer i.created()
	} else {
		defer time.AfterFunc(300*time.Millisecond, i.taken).Stop()
	}
	return i.registry.Put(ctx, slot, d, expected)
}

// TestLateWriteIsRefused: of two instances that take a slot, one writes so long after
// its comparison that the other has read the document already.
func TestLateWriteIsRefused(t *testing.T) {
	t.Parallel()
	s := fakenacos.Start(t, fakenacos.Legacy)
	a := quick(t, s)
	compared, written := make(chan struct{}), make(chan struct{})
	b := quickAt(t, slowed(t, s, "/cs/configs", func() {
		close(compared)
		<-written // later than changeTime
	}))
	id, err := named(within30s(t), a)
	if err != nil {
		t.Fatal(err)
	}
	b.registration, b.ownID = a.registration, a.ownID
	v, ok, err := a.Put(within30s(t), id, worker.Doc{Nonce: "initial", Free: true}, "")
	if !ok {
		t.Fatal(err)
	}
	late := make(chan struct{})
	go func() {
		defer close(late)
		if _, ok, err := b.Put(t.Context(), id, doc(), v); ok || !leasetest.NotWritten(err) || !errors.Is(err, errTooLate) {
			t.Errorf("late Put() = %v, %v, want false and errTooLate", ok, err)
		}
	}()
	<-compared
	v, ok, err = a.Put(t.Context(), id, doc(), v)
	close(written)
	<-late
	switch {
	case errors.Is(err, errTooLate):
		t.Log("the machine was too slow for either") // and the worker id has no holder
	case !ok:
		t.Errorf("Put() in time = %v, %v, want true", ok, err)
	default:
		if _, ok, _ := a.Put(within30s(t), id, doc(), v); ok {
			t.Error("Put() on an overwritten document = true, want false")
		}
	}
}

// slowed returns the address of a server at which requests to one path arrive
// late.
func slowed(t *testing.T, s *fakenacos.Server, path string, by func()) string {
	t.Helper()
	to, err := url.Parse(addressOf(s))
	if err != nil {
		t.Fatal(err)
	}
	proxy := httputil.NewSingleHostReverseProxy(to)
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost && strings.HasSuffix(r.URL.Path, path) {
			by()
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(front.Close)
	return front.URL
}

// leased waits for a worker id, however often ids are in use.
func leased(ctx context.Context, t *testing.T, src worker.Source) (int, *worker.Keeper) {
	t.Helper()
	k, err := worker.Keep(func(context.Context) (worker.Source, error) { return src, nil },
		worker.Config{NewRegistry: true, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	go k.Wait(ctx)
	for k.Status().Phase != "holding" {
		select {
		case <-k.Status().Changed():
		case <-ctx.Done():
			t.Errorf("no worker id: %v", k.Status().Reason())
			return -1, k
		}
	}
	return k.Status().Worker, k
}
