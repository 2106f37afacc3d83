//go:build storm

package nacostest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// config reads or writes a config document over the HTTP API of the server's
// version.
func config(t *testing.T, s *Server, method, content string) string {
	t.Helper()
	path, form := "/nacos/v1/cs/configs", url.Values{"dataId": {"d"}, "group": {"g"}}
	if content != "" {
		form.Set("content", content)
	}
	resp, err := request(s, method, path, form)
	if err != nil {
		t.Fatal(err)
	}
	return resp
}

func request(s *Server, method, path string, form url.Values) (string, error) {
	req, err := http.NewRequest(method, "http://"+s.Addr()+path+"?"+form.Encode(), nil)
	if err != nil {
		return "", err
	}
	resp, err := client.Do(req)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return fmt.Sprint(resp.StatusCode, " ", strings.TrimSpace(string(b))), err
}

// await reads until the document is as expected: reads lag behind writes.
func await(t *testing.T, s *Server, want string) {
	t.Helper()
	var got string
	for range 50 {
		if got = config(t, s, http.MethodGet, ""); got == want || want == "404" && strings.HasPrefix(got, "404") {
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatalf("the document is %q, want %q", got, want)
}

// TestStormSnapshots tests the version that starts fastest. The tests of package
// nacos cover the properties of the others.
func TestStormSnapshots(t *testing.T) {
	s := Start(t, V1, Options{})
	if got := config(t, s, http.MethodPost, "one"); got != "200 true" {
		t.Fatalf("publishing: %s, want 200 true", got)
	}
	await(t, s, "200 one")
	running := s.Snapshot(t)
	config(t, s, http.MethodPost, "two")
	await(t, s, "200 two")
	s.Kill9()
	stopped := s.Snapshot(t)
	s.Restore(t, running)
	s.Restart(t)
	await(t, s, "200 one")
	s.Kill9()
	s.Restore(t, stopped)
	s.Restart(t)
	await(t, s, "200 two")
	s.Kill9()
	s.Wipe(t)
	s.Restart(t)
	await(t, s, "404")
}

func TestStormAuth(t *testing.T) {
	s := Start(t, V3, Options{Auth: true})
	if got := config(t, s, http.MethodGet, ""); !strings.HasPrefix(got, "403") {
		t.Errorf("without credentials: %s, want 403", got)
	}
	form := url.Values{"username": {User}, "password": {Password}}
	got, err := request(s, http.MethodPost, "/nacos/v1/auth/users/login", form)
	if err != nil || !strings.Contains(got, "accessToken") {
		t.Errorf("login = %s, %v, want an accessToken", got, err)
	}
}

func TestStormCluster(t *testing.T) {
	c := StartCluster(t, mysqltest.Database(t))
	if got := config(t, c.Nodes[0], http.MethodPost, "one"); got != "200 true" {
		t.Fatalf("publishing: %s, want 200 true", got)
	}
	for _, n := range c.Nodes {
		await(t, n, "200 one")
	}
	leader := c.Leader(t)
	c.Nodes[leader].Kill9()
	other := c.Nodes[(leader+1)%3]
	if got := config(t, other, http.MethodPost, "two"); got != "200 true" {
		t.Fatalf("publishing without a node: %s, want 200 true", got)
	}
	await(t, other, "200 two")
}
