//go:build unix

package clustertest

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/leafsql/leafsql/testutil/mysqltest"
)

// Galera starts three MariaDB nodes with Galera. If a node hangs, the others wait for it for 1.5 s and then treat it as
// dead. args are further options of all nodes.
func Galera(t testing.TB, args ...string) *Cluster {
	t.Helper()
	library, err := galeraLibrary()
	if err != nil {
		t.Fatal(err)
	}
	return start(t, galera{}, func(i int, ports [3]int) mysqltest.Config {
		return mysqltest.Config{Kind: mysqltest.MariaDB, Args: append([]string{
			"--binlog-format=ROW", "--innodb-autoinc-lock-mode=2",
			"--wsrep-on=ON", "--wsrep-provider=" + library,
			fmt.Sprintf("--wsrep-cluster-name=leafsql-%d", ports[0]), // another cluster may get the port of a dead node
			fmt.Sprintf("--wsrep-cluster-address=gcomm://127.0.0.1:%d,127.0.0.1:%d,127.0.0.1:%d", ports[0], ports[1], ports[2]),
			fmt.Sprintf("--wsrep-node-name=n%d", i), fmt.Sprintf("--wsrep-node-address=127.0.0.1:%d", ports[i]),
			"--wsrep-sst-method=ist",
			"--wsrep-provider-options=" + strings.Join([]string{
				fmt.Sprintf("gmcast.listen_addr=tcp://127.0.0.1:%d", ports[i]),
				fmt.Sprintf("ist.recv_addr=127.0.0.1:%d", ports[i]+1), fmt.Sprintf("ist.recv_bind=127.0.0.1:%d", ports[i]+1),
				"evs.keepalive_period=PT0.4S", "evs.inactive_check_period=PT0.4S", "evs.suspect_timeout=PT1.5S",
				"evs.inactive_timeout=PT3S", "evs.install_timeout=PT3S", "gcache.size=32M",
			}, ";"),
		}, args...)}
	})
}

// galeraLibrary returns the path of Galera's library, from its package or unpacked by install.sh.
func galeraLibrary() (string, error) {
	const library = "usr/lib/galera/libgalera_smm.so"
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", fmt.Errorf("clustertest: no cache folder: %w; set XDG_CACHE_HOME", err)
	}
	for _, root := range []string{"/", filepath.Join(cache, "leafsql", "galera")} {
		path := filepath.Join(root, library)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", errors.New("clustertest: no Galera found; run testutil/clustertest/install.sh, which unpacks it (Debian), or install the package galera-4")
}

type galera struct{}

//go:embed wsrep_sst_ist
var transferScript []byte

const history = "6c656166-7371-11ef-8000-000000000000"

// form writes the files that the nodes of a cluster save before a power cut, and starts the nodes. Their
// data is equal, so they form the cluster again by themselves without a state transfer.
func (galera) form(ctx context.Context, nodes [3]*mysqltest.Server) error {
	member := func(i int) string { return fmt.Sprintf("6c65616%d-7371-11ef-8000-00000000000%d", i+1, i+1) }
	view := fmt.Sprintf("#vwbeg\nview_id: 3 %s 1\nbootstrap: 0\nmember: %s 0\nmember: %s 0\nmember: %s 0\n#vwend\n", member(0), member(0), member(1), member(2))
	return runTogether(len(nodes), func(i int) error {
		for name, text := range map[string]string{
			"grastate.dat":     "version: 2.1\nuuid: " + history + "\nseqno: 1\nsafe_to_bootstrap: 0\n",
			"gvwstate.dat":     "my_uuid: " + member(i) + "\n" + view,
			"../wsrep_sst_ist": string(transferScript),
		} {
			if err := os.WriteFile(filepath.Join(nodes[i].DataDir(), name), []byte(text), 0o755); err != nil {
				return err
			}
		}
		return nodes[i].Launch("--wsrep-start-position=" + history + ":1")
	})
}

// rejoin reads the last position from the node's data, so that the other nodes send only the missing transactions.
func (galera) rejoin(ctx context.Context, nodes [3]*mysqltest.Server, i int) error {
	out, err := nodes[i].RunToEnd("--wsrep-recover")
	if err != nil {
		return err
	}
	_, position, found := strings.Cut(out, "Recovered position: ")
	if !found {
		return fmt.Errorf("clustertest: node %d does not say how far it got:\n%s", i, lastLines(out))
	}
	position, _, _ = strings.Cut(position, "\n")
	return nodes[i].Launch("--wsrep-start-position=" + strings.TrimSpace(position))
}

func (galera) member(ctx context.Context, node *mysqltest.Server) error {
	const status = "SELECT variable_value FROM information_schema.global_status WHERE variable_name = 'wsrep_ready'"
	ready, err := queryValue(ctx, node, status)
	if err == nil && ready != "ON" {
		err = errors.New("wsrep_ready is " + ready)
	}
	return err
}
