//go:build storm

package zookeeper

import (
	"errors"
	"testing"
	"time"

	"github.com/leafsql/leafsql/idgen/worker/workertest"
	"github.com/leafsql/leafsql/idgen/worker/zookeeper/zktest"
)

func TestStormKitOnAServer(t *testing.T) { kitOnAServer(t, workertest.Registry.Run) }

func TestStormKitOnAnEnsemble(t *testing.T) { kitOnAnEnsemble(t, workertest.Registry.Run) }

// storm is the duration of storms. It suffices to wait for lost leases to end, which takes a lease and a minute, and to use their
// worker ids again.
const storm = 110 * time.Second

// TestStormOnAServer kills and restarts the server, and wipes it.
func TestStormOnAServer(t *testing.T) {
	t.Parallel()
	s := zktest.Start(t, zktest.Config{})
	f := fixture(t, Config{Servers: []string{s.Addr}})
	wipe := func() error {
		if err := errors.Join(s.Kill9(), s.Wipe()); err != nil {
			return err
		}
		return s.Start()
	}
	f.Storm(t, 8, storm, s.Restart, wipe, s.Restart)
}

// TestStormOnAnEnsemble kills the leader repeatedly.
func TestStormOnAnEnsemble(t *testing.T) {
	t.Parallel()
	e := zktest.StartEnsemble(t, zktest.Config{})
	f := fixture(t, Config{Servers: e.Addrs()})
	kill := func() error {
		l, err := e.Leader()
		if err != nil {
			return err
		}
		if err := l.Kill9(); err != nil {
			return err
		}
		_, err = e.Leader()
		return errors.Join(err, l.Start())
	}
	f.Storm(t, 8, time.Minute, kill, kill, kill, kill)
}
