package server

import (
	"bytes"
	"crypto/tls"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/selfsigned"
)

const unreachableDSN = "app:s3cret@tcp(127.0.0.1:1)/away"

// TestPathsRequireTheToken: all paths except those that balancers probe require the token.
func TestPathsRequireTheToken(t *testing.T) {
	_, server := startServer(t, Config{DSN: unreachableDSN, Token: "t0ken"})
	for _, path := range []string{"/", "/metrics", "/cache", "/db", "/decodeSnowflakeId", "/api/segment/get/x", "/api/snowflake/get/x", "/nosuch"} {
		for _, header := range []string{"", "Bearer ", "Bearer wrong", "bearer wrong", "Basic eDp3cm9uZw==", "t0ken", "Bearert0ken", "Other t0ken", "Bearer T0KEN"} {
			a := get(t, server+path, "Authorization", header)
			a.wantProblem(t, 401, "unauthorized")
			if a.header.Get("WWW-Authenticate") == "" {
				t.Errorf("header = %v, want WWW-Authenticate", a.header)
			}
		}
		for _, header := range []string{"Bearer t0ken", "bearer t0ken", "BEARER t0ken", "Basic eDp0MGtlbg==", "basic eDp0MGtlbg=="} { // x:t0ken
			if a := get(t, server+path, "Authorization", header); a.code == 401 {
				t.Errorf("%s with %s: answer = %+v, want another status than 401", path, header, a)
			}
		}
	}
	get(t, server+"/healthz").wantBody(t, "ok\n")
}

// TestTLSOffersHTTP2: the server offers HTTP/2 over TLS, and answers nothing in plain text.
func TestTLSOffersHTTP2(t *testing.T) {
	cert, certFile, keyFile := selfsigned.Files(t)
	_, server, _ := runServer(t, Config{DSN: unreachableDSN, TLSCert: certFile, TLSKey: keyFile})
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: cert.Client(), ForceAttemptHTTP2: true}}
	defer client.CloseIdleConnections()
	res, err := client.Get(server + "/healthz")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	if res.StatusCode != 200 || res.ProtoMajor != 2 || res.TLS.Version < tls.VersionTLS12 {
		t.Errorf("%+v", res)
	}
	if a := get(t, strings.Replace(server, "https", "http", 1)+"/healthz"); a.code != 400 {
		t.Errorf("answer in plain text = %+v, want 400", a)
	}
}

// TestIdleHTTP2ConnectionsAreClosed: a connection of HTTP/2 is also closed after its answer if connections are scarce.
func TestIdleHTTP2ConnectionsAreClosed(t *testing.T) {
	cert, certFile, keyFile := selfsigned.Files(t)
	_, server, _ := runServer(t, Config{DSN: unreachableDSN, TLSCert: certFile, TLSKey: keyFile, MaxConnections: 1})
	for range 3 {
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{TLSClientConfig: cert.Client(), ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections() // after all of the clients
		res, err := client.Get(server + "/healthz")
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		if res.StatusCode != 200 || res.ProtoMajor != 2 {
			t.Errorf("%+v", res)
		}
	}
}

// TestOpenAddressIsLogged: an address that others can use without a token is logged, and the log contains no token and no
// password of the database.
func TestOpenAddressIsLogged(t *testing.T) {
	for address, warned := range map[string]bool{"127.0.0.1:1": false, "[::1]:1": false, "0.0.0.0:1": true, "[::]:1": true, "10.0.0.1:1": true} {
		var log bytes.Buffer
		s, _ := startServer(t, Config{DSN: unreachableDSN, Token: "t0ken", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.warnOpen(address)
		if strings.Contains(log.String(), "WARN") != warned || strings.Contains(log.String(), "t0ken") {
			t.Errorf("log for %s = %s\nwarns: %t, want %t and no token", address, log.String(), !warned, warned)
		}
	}
}

// TestRequestsAboveLimitsAreRefusedOrWait: a request above a limit is refused or has to wait.
func TestRequestsAboveLimitsAreRefusedOrWait(t *testing.T) {
	s, server := startServer(t, Config{DSN: unreachableDSN, MaxRequests: 8})
	s.requests.Add(8)
	get(t, server+"/decodeSnowflakeId?snowflakeId=1").wantProblem(t, 503, "busy")
	get(t, server+"/healthz").wantBody(t, "ok\n")
	s.requests.Add(-8)
	for range cap(s.pages) {
		s.pages <- struct{}{}
	}
	get(t, server+"/metrics").wantProblem(t, 503, "busy")
	get(t, server+"/decodeSnowflakeId?snowflakeId=4194304").wantBody(t, get(t, server+"/decodeSnowflakeId?snowflakeId=4194304").body)
	for range cap(s.pages) {
		<-s.pages
	}
	for range cap(s.waiting) {
		s.waiting <- struct{}{}
	}
	if _, err := s.drawIDs(t.Context(), s.connector.Segment("x"), 1); problemOf(err).Type != "busy" {
		t.Error(err)
	}

	// With one connection, the next one is answered when the first is closed.
	_, server, _ = runServer(t, Config{DSN: unreachableDSN, MaxConnections: 1})
	first, second := dial(t, server), dial(t, server)
	second.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if got := healthz(second); got != "" {
		t.Errorf("answer on the second connection = %q, want none yet", got)
	}
	first.Close()
	second.SetReadDeadline(time.Now().Add(30 * time.Second))
	if got := healthz(second); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Errorf("answer on the second connection = %q, want 200", got)
	}
}

func dial(t *testing.T, server string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", strings.TrimPrefix(server, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

// healthz sends a request on a connection that stays open, and returns the raw answer.
func healthz(c net.Conn) string {
	io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
	text := make([]byte, 300)
	n, _ := c.Read(text)
	return string(text[:n])
}

// TestIdleConnectionsLockOutNobody: a client that leaves thousands of connections idle does not lock out others. The log and
// the metrics show it, even if the connections send no request.
func TestIdleConnectionsLockOutNobody(t *testing.T) {
	const limit = 3000
	var log logBuffer
	s, server, stop := runServer(t, Config{DSN: unreachableDSN, MaxConnections: limit, Logger: slog.New(slog.NewTextHandler(&log, nil))})
	var idle []net.Conn
	for i := range limit + 200 {
		c := dial(t, server)
		c.SetReadDeadline(time.Now().Add(20 * time.Second))
		answer := healthz(c)
		if !strings.HasPrefix(answer, "HTTP/1.1 200") {
			t.Fatalf("connection %d: %q", i, answer)
		}
		if closed := strings.Contains(answer, "Connection: close"); closed != (i >= limit-limit/8) {
			t.Fatalf("connection %d: %q", i, answer)
		}
		idle = append(idle, c)
	}
	if a := get(t, server+"/healthz"); a.code != 200 {
		t.Errorf("answer = %+v, want 200", a)
	}
	waitFor(t, "the gauges", func() bool { // the connections that were closed last may still be counted
		a := get(t, server+"/metrics")
		return strings.Contains(a.body, "leafsql_http_connections_limit 3000\n") && strings.Contains(a.body, fmt.Sprintf("leafsql_http_connections %d\n", limit-limit/8+1))
	})
	const few, none, half = "few connections are free", "all connections are in use", "half of the connections are free again"
	if log.count("WARN", few, "limit=3000", "127.0.0.1") != 1 || log.count(none) != 0 {
		t.Error(log.String())
	}
	for range limit / 8 { // they end after 5 s without a request
		idle = append(idle, dial(t, server))
	}
	waitFor(t, "the line at the limit", func() bool { return log.count("WARN", none) == 1 })
	waitFor(t, "an answer", func() bool {
		c, err := sendRequest(t.Context(), "GET", server+"/healthz")
		return err == nil && c.code == 200
	})
	for _, c := range idle {
		c.Close()
	}
	waitFor(t, "the end of all", func() bool { return s.connections.open.Load() <= 1 })
	get(t, server+"/healthz").wantBody(t, "ok\n")
	if log.count("WARN", "connections") != 2 || log.count("INFO", half) != 1 {
		t.Error(log.String())
	}
	if err := stop(); err != nil {
		t.Error(err)
	}
	if n := s.connections.open.Load(); n != 0 || len(s.connections.byClient) != 0 {
		t.Errorf("connections after the end = %d of %v, want none", n, s.connections.byClient)
	}
}
