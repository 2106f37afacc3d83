package nacos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"
)

// web is the HTTP API: logins, and all that 1.4 has.
type web struct {
	bases     []string // scheme, host, port and context path of each server
	client    *http.Client
	namespace string
	group     string
	service   string
	user      string
	password  string

	turn    chan struct{} // holds one token; guards what follows
	next    int           // the server to log in at: the one that did last
	current string        // token
	renew   time.Time     // when to ask for another
	expires time.Time
}

// loginRest is how far apart failed logins are, as long as the token is good.
const loginRest = 10 * time.Second

func newWeb(cfg Config) *web {
	w := &web{
		client: &http.Client{
			Timeout: requestTime,
			Transport: &http.Transport{
				Proxy:           http.ProxyFromEnvironment,
				TLSClientConfig: cfg.TLS.Clone(),
				MaxIdleConns:    4,
				IdleConnTimeout: 20 * time.Second,
			},
			// What is sent holds the password or a token: for nobody else.
			CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		},
		namespace: cfg.Namespace, group: cfg.Group, service: cfg.Service,
		user: cfg.Username, password: cfg.Password, turn: make(chan struct{}, 1),
	}
	scheme := "http://"
	if cfg.TLS != nil && !cfg.PlainHTTP {
		scheme = "https://"
	}
	for _, s := range cfg.Servers {
		w.bases = append(w.bases, scheme+s.http()+cfg.ContextPath)
	}
	return w
}

func (w *web) close() { w.client.CloseIdleConnections() }

// LoginError says that a server did not accept the user name or password.
type LoginError struct {
	Server  string
	User    string
	Message string // what the server said
}

func (e *LoginError) Error() string {
	return fmt.Sprintf("leafsql: Nacos at %s does not let user %q log in: %s; check leafNacosUsername and leafNacosPassword", e.Server, e.User, e.Message)
}

// token gives the access token that requests carry, "" without a user. A new
// one is wanted in good time. If it can't be had the old one is good to its
// end, and a request is not kept waiting by more than one server for it.
func (w *web) token(ctx context.Context) (string, error) {
	if w.user == "" {
		return "", nil
	}
	select {
	case w.turn <- struct{}{}:
		defer func() { <-w.turn }()
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
	now := time.Now()
	good := w.current != "" && now.Before(w.expires)
	if good && now.Before(w.renew) {
		return w.current, nil
	}
	var failed []error
	for range w.bases {
		err := w.login(ctx, w.bases[w.next])
		if err == nil {
			return w.current, nil
		}
		w.next = (w.next + 1) % len(w.bases)
		if good {
			w.renew = now.Add(loginRest)
			return w.current, nil
		}
		if failed = append(failed, err); ctx.Err() != nil {
			break
		}
	}
	return "", errors.Join(failed...)
}

// forget gives up a token that a server refused.
func (w *web) forget(token string) {
	w.turn <- struct{}{}
	if w.current == token {
		w.current = ""
	}
	<-w.turn
}

// login asks one server for a token, and leaves time for the others. The older
// path is tried first: 3.1 has both, and versions without it answer 404 or 410
// at once.
func (w *web) login(ctx context.Context, base string) error {
	ctx, cancel := context.WithTimeout(ctx, max(time.Second, requestTime/time.Duration(len(w.bases))))
	defer cancel()
	form := url.Values{"username": {w.user}, "password": {w.password}}
	var code int
	var body []byte
	for _, path := range []string{"/v1/auth/users/login", "/v3/auth/user/login"} {
		var err error
		code, body, err = w.send(ctx, http.MethodPost, base+path, form)
		if err != nil {
			return fmt.Errorf("logging in: %w", err)
		}
		if code != http.StatusNotFound && code != http.StatusGone {
			break
		}
	}
	var r struct {
		AccessToken string `json:"accessToken"`
		TokenTTL    int64  `json:"tokenTtl"`
	}
	message := fmt.Sprintf("HTTP %d %s", code, excerpt(body))
	switch {
	case refusesLogin(code, message):
		return &LoginError{Server: base, User: w.user, Message: message}
	case code != http.StatusOK:
		return fmt.Errorf("logging in: %s: %s", base, message)
	case json.Unmarshal(body, &r) != nil || r.AccessToken == "":
		return fmt.Errorf("logging in: %s: no token in the answer", base) // which is not shown: it may hold one
	}
	life := time.Duration(r.TokenTTL) * time.Second
	w.current, w.renew, w.expires = r.AccessToken, time.Now().Add(life*4/5), time.Now().Add(life)
	return nil
}

// refusesLogin tells a wrong user or password from a server that can't say yet.
func refusesLogin(code int, message string) bool {
	switch code {
	case http.StatusBadRequest, http.StatusUnauthorized, http.StatusForbidden:
		return true
	}
	// So does 3.1.0 say it.
	return code == http.StatusInternalServerError && strings.Contains(message, "Handle API Compatibility failed")
}

// send sends a request to one server. The form travels in the body, where it
// can: access logs show addresses.
func (w *web) send(ctx context.Context, method, address string, form url.Values) (int, []byte, error) {
	var body io.Reader
	if method == http.MethodPost {
		body = strings.NewReader(form.Encode())
	} else {
		address += "?" + form.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, method, address, body)
	if err != nil {
		return 0, nil, errors.New("the address of a Nacos server can't be used in a URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded;charset=utf-8")
	req.Header.Set("Client-Version", clientVersion)
	req.Header.Set("User-Agent", clientVersion)
	resp, err := w.client.Do(req)
	if err != nil {
		if e, ok := errors.AsType[*url.Error](err); ok {
			err = e.Err // without the address, which may hold a token
		}
		return 0, nil, fmt.Errorf("%s: %w", req.URL.Host, err)
	}
	defer resp.Body.Close()
	if to, err := resp.Location(); err == nil && resp.StatusCode/100 == 3 {
		return 0, nil, fmt.Errorf("%s: redirects to %s://%s, which is not followed; name the servers themselves", req.URL.Host, to.Scheme, to.Host)
	}
	b, err := io.ReadAll(io.LimitReader(resp.Body, 8<<20))
	return resp.StatusCode, b, err
}

// call sends a request with the token to one server, and again with a new one
// if the token was too old.
func (w *web) call(ctx context.Context, method, base, path string, form url.Values) ([]byte, error) {
	for again := false; ; again = true {
		token, err := w.token(ctx)
		if err != nil {
			return nil, unsentError{err}
		}
		if token != "" {
			form.Set("accessToken", token)
		}
		code, body, err := w.send(ctx, method, base+path, form)
		switch {
		case err != nil:
			return nil, err
		case code == http.StatusOK:
			return body, nil
		case code == http.StatusForbidden && token != "" && !again:
			w.forget(token)
		default:
			return nil, &ServerError{Request: path, Code: code, Message: excerpt(body)}
		}
	}
}

// any sends a request to the servers in turn until one answers.
func (w *web) any(ctx context.Context, method, path string, form url.Values) ([]byte, error) {
	var failed []error
	for _, base := range w.bases {
		body, err := w.call(ctx, method, base, path, form)
		if err == nil || isServerError(err) {
			return body, err
		}
		failed = append(failed, err)
	}
	return nil, errors.Join(failed...)
}

func (w *web) register(ctx context.Context, in instance) error {
	meta, err := json.Marshal(in.Metadata)
	if err != nil {
		return err
	}
	form := w.instanceForm(in)
	form.Set("weight", strconv.FormatFloat(in.Weight, 'f', -1, 64))
	form.Set("enabled", "true")
	form.Set("healthy", "true")
	form.Set("metadata", string(meta))
	_, err = w.any(ctx, http.MethodPost, "/v1/ns/instance", form)
	return err
}

func (w *web) deregister(ctx context.Context, in instance) error {
	_, err := w.any(ctx, http.MethodDelete, "/v1/ns/instance", w.instanceForm(in))
	return err
}

func (w *web) instanceForm(in instance) url.Values {
	form := w.serviceForm()
	form.Set("ip", in.IP)
	form.Set("port", strconv.Itoa(in.Port))
	form.Set("clusterName", in.ClusterName)
	form.Set("ephemeral", "false")
	return form
}

func (w *web) serviceForm() url.Values {
	return url.Values{
		"namespaceId": {namingNamespace(w.namespace)},
		"serviceName": {w.group + "@@" + w.service},
		"groupName":   {w.group},
	}
}

// excerpt is the beginning of a body, in one line.
func excerpt(b []byte) string {
	s := strings.Join(strings.Fields(string(b)), " ")
	if len(s) > 200 {
		s = strings.ToValidUTF8(s[:200], "") + "…"
	}
	return s
}
