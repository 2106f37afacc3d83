package nacos

import (
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

func TestLegacy(t *testing.T) {
	s := nacostest.Start(t, nacostest.V1, nacostest.Options{})
	t.Run("Lease", func(t *testing.T) { testLegacyLease(t, s) })
	t.Run("AtOnce", func(t *testing.T) { testLegacyAtOnce(t, s) })
	t.Run("Crash", func(t *testing.T) { testLegacyCrash(t, s) })
}

// testLegacyLease also looks for what is left of a lease.
func testLegacyLease(t *testing.T, s *nacostest.Server) {
	before := goleak.IgnoreCurrent()
	opts := worker.Options{"Service": "one", "Port": "7001"}
	l, err := worker.Open(within30s(t), spec(s), worker.Config{NewRegistry: true, Options: opts})
	if err != nil {
		t.Fatal(err)
	}
	cfg, err := parse(s.Addr(), opts)
	if err != nil {
		t.Fatal(err)
	}
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	w := newWeb(cfg)
	list, err := w.list(t.Context(), w.bases[0])
	if err != nil {
		t.Fatal(err)
	}
	if len(list) != 1 || list[0].Port != 7001 || list[0].InstanceID[:1] != strconv.Itoa(l.Worker()) || list[0].Ephemeral {
		t.Errorf("worker id %d, but the list is %+v", l.Worker(), list)
	}
	// Taken away in the console: the next renewal must not be confirmed.
	if err := w.deregister(t.Context(), list[0]); err != nil {
		t.Fatal(err)
	}
	limit := l.Limit()
	time.Sleep(11 * time.Second) // a renewal is every 10 s
	if l.Limit() != limit {
		t.Error("the lease was renewed without its instance")
	}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	w.close()
	goleak.VerifyNone(t, before)
}

// rounds is how often the start of many at once is repeated: NACOS_ROUNDS, or
// once.
func rounds() int {
	n, err := strconv.Atoi(os.Getenv("NACOS_ROUNDS"))
	if err != nil {
		return 1
	}
	return n
}

func testLegacyAtOnce(t *testing.T, s *nacostest.Server) {
	for round := range rounds() {
		service := "round" + strconv.Itoa(round)
		began := time.Now()
		var holders [16]*holder
		for i := range holders {
			holders[i] = startHolder(t, spec(s), service)
		}
		var mu sync.Mutex
		seen := make(map[int]bool)
		var wg sync.WaitGroup
		for _, h := range holders {
			wg.Go(func() {
				id, err := h.worker()
				mu.Lock()
				defer mu.Unlock()
				if err != nil || seen[id] {
					t.Errorf("round %d: worker id %d, given twice: %v, error: %v", round, id, seen[id], err)
				}
				seen[id] = true
			})
		}
		wg.Wait()
		t.Logf("round %d: %d worker ids after %v", round, len(seen), time.Since(began).Round(100*time.Millisecond))
		for _, h := range holders {
			wg.Go(func() {
				if err := h.leave(); err != nil {
					t.Errorf("round %d: %v", round, err)
				}
			})
		}
		wg.Wait()
		if t.Failed() {
			return
		}
	}
}

// testLegacyCrash kills a holder; another on its host must not take over what
// the first may still be thought to use.
func testLegacyCrash(t *testing.T, s *nacostest.Server) {
	first := startHolder(t, spec(s), "crash")
	id, err := first.worker()
	if err != nil {
		t.Fatal(err)
	}
	first.kill9()
	second := startHolder(t, spec(s), "crash")
	again, err := second.worker()
	if err != nil {
		t.Fatal(err)
	}
	if again == id {
		t.Errorf("worker id %d was given again at once", id)
	}
	if err := second.leave(); err != nil {
		t.Error(err)
	}
}
