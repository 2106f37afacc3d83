package nacos

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// TestLegacyLateTie gives a verified instance id to another, which registered
// earlier, only later it shows, and takes the document. The loser leaves and
// finds another worker id.
func TestLegacyLateTie(t *testing.T) {
	for name, when := range map[string]func(*worker.Source, func()){
		"before the document is read": func(src *worker.Source, rival func()) {
			workers := src.Workers
			src.Workers = func(ctx context.Context) ([]int, error) {
				ids, err := workers(ctx)
				rival()
				return ids, err
			}
		},
		"when the document is created": func(src *worker.Source, rival func()) {
			src.Slots = &interrupted{legacy: src.Slots.(*legacy), created: rival, taken: func() {}}
		},
		"while the document is left alone": func(src *worker.Source, rival func()) {
			src.Slots = &interrupted{legacy: src.Slots.(*legacy), created: func() {}, taken: rival}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakenacos.Start(t, fakenacos.Legacy)
			s.Fault(func(f *fakenacos.Faults) { f.SameID = 1 })
			l := quickLegacy(t, s)
			l.settle = 3 * time.Second // longer than package worker doubts that all slots are held
			var once sync.Once
			src := l.source()
			when(&src, func() {
				once.Do(func() {
					in := instance{IP: "10.0.0.1", Port: 1, Metadata: map[string]string{metaSince: "1"}}
					if err := l.web.register(t.Context(), in); err != nil {
						t.Error(err)
					}
					held := worker.Doc{Nonce: "rival", HW: time.Now().Add(time.Minute).UnixMilli()}
					if err := l.web.publish(t.Context(), l.doc(0), held.Encode()); err != nil {
						t.Error(err)
					}
					s.Fault(func(f *fakenacos.Faults) { f.SameID = 0 })
				})
			})
			lease, err := worker.Acquire(within30s(t), src, worker.Config{NewRegistry: true})
			if err != nil {
				t.Fatal(err)
			}
			defer lease.Close()
			list := s.Instances(fakeService)
			if lease.Worker() != 1 || len(list) != 2 || list[0].InstanceID != "0" || list[0].IP != "10.0.0.1" || list[1].InstanceID != "1" {
				t.Errorf("worker id %d, instances %+v", lease.Worker(), list)
			}
		})
	}
}

// interrupted has something happen when a document was created, or while it is
// taken.
type interrupted struct {
	*legacy
	created, taken func()
}

func (i *interrupted) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, worker.Result, error) {
	if d.Free {
		defer i.created()
	} else {
		defer time.AfterFunc(300*time.Millisecond, i.taken).Stop()
	}
	return i.legacy.Put(ctx, slot, d, expected)
}

// TestLegacyRace starts 16 at once whose registrations arrive late, so that
// ids are verified before all who have them show.
func TestLegacyRace(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	s.Fault(func(f *fakenacos.Faults) { f.SameID, f.Unregistered, f.ListLag = 2, 8, 20*time.Millisecond })
	var (
		mu   sync.Mutex
		seen = make(map[int]bool)
		wg   sync.WaitGroup
	)
	for range 16 {
		l := quickLegacy(t, s)
		l.web.client.Transport = late{l.web.client.Transport, "/ns/instance", func() time.Duration { return rand.N(3 * l.settle) }}
		wg.Go(func() {
			lease, err := worker.Acquire(untilUnique(t), l.source(), worker.Config{NewRegistry: true})
			if err != nil {
				t.Error(err)
				return
			}
			t.Cleanup(func() { lease.Close() })
			mu.Lock()
			defer mu.Unlock()
			if seen[lease.Worker()] {
				t.Errorf("worker id %d given twice", lease.Worker())
			}
			seen[lease.Worker()] = true
		})
	}
	wg.Wait()
}

// TestLegacyWrittenLate has one of two that take a slot write so long after it
// has compared that the other has looked already.
func TestLegacyWrittenLate(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Legacy)
	a, b := quickLegacy(t, s), quickLegacy(t, s)
	ids, err := a.workers(within30s(t))
	if err != nil {
		t.Fatal(err)
	}
	b.in, b.mine = a.in, a.mine
	v, res, err := a.Put(within30s(t), ids[0], worker.Initial(), "")
	if res != worker.OK {
		t.Fatal(res, err)
	}
	b.web.client.Transport = late{b.web.client.Transport, "/cs/configs", func() time.Duration { return changeTime + 500*time.Millisecond }}
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, res, err := b.Put(within30s(t), ids[0], doc(), v); res != worker.Refused || !errors.Is(err, errTooLate) {
			t.Errorf("written late: %v, %v", res, err)
		}
	})
	time.Sleep(100 * time.Millisecond) // b has compared
	v, res, err = a.Put(within30s(t), ids[0], doc(), v)
	if res != worker.OK {
		t.Errorf("written in time: %v, %v", res, err)
	}
	wg.Wait()
	if _, res, _ := a.Put(within30s(t), ids[0], doc(), v); res == worker.OK {
		t.Error("a renewal of what was overwritten was told ok")
	}
}

// late holds up what is posted to one path.
type late struct {
	http.RoundTripper
	path string
	by   func() time.Duration
}

func (l late) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Method == http.MethodPost && strings.HasSuffix(req.URL.Path, l.path) {
		time.Sleep(l.by())
	}
	return l.RoundTripper.RoundTrip(req)
}
