package nacos

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"sync/atomic"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

// TestWorkerKitOnTheFake runs each part on a separate server.
func TestWorkerKitOnTheFake(t *testing.T) {
	workertest.Registry(func(t testing.TB) workertest.Fixture { return onFake(t, fakenacos.Faults{}) }).RunRules(t)
}

func onFake(t testing.TB, faults fakenacos.Faults) workertest.Fixture {
	s := fakenacos.Start(t, fakenacos.Modern)
	s.Fault(func(f *fakenacos.Faults) { *f = faults })
	cfg := fakeConfig(s)
	hand := instanceEditor{addr: cfg.Servers[0].http(), service: "kit"}
	return workertest.Fixture{
		Unreliable: faults != fakenacos.Faults{},
		Open: func(ctx context.Context) (worker.Source, error) {
			cfg := cfg
			cfg.Service = hand.service
			return Open(ctx, cfg)
		},
		Wipe: func() error { s.Wipe(); return nil },
		Copy: func() (func() error, error) {
			restore := s.Copy()
			return func() error { restore(); return nil }, nil
		},
		Stop:    func() error { s.Kill(); return nil },
		Start:   func() error { s.Revive(); return nil },
		Remove:  hand.remove,
		Corrupt: hand.corrupt,
	}
}

// testRules runs each part with a separate service, and so separate documents.
func testRules(t *testing.T, s *nacostest.Server) {
	var services atomic.Int64
	workertest.Registry(func(testing.TB) workertest.Fixture {
		return onServer(s, fmt.Sprintf("rules%d", services.Add(1)))
	}).RunRules(t)
}

// onServer returns a fixture that does not disturb the server, as other tests use
// it.
func onServer(s *nacostest.Server, service string) workertest.Fixture {
	hand := instanceEditor{addr: s.Addr(), service: service}
	return workertest.Fixture{
		Open: func(ctx context.Context) (worker.Source, error) {
			open, err := openDSN(s.Addr(), worker.Options{"Service": service})
			if err != nil {
				return worker.Source{}, err
			}
			return open(ctx)
		},
		Remove:  hand.remove,
		Corrupt: hand.corrupt,
	}
}

// instanceEditor changes a service's documents as people do, over the HTTP API, and
// repeats a change if it got no answer.
type instanceEditor struct{ addr, service string }

func (h instanceEditor) remove(slot int) error { return h.change(http.MethodDelete, slot, "") }
func (h instanceEditor) corrupt(slot int) error {
	return h.change(http.MethodPost, slot, "edited by hand")
}

func (h instanceEditor) change(method string, slot int, content string) error {
	form := url.Values{"group": {"DEFAULT_GROUP"}, "dataId": {h.service + ".worker." + strconv.Itoa(slot)}}
	if content != "" {
		form.Set("content", content)
	}
	var last error
	for range 10 {
		req, err := http.NewRequest(method, "http://"+h.addr+"/nacos/v1/cs/configs?"+form.Encode(), nil)
		if err != nil {
			return err
		}
		req.Close = true
		resp, err := http.DefaultClient.Do(req)
		switch {
		case err != nil:
			last = err
		case resp.StatusCode != http.StatusOK:
			return cmp.Or(resp.Body.Close(), fmt.Errorf("%s %s: %s", method, form.Get("dataId"), resp.Status))
		default:
			return resp.Body.Close()
		}
	}
	return last
}
