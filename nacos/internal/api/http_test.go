package api

import (
	"context"
	"errors"
	"fmt"
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

func baseOf(port int) string { return fmt.Sprintf("http://127.0.0.1:%d/nacos", port) }

// silent accepts connections and never answers, like a node that hangs or one
// with a firewall in front.
func silent(t *testing.T) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0") // the kernel accepts the connections
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	return l.Addr().(*net.TCPAddr).Port
}

// serve returns the URL of a handler.
func serve(t *testing.T, h http.Handler) string {
	t.Helper()
	s := httptest.NewServer(h)
	t.Cleanup(s.Close)
	return s.URL
}

// withUser configures the fake to require a user, and returns a client that logs in
// at servers.
func withUser(s *fakenacos.Server, servers ...string) *HTTP {
	s.Fault(func(f *fakenacos.Faults) { f.Username, f.Password = "u", "p" })
	return NewHTTP(servers, nil, "u", "p")
}

func TestLoginSkipsAHangingServer(t *testing.T) {
	s := fakenacos.Start(t, fakenacos.Modern)
	login := func() error {
		h := withUser(s, baseOf(silent(t)), baseOf(silent(t)), baseOf(s.Port))
		ctx, cancel := context.WithTimeout(t.Context(), RequestTime)
		defer cancel()
		token, err := h.Token(ctx)
		if err != nil {
			return fmt.Errorf("with one of three servers: %w", err)
		}
		h.ForgetToken(token) // the next login begins at the server that worked last
		ctx, cancel = context.WithTimeout(t.Context(), 900*time.Millisecond)
		defer cancel()
		if _, err = h.Token(ctx); err != nil {
			err = fmt.Errorf("a login that knows who answers: %w", err)
		}
		return err
	}
	var err error
	for range 5 { // unless the machine pauses meanwhile
		if err = login(); err == nil {
			return
		}
	}
	t.Error(err)
}

// TestTokenStaysInUseIfLoginsFail: the old token stays in use if logins fail after
// 4/5 of its life.
func TestTokenStaysInUseIfLoginsFail(t *testing.T) {
	for name, port := range map[string]int{"away": 1, "silent": silent(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := fakenacos.Start(t, fakenacos.Modern)
			h := withUser(s, baseOf(s.Port))
			token := func() error {
				ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
				defer cancel()
				_, err := h.Token(ctx)
				return err
			}
			if err := token(); err != nil {
				t.Fatal(err)
			}
			login := h.bases
			h.bases, h.renewAt = []string{baseOf(port), "http://127.0.0.1:1"}, time.Now()
			began := time.Now()
			for range 2 {
				if err := token(); err != nil {
					t.Errorf("token() with a token that is valid for hours = %v, want no error", err)
				}
			}
			if h.renewAt.Before(began.Add(loginPause)) {
				t.Errorf("next login at %v, want a pause of %v", h.renewAt, loginPause)
			}
			h.renewAt, h.expires = time.Now(), time.Now()
			if err := token(); err == nil {
				t.Error("token() with an expired token = <nil>, want an error")
			}
			h.bases, h.next = login, 0
			if err := token(); err != nil {
				t.Errorf("token() when logins work again = %v, want no error", err)
			}
		})
	}
}

// TestRedirectSendsNoPassword: a redirect does not send the password to another host.
func TestRedirectSendsNoPassword(t *testing.T) {
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		t.Errorf("%s %s was sent to the host that a redirect named", r.Method, r.URL.Path)
	}))
	defer other.Close()
	for _, code := range []int{http.StatusMovedPermanently, http.StatusFound, http.StatusTemporaryRedirect, http.StatusPermanentRedirect} {
		h := NewHTTP([]string{serve(t, http.RedirectHandler(other.URL+"/?token=s3cret", code))}, nil, "u", "hunter2")
		_, err := h.Token(t.Context())
		if err == nil || !strings.Contains(err.Error(), "redirects to "+other.URL) || strings.Contains(err.Error(), "s3cret") {
			t.Errorf("HTTP %d: %v, want an error that names the host", code, err)
		}
	}
}

// TestTimeIsReadFromAnyAnswer: the clock is read from any kind of answer.
func TestTimeIsReadFromAnyAnswer(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	says := func(code int, date string) string {
		return serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header()["Date"] = []string{date}
			w.WriteHeader(code)
		}))
	}
	for name, bases := range map[string][]string{
		"found":             {says(200, at.Format(http.TimeFormat))},
		"not found":         {says(404, at.Format(http.TimeFormat))},
		"moved":             {says(302, at.Format(http.TimeFormat))},
		"the next one":      {"http://127.0.0.1:1", says(200, at.Format(http.TimeFormat))},
		"not a time":        {says(200, "noon")},
		"nobody is there":   {"http://127.0.0.1:1"},
		"no server at all?": nil,
	} {
		got, err := NewHTTP(bases, nil, "", "").Time(t.Context())
		if strings.HasPrefix(name, "no") && name != "not found" {
			if !got.IsZero() || err == nil && len(bases) > 0 {
				t.Errorf("%s: %v, %v", name, got, err)
			}
		} else if err != nil || !got.Equal(at.Add(time.Second/2)) {
			t.Errorf("%s: %v, %v", name, got, err)
		}
	}
}

// TestExcerptIsOneLine: errors show the server's message in one line, without the parts that
// change.
func TestExcerptIsOneLine(t *testing.T) {
	for body, want := range map[string]string{
		"plain":        "plain",
		"two\n  lines": "two lines",
		`{"timestamp":"2026-03-01T12:00:00","status":500,"message":"Handle API Compatibility failed"}`: "Handle API Compatibility failed",
		`{"code":503}`:           `{"code":503}`,
		strings.Repeat("x", 300): strings.Repeat("x", 200) + "…",
	} {
		if got := excerpt([]byte(body)); got != want {
			t.Errorf("%q: %q, want %q", body, got, want)
		}
	}
}

// TestErrorsHaveHints: errors contain the user, the server and a hint.
func TestErrorsHaveHints(t *testing.T) {
	for _, tt := range []struct {
		err  error
		want string
	}{
		{DeniedError("n1:9848", "", "no"), "leafsql: Nacos at n1:9848 requires a login: no; set leafNacosUsername and leafNacosPassword"},
		{DeniedError("n1:8848", "u", "no"), `leafsql: Nacos at n1:8848 denies access to user "u": no; check leafNacosUsername, leafNacosPassword and the user's rights on the namespace`},
		{UnusableError("n1:8848", "it is 2.0"+NewerHint), "leafsql: Nacos at n1:8848 can't hold worker ids: it is 2.0; use Nacos 2.3 or later, or another source of worker ids for all processes"},
	} {
		if got := tt.err.Error(); got != tt.want {
			t.Errorf("%s, want %s", got, tt.want)
		}
		if _, ok := tt.err.(*worker.UnusableError); !ok {
			t.Errorf("%v is tried again at once, want a pause", tt.err)
		}
	}
	err := fmt.Errorf("x: %w", UnsentError{io.EOF})
	if !IsUnsent(err) || !errors.Is(err, io.EOF) || IsUnsent(io.EOF) || !HasCode(fmt.Errorf("x: %w", &ServerError{Code: 300}), Missing) {
		t.Error("IsUnsent or HasCode returns the wrong value for a wrapped error")
	}
}
