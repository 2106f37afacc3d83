package nacostest

import (
	"net/http"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

func TestCluster(t *testing.T) {
	c := StartCluster(t, mysqltest.Database(t))
	if got := config(t, c.Nodes[0], http.MethodPost, "one"); got != "200 true" {
		t.Fatalf("publishing: %s", got)
	}
	for _, n := range c.Nodes {
		await(t, n, "200 one")
	}
	leader := c.Leader(t)
	c.Nodes[leader].Kill9()
	other := c.Nodes[(leader+1)%3]
	if got := config(t, other, http.MethodPost, "two"); got != "200 true" {
		t.Fatalf("publishing with a node away: %s", got)
	}
	await(t, other, "200 two")
}
