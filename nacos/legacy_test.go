package nacos

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/testutil/nacostest"
)

func TestLegacy(t *testing.T) {
	t.Parallel()
	s := nacostest.Start(t, nacostest.V1, nacostest.Options{})
	for name, test := range map[string]func(*testing.T, *nacostest.Server){
		"Lease": testLegacyLease, "Crash": testLegacyCrash,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, s)
		})
	}
}

func testLegacyLease(t *testing.T, s *nacostest.Server) {
	opts := worker.Options{"Service": "one", "Port": "7001"}
	k := mustLease(t, specOf(s), opts, worker.Config{})
	id := k.Status().Worker
	// If the server was too slow for a search, the instance is released, and the next one has another port.
	list := instances(t, s, http.MethodGet, "/list", url.Values{})
	own := slices.IndexFunc(list, func(in api.Instance) bool {
		return strings.HasPrefix(in.InstanceID, strconv.Itoa(id)+"#") || in.InstanceID == strconv.Itoa(id)
	})
	if own < 0 || list[own].Ephemeral || len(list) == 1 && list[own].Port != 7001 {
		t.Fatalf("worker id %d with the instances %+v, want its own persistent instance", id, list)
	}
	// Removed in the console: the next renewal must not be confirmed.
	instances(t, s, http.MethodDelete, "", url.Values{"ip": {list[own].IP}, "port": {strconv.Itoa(list[own].Port)}, "ephemeral": {"false"}})
	limit := k.Status().Limit
	eventually(t, "a renewal", func() bool { return k.Status().Err != nil || !k.Status().Limit.Equal(limit) })
	if s := k.Status(); !s.Limit.Equal(limit) {
		t.Errorf("Status() without the instance = %+v, want the limit %v", s, limit)
	}
	if err := k.Close(); err != nil {
		t.Fatal(err)
	}
}

// instances requests the instances of the service "one" from the server, as a
// console does.
func instances(t *testing.T, s *nacostest.Server, method, path string, form url.Values) []api.Instance {
	t.Helper()
	form.Set("serviceName", "DEFAULT_GROUP@@one")
	req, err := http.NewRequest(method, "http://"+s.Addr()+"/nacos/v1/ns/instance"+path+"?"+form.Encode(), nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	var r struct{ Hosts []api.Instance }
	if err := json.NewDecoder(resp.Body).Decode(&r); method == http.MethodGet && err != nil {
		t.Fatal(err)
	}
	return r.Hosts
}

// testLegacyCrash kills a holder. Another process on its host must not take the
// worker id while the first one may still use it.
func testLegacyCrash(t *testing.T, s *nacostest.Server) {
	first := startHolder(t, specOf(s), "crash")
	id, err := first.worker()
	if err != nil {
		t.Fatal(err)
	}
	first.kill9()
	second := startHolder(t, specOf(s), "crash")
	again, err := second.worker()
	if err != nil {
		t.Fatal(err)
	}
	if again == id {
		t.Errorf("worker id %d was given again at once, want again other than %v", id, id)
	}
	if err := second.leave(); err != nil {
		t.Error(err)
	}
}
