package nacos

import (
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"errors"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// httpPort starts a server of HTTP alone and returns its port.
func httpPort(t *testing.T, h http.Handler) int {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// withUser configures the fake to require a user, and returns the config with that
// user.
func withUser(s *fakenacos.Server, cfg Config) Config {
	s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "u", "p" })
	cfg.Username, cfg.Password = "u", "p"
	return cfg
}

// TestLoginRefused: a wrong password is final; a server that cannot check it
// yet is not.
func TestLoginRefused(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	for code, final := range map[int]bool{
		http.StatusBadRequest: true, http.StatusUnauthorized: true, http.StatusForbidden: true,
		http.StatusNotFound: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
		http.StatusOK: false, // an answer of something else than Nacos
	} {
		cfg := withUser(s, fakeConfig(s))
		cfg.Servers[0].Port = httpPort(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, "server is STARTING now, please try again later!")
		}))
		_, err := Open(within30s(t), cfg)
		if _, refused := errors.AsType[*api.LoginError](err); refused != final || err == nil || !final && !strings.Contains(err.Error(), "logging in") {
			t.Errorf("HTTP %d at a login: %v, want a LoginError: %t", code, err, final)
		}
		if _, unusable := errors.AsType[*worker.UnusableError](err); unusable != final {
			t.Errorf("HTTP %d at a login: %T, want unusable = %v", code, err, final)
		}
	}
}

// TestVersionRefusesOtherServers: something in front of the servers answers every
// path with 200 and JSON.
func TestVersionRefusesOtherServers(t *testing.T) {
	port := httpPort(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"code":503,"message":"no healthy upstream"}`)
	}))
	_, err := Open(within30s(t), Config{Servers: []Server{{Host: "127.0.0.1", Port: port, GRPCPort: 1}}})
	if _, unusable := errors.AsType[*worker.UnusableError](err); err == nil || unusable { // the servers may come back
		t.Error(err)
	}
}
