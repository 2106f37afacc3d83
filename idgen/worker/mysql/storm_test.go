//go:build storm

package mysql

import (
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/testutil/clustertest"
)

func TestStormKit(t *testing.T) {
	t.Parallel()
	onServers(t, workertest.Registry.Run)
}

func TestStormKitOnGalera(t *testing.T) {
	t.Parallel()
	onCluster(t, workertest.Registry.Run, clustertest.Galera(t), "galera ")
}

func TestStormKitOnGroupReplication(t *testing.T) {
	t.Parallel()
	onCluster(t, workertest.Registry.Run, clustertest.GroupReplication(t), "group ")
}

// TestStorm kills the server twice, and replaces it by one that lacks the writes of the last
// seconds.
func TestStorm(t *testing.T) {
	for _, kind := range kinds {
		t.Run(string(kind), func(t *testing.T) {
			t.Parallel()
			f := startPair(t, kind).fixture(t)
			over := func() error { return nil }
			f.Storm(t, 8, 35*time.Second, f.Stop, f.Start, f.Stop, f.Start, func() (err error) {
				over, err = f.FailOver()
				return err
			}, func() error { return over() })
		})
	}
}
