package nacos

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/fakenacos"
)

// silent takes connections and says nothing: a node that hangs, or one behind
// a firewall.
func silent(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// httpPort serves HTTP alone.
func httpPort(t *testing.T, h http.Handler) int {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.Listener.Addr().(*net.TCPAddr).Port
}

// withUser has the fake want a user, who is in the config then.
func withUser(s *fakenacos.Server, cfg Config) Config {
	s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "u", "p" })
	cfg.Username, cfg.Password = "u", "p"
	return cfg
}

func TestLoginPastAServerThatHangs(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	cfg := withUser(s, fakeConfig(s, s, s))
	cfg.Servers[0].Port, cfg.Servers[1].Port = silent(t), silent(t)
	if err := cfg.complete(); err != nil {
		t.Fatal(err)
	}
	w := newWeb(cfg)
	ctx, cancel := context.WithTimeout(t.Context(), requestTime)
	defer cancel()
	token, err := w.token(ctx)
	if err != nil {
		t.Fatalf("with one of three servers: %v", err)
	}
	w.forget(token) // the next login begins where the last one worked
	ctx, cancel = context.WithTimeout(t.Context(), 900*time.Millisecond)
	defer cancel()
	if _, err := w.token(ctx); err != nil {
		t.Errorf("a login that knows who answers: %v", err)
	}
}

// TestTokenThatCantBeRenewed has the logins fail when 4/5 of a token's life
// are over.
func TestTokenThatCantBeRenewed(t *testing.T) {
	for name, port := range map[string]int{"away": 1, "silent": silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakenacos.Start(t, fakenacos.Modern)
			r := mustOpenFake(t, withUser(s, fakeConfig(s)))
			w := r.configs.(*cluster).web
			login := w.bases[0]
			w.bases = []string{"http://" + Server{Host: "127.0.0.1", Port: port}.http(), "http://127.0.0.1:1"}
			w.renew = time.Now()
			began := time.Now()
			for range 2 {
				if _, err := r.Anchor(within30s(t)); err != nil {
					t.Errorf("the token is good for hours still: %v", err)
				}
			}
			if w.renew.Before(began.Add(loginRest)) {
				t.Error("every request tries to log in")
			}
			w.renew, w.expires = time.Now(), time.Now()
			if _, err := r.Anchor(within30s(t)); err == nil {
				t.Error("a token was used after its end")
			}
			w.bases, w.next = []string{login}, 0
			if _, err := r.Anchor(within30s(t)); err != nil {
				t.Errorf("logins work again: %v", err)
			}
		})
	}
}

// TestLoginRefused tells a wrong password, which is final, from a server that
// can't say yet.
func TestLoginRefused(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	for code, final := range map[int]bool{
		http.StatusBadRequest: true, http.StatusUnauthorized: true, http.StatusForbidden: true,
		http.StatusNotFound: false, http.StatusInternalServerError: false, http.StatusServiceUnavailable: false,
		http.StatusOK: false, // of something that is no Nacos
	} {
		cfg := withUser(s, fakeConfig(s))
		cfg.Servers[0].Port = httpPort(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(code)
			io.WriteString(w, "server is STARTING now, please try again later!")
		}))
		src, err := Open(within30s(t), cfg)
		if _, refused := errors.AsType[*LoginError](err); refused != final || err != nil && !final {
			t.Errorf("HTTP %d at a login: %v", code, err)
		}
		if err != nil {
			continue
		}
		r := src.Slots.(*registry)
		if _, err := r.Anchor(within30s(t)); err == nil || !strings.Contains(err.Error(), "logging in") {
			t.Errorf("HTTP %d at a login: the anchor, %v", code, err)
		}
		if _, _, err := r.Put(within30s(t), 1, worker.Initial(), ""); err == nil {
			t.Errorf("HTTP %d at a login: a slot was written", code)
		}
		r.Close()
	}
}

// TestRedirect has no redirect take the password to another host.
func TestRedirect(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was sent to the host that a redirect named", r.Method, r.URL.Path)
	}))
	defer other.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		cfg := Config{Servers: []Server{{Host: "127.0.0.1"}}, Username: "u", Password: "hunter2"}
		cfg.Servers[0].Port = httpPort(t, http.RedirectHandler(other.URL+"/?token=s3cret", code))
		if err := cfg.complete(); err != nil {
			t.Fatal(err)
		}
		_, err := newWeb(cfg).token(within30s(t))
		if err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("HTTP %d: %v, want an error that names the host", code, err)
		}
	}
}

// TestVersionOfSomethingElse has something in front of the servers answer any
// path with 200 and JSON.
func TestVersionOfSomethingElse(t *testing.T) {
	port := httpPort(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, `{"code":503,"message":"no healthy upstream"}`)
	}))
	mustOpenFake(t, Config{Servers: []Server{{Host: "127.0.0.1", Port: port, GRPCPort: 1}}}) // it may come back
}
