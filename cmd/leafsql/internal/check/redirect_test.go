package check

import (
	"strings"
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
)

// TestRedirectURLIsAFinding: a redirect_url of MariaDB, which not all servers have, is a finding.
func TestRedirectURLIsAFinding(t *testing.T) {
	for url, want := range map[string]int{"": 0, "mysql://10.0.0.9:3306": 1} {
		c := new(checker)
		c.checkRedirect(&databases.Server{Global: map[string]string{"redirect_url": url}})
		if len(c.findings) != want || want > 0 && !strings.Contains(c.findings[0].Message, url) {
			t.Errorf("redirect_url %q: findings %+v, want %d", url, c.findings, want)
		}
	}
}
