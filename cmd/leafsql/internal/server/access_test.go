package server

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/selfsigned"
)

const nowhere = "app:s3cret@tcp(127.0.0.1:1)/away"

// TestToken: everything but what balancers ask needs it.
func TestToken(t *testing.T) {
	_, server := start(t, Config{DSN: nowhere, Token: "t0ken"})
	for _, path := range []string{"/", "/metrics", "/cache", "/db", "/decodeSnowflakeId", "/api/segment/get/x", "/api/snowflake/get/x", "/nosuch"} {
		for _, header := range []string{"", "Bearer ", "Bearer wrong", "Basic eDp3cm9uZw==", "t0ken"} {
			a := get(t, server+path, "Authorization", header)
			a.problem(t, 401, "unauthorized")
			if a.header.Get("WWW-Authenticate") == "" {
				t.Error(a.header)
			}
		}
		for _, header := range []string{"Bearer t0ken", "Basic eDp0MGtlbg=="} { // x:t0ken
			if a := get(t, server+path, "Authorization", header); a.code == 401 {
				t.Errorf("%s with %s: %+v", path, header, a)
			}
		}
	}
	get(t, server+"/healthz").want(t, "ok\n")
}

// TestTLS: also HTTP/2, and nothing in plain text.
func TestTLS(t *testing.T) {
	cert, err := selfsigned.New()
	if err != nil {
		t.Fatal(err)
	}
	certFile, keyFile, err := cert.Write(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	_, server, _ := run(t, Config{DSN: nowhere, TLSCert: certFile, TLSKey: keyFile})
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
		t.Errorf("plain text: %+v", a)
	}
}

// TestWarnOpen: who lets others in without a token is told, with the token's
// and the database's secrets left out.
func TestWarnOpen(t *testing.T) {
	for address, warned := range map[string]bool{"127.0.0.1:1": false, "[::1]:1": false, "0.0.0.0:1": true, "[::]:1": true, "10.0.0.1:1": true} {
		var log bytes.Buffer
		s, _ := start(t, Config{DSN: nowhere, Token: "t0ken", Logger: slog.New(slog.NewTextHandler(&log, nil))})
		s.warnOpen(address)
		if strings.Contains(log.String(), "WARN") != warned || strings.Contains(log.String(), "t0ken") {
			t.Errorf("%s: %s", address, log.String())
		}
	}
}

// TestLimits: what is one too many is refused or has to wait.
func TestLimits(t *testing.T) {
	s, server := start(t, Config{DSN: nowhere, MaxRequests: 8})
	s.requests.Add(8)
	get(t, server+"/decodeSnowflakeId?snowflakeId=1").problem(t, 503, "busy")
	get(t, server+"/healthz").want(t, "ok\n")
	s.requests.Add(-8)
	for range cap(s.pages) {
		s.pages <- struct{}{}
	}
	get(t, server+"/metrics").problem(t, 503, "busy")
	get(t, server+"/decodeSnowflakeId?snowflakeId=4194304").want(t, get(t, server+"/decodeSnowflakeId?snowflakeId=4194304").body)
	for range cap(s.pages) {
		<-s.pages
	}
	for range cap(s.waiting) {
		s.waiting <- struct{}{}
	}
	if _, err := s.next(t.Context(), s.connector.Segment("x"), 1); problemOf(err).Type != "busy" {
		t.Error(err)
	}

	// One connection: the next is answered when the first one is closed.
	_, server, _ = run(t, Config{DSN: nowhere, MaxConnections: 1})
	address := strings.TrimPrefix(server, "http://")
	first, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	answered := func(c net.Conn) string {
		io.WriteString(c, "GET /healthz HTTP/1.1\r\nHost: x\r\n\r\n")
		text := make([]byte, 100)
		n, _ := c.Read(text)
		return string(text[:n])
	}
	if got := answered(first); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Error(got)
	}
	second, err := net.Dial("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	defer second.Close()
	second.SetReadDeadline(time.Now().Add(200 * time.Millisecond))
	if got := answered(second); got != "" {
		t.Error(got)
	}
	first.Close()
	second.SetReadDeadline(time.Now().Add(30 * time.Second))
	if got := answered(second); !strings.HasPrefix(got, "HTTP/1.1 200") {
		t.Error(got)
	}
}
