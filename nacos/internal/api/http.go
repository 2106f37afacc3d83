package api

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"golang.org/x/sync/semaphore"
)

// HTTP is a client of the servers' HTTP API.
type HTTP struct {
	bases    []string // scheme, host, port and context path of each server
	client   *http.Client
	user     string
	password string

	loginLock *semaphore.Weighted // a mutex that respects contexts, for the fields below
	next      int                 // the server to log in at: the last one that worked
	token     string              // the access token; "" if there is none
	renewAt   time.Time           // time at which to request another token
	expires   time.Time
}

// loginPause is the pause after a failed login while the token is still valid.
const loginPause = 10 * time.Second

// NewHTTP returns a client for servers, which are URLs with the context path.
// user is "" if they need none. The caller closes the client.
func NewHTTP(servers []string, conf *tls.Config, user, password string) *HTTP {
	return &HTTP{
		bases: servers, user: user, password: password, loginLock: semaphore.NewWeighted(1),
		client: &http.Client{
			Timeout: RequestTime,
			Transport: &http.Transport{
				Proxy:           http.ProxyFromEnvironment,
				TLSClientConfig: conf.Clone(),
				MaxIdleConns:    4,
				IdleConnTimeout: 20 * time.Second,
			},
			// Requests hold the password or a token, which a redirect would send to
			// another server.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
	}
}

// Servers returns the servers' URLs.
func (h *HTTP) Servers() []string { return h.bases }

// User returns the user name, "" if there is none.
func (h *HTTP) User() string { return h.user }

// Close closes idle connections.
func (h *HTTP) Close() { h.client.CloseIdleConnections() }

// Token returns the access token for requests, "" without a user. It requests a
// new token well before the old one expires. If the login fails, the old token
// is used until it expires, and a call waits for at most one server. Without a
// valid token, the error joins the errors of all servers, such as DeniedError's,
// or is context.Cause(ctx).
func (h *HTTP) Token(ctx context.Context) (string, error) {
	if h.user == "" {
		return "", nil
	}
	if h.loginLock.Acquire(ctx, 1) != nil {
		return "", context.Cause(ctx)
	}
	defer h.loginLock.Release(1)
	now := time.Now()
	good := h.token != "" && now.Before(h.expires)
	if good && now.Before(h.renewAt) {
		return h.token, nil
	}
	var failed []error
	for range h.bases {
		err := h.login(ctx, h.bases[h.next])
		if err == nil {
			return h.token, nil
		}
		h.next = (h.next + 1) % len(h.bases)
		if good {
			h.renewAt = now.Add(loginPause)
			return h.token, nil
		}
		if failed = append(failed, err); ctx.Err() != nil {
			break
		}
	}
	return "", errors.Join(failed...)
}

// ForgetToken discards a token that a server refused.
func (h *HTTP) ForgetToken(token string) {
	h.loginLock.Acquire(context.Background(), 1) // does not fail
	if h.token == token {
		h.token = ""
	}
	h.loginLock.Release(1)
}

// login requests a token from one server, and leaves time for the others. The
// older path is tried first: 3.1 has both, and versions without it answer 404
// or 410 at once.
func (h *HTTP) login(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, RequestTime/time.Duration(len(h.bases))))
	defer cancel()
	form := url.Values{"username": {h.user}, "password": {h.password}}
	var (
		resp *http.Response
		body []byte
		err  error
	)
	for _, path := range []string{"/v1/auth/users/login", "/v3/auth/user/login"} {
		if resp, body, err = h.send(ctx, http.MethodPost, base+path, form); err != nil {
			return fmt.Errorf("logging in to Nacos: %w", err)
		}
		if resp.StatusCode != http.StatusNotFound && resp.StatusCode != http.StatusGone {
			break
		}
	}
	var r struct {
		AccessToken string `json:"accessToken"`
		TokenTTL    int64  `json:"tokenTtl"`
	}
	message := fmt.Sprintf("HTTP %d %s", resp.StatusCode, excerpt(body))
	switch {
	case refusesLogin(resp.StatusCode, message):
		return DeniedError(resp.Request.URL.Host, h.user, message)
	case resp.StatusCode != http.StatusOK:
		return fmt.Errorf("logging in to Nacos: %s: %s", base, message)
	case json.Unmarshal(body, &r) != nil || r.AccessToken == "":
		return fmt.Errorf("logging in to Nacos: %s: no token in the answer", base) // without the answer, which may contain a token
	}
	life := time.Duration(r.TokenTTL) * time.Second
	h.token, h.renewAt, h.expires = r.AccessToken, time.Now().Add(life*4/5), time.Now().Add(life)
	return nil
}

// refusesLogin reports whether a server refused the user or password. It returns
// false if the server could not check them yet.
func refusesLogin(code int, message string) bool {
	switch code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return true
	}
	// 3.1.0 answers a wrong password with this.
	return code == http.StatusInternalServerError && strings.Contains(message, "Handle API Compatibility failed")
}

// Time returns the time of the first server that answers, to the second. The
// error is only for logs.
func (h *HTTP) Time(ctx context.Context) (time.Time, error) {
	var failed []error
	for _, base := range h.bases {
		resp, _, err := h.send(ctx, http.MethodGet, base+"/", nil)
		if err == nil {
			var t time.Time
			if t, err = http.ParseTime(resp.Header.Get("Date")); err == nil {
				return t.Add(time.Second / 2), nil // the header has whole seconds
			}
		}
		failed = append(failed, err)
	}
	return time.Time{}, errors.Join(failed...)
}

// Version returns the version of a server. found is false if no server
// answered, or if only a proxy in front of the server answered.
func (h *HTTP) Version(ctx context.Context) (version string, found bool) {
	for _, base := range h.bases {
		resp, body, err := h.send(ctx, http.MethodGet, base+"/v1/console/server/state", nil)
		var state struct {
			Version string `json:"version"`
		}
		if err == nil && resp.StatusCode == http.StatusOK && json.Unmarshal(body, &state) == nil && state.Version != "" {
			return state.Version, true
		}
	}
	return "", false
}

// send sends a request to one server. The form is in the body if the method
// allows it, since access logs show URLs.
func (h *HTTP) send(ctx context.Context, method, address string, form url.Values) (*http.Response, []byte, error) {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	} else {
		address += "?" + form.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return nil, nil, errors.New("the address of a Nacos server can't be used in a URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded;charset=utf-8")
	req.Header.Set("Client-Version", ClientVersion)
	req.Header.Set("User-Agent", ClientVersion)
	resp, err := h.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which may contain a token
		}
		return nil, nil, fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 && method != http.MethodGet {
		return nil, nil, fmt.Errorf("%s: it redirects to %s://%s, which leafsql does not follow; list the servers' own addresses", req.URL.Host, to.Scheme, to.Host)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	return resp, b, err
}

// Call sends a request with the token to one server, and again with a new token
// if the server refused the old token. The error is an UnsentError if there is no
// token, the error of DeniedError if the server denies access, or a *ServerError for another
// status. After any other error the request may have been executed.
func (h *HTTP) Call(ctx context.Context, method, base, path string, form url.Values) ([]byte, error) {
	for again := false; ; again = true {
		token, err := h.Token(ctx)
		if err != nil {
			return nil, UnsentError{err}
		}
		if token != "" {
			form.Set("accessToken", token)
		}
		resp, body, err := h.send(ctx, method, base+path, form)
		switch {
		case err != nil:
			return nil, err
		case resp.StatusCode == http.StatusOK:
			return body, nil
		case resp.StatusCode == http.StatusForbidden && token != "" && !again:
			h.ForgetToken(token)
		case resp.StatusCode == http.StatusForbidden:
			return nil, DeniedError(resp.Request.URL.Host, h.user, excerpt(body))
		default:
			return nil, &ServerError{Request: path, Code: resp.StatusCode, Message: excerpt(body)}
		}
	}
}

// excerpt returns a body in one line, or only its message if the body is JSON
// with a message.
func excerpt(b []byte) string {
	var r struct {
		Message string `json:"message"`
	}
	if json.Unmarshal(b, &r) == nil && r.Message != "" {
		b = []byte(r.Message)
	}
	s := strings.Join(strings.Fields(string(b)), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
