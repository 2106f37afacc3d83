package check

import (
	"testing"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
)

// TestNodesOfAClusterAreNoFinding: a node of a cluster gets lost writes back from the others; a node without a provider is
// in no cluster.
func TestNodesOfAClusterAreNoFinding(t *testing.T) {
	for want, global := range map[int]map[string]string{
		0: {"wsrep_on": "ON", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"},
		1: {"wsrep_on": "OFF", "wsrep_provider": "/usr/lib/galera/libgalera_smm.so"},
		2: {"wsrep_on": "ON", "wsrep_provider": "none", "log_bin": "ON", "sync_binlog": "0"},
	} {
		global["innodb_flush_log_at_trx_commit"] = "2"
		found := 0
		new(checker).checkCommitLoss(&databases.Store{Server: &databases.Server{Global: global}}, func(string, string) Finding {
			found++
			return Finding{}
		})
		if found != want {
			t.Errorf("%v: %d findings, want %d", global, found, want)
		}
	}
}
