//go:build storm

package etcd

import (
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
)

func TestStormKit(t *testing.T) {
	t.Parallel()
	workertest.Registry(startPair(t).fixture).Run(t)
}

func TestStormKitOnACluster(t *testing.T) { onCluster(t, workertest.Registry.Run) }

// TestStorm kills the server twice, and replaces it by one that lacks the writes of the last
// seconds.
func TestStorm(t *testing.T) {
	t.Parallel()
	f := startPair(t).fixture(t)
	over := func() error { return nil }
	f.Storm(t, 8, 35*time.Second, f.Stop, f.Start, f.Stop, f.Start, func() (err error) {
		over, err = f.FailOver()
		return err
	}, func() error { return over() })
}
