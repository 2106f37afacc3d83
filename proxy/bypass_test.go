package proxy_test

import (
	"slices"
	"testing"

	"github.com/leafsql/leafsql/proxy/proxytest"
)

// TestSocketIsNotNamed: the texts with which Rust's clients query the server's socket, to connect to it, return
// no socket. Any other text with the variable is answered by the server.
func TestSocketIsNotNamed(t *testing.T) {
	runOnServers(t, func(t *testing.T, p *testDatabase) {
		path := p.queryValue("SELECT @@socket")
		if path == "" {
			t.Fatal("the server has no socket")
		}
		for _, capabilities := range []uint64{proxytest.Common, proxytest.Common | proxytest.DeprecateEOF | proxytest.QueryAttributes} {
			o := p.rootOptions()
			o.Capabilities = capabilities
			c := p.dial(proxytest.Start(t, p.dsn+"?leafTables=none"), o)
			for text, want := range map[string][]string{
				"SELECT @@socket": {""}, "SELECT @@wait_timeout,@@socket": {p.queryValue("SELECT @@wait_timeout"), ""}, "SELECT @@autocommit,@@wait_timeout,@@socket": {"1", p.queryValue("SELECT @@wait_timeout"), ""},
				"SELECT @@socket, 1": {path, "1"}, "SELECT 1, @@socket": {"1", path}, "SELECT @@global.socket": {path}, "select @@socket": {path},
				"SELECT LENGTH(@@socket) > 0, '@@socket'": {"1", "@@socket"}, "SELECT 1 /* @@socket": nil,
			} {
				a := c.Query(text)
				var got []string
				if rows := a.Rows(); len(rows) == 1 {
					got = rows[0]
				}
				if !slices.Equal(got, want) {
					number, message := a.Err()
					t.Errorf("%s: row = %q, error %d %s, want %q", text, got, number, message, want)
				}
			}
		}
	})
}
