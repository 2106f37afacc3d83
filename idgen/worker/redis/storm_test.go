//go:build storm

package redis

import (
	"errors"
	"path/filepath"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker/redis/redistest"
	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/internal/leasetest"
)

func TestStormKitOnAServer(t *testing.T) { kitOnAServer(t, workertest.Registry.Run) }

func TestStormKitOnSentinels(t *testing.T) { kitOnSentinels(t, workertest.Registry.Run) }

func TestStormKitOnACluster(t *testing.T) { kitOnACluster(t, workertest.Registry.Run) }

// storm is the duration of storms. It suffices to wait for lost leases to end, which takes a lease and a minute, and to use their
// worker ids again.
const storm = 110 * time.Second

// TestStormOnAServer kills and restarts the server, resets it to an older state, and wipes it.
func TestStormOnAServer(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Config{})
	f := fixture(t, s.Options(), of(s.Options()))
	dir := filepath.Join(t.TempDir(), "before")
	f.Storm(t, 8, storm,
		s.Restart,
		func() error { return s.Snapshot(dir) },
		func() error {
			if err := errors.Join(s.Kill9(), s.Restore(dir)); err != nil {
				return err
			}
			return s.Start()
		})
}

// TestStormOnSentinels loses the primary with its last writes, and then the next one, which returns and acts as
// the primary for a while.
func TestStormOnSentinels(t *testing.T) {
	t.Parallel()
	for name, replicas := range map[string]int{"WaitingForReplicas": 0, "WaitingForNone": -1} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := redistest.StartReplicated(t, redistest.Config{})
			cfg := of(r.Options())
			cfg.Replicas = replicas
			f := fixture(t, r.Options(), cfg)
			f.Storm(t, 8, storm,
				func() error {
					if err := r.CutReplication(); err != nil {
						return err
					}
					time.Sleep(5 * time.Second)
					_, err := r.FailOver()
					return err
				},
				r.Start,
				func() error {
					p, err := r.Primary()
					if err != nil {
						return err
					}
					if err := p.Freeze(); err != nil {
						return err
					}
					leasetest.Eventually(t, "another primary", func() bool {
						now, err := r.Primary()
						return err == nil && now != p
					})
					return p.Thaw()
				})
		})
	}
}
