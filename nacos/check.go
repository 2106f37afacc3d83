package nacos

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
)

// The reply "ok" proves nothing: 2.0.x answers ok to every compare-and-set
// and ignores it. A compare-and-set writes a document only if its text still has an expected md5.
// Before a server is used, it must refuse an md5 that no
// document has; after the first overwrite of this process, it must refuse the
// md5 that was replaced. Neither check needs a read, because reads lag behind writes.

// checkCAS returns an error unless the server refuses a wrong md5. It
// writes a separate document, which all processes share and which always has
// the same text, so it does no harm if the md5 is ignored. If the document is
// missing, the server accepts any md5 for the first write.
func checkCAS(ctx context.Context, server documents, name, service string) error {
	for range 2 {
		err := server.publish(ctx, service+".probe", "probe", unusedSum())
		if err != nil {
			return ignoreMissed(err)
		}
	}
	return api.UnusableError(name, "it accepts a compare-and-set with a wrong md5, as 2.0.x does"+api.NewerHint)
}

// proveWrites returns an error unless acknowledged writes were executed: after
// text has been written, the md5 that it replaced must be refused. proveWrites sends
// text again. This changes nothing if the md5 is ignored. A late arrival is harmless,
// since no document has the same md5 twice.
func (r *registry) proveWrites(ctx context.Context, id, text string, replaced worker.Version) error {
	r.mu.Lock()
	proven := r.proven
	r.mu.Unlock()
	if proven || replaced == "" { // no comparison if the document was missing
		return nil
	}
	err := r.configs.publish(ctx, id, text, string(replaced))
	if err == nil {
		return api.UnusableError(r.servers, "it acknowledges a compare-and-set without executing it"+api.NewerHint)
	}
	err = ignoreMissed(err)
	r.mu.Lock()
	r.proven = r.proven || err == nil
	r.mu.Unlock()
	return err
}

// ignoreMissed returns nil if err is a failed comparison, even of a repeated
// request, and otherwise err.
func ignoreMissed(err error) error {
	if api.IsCASMismatch(err) {
		return nil
	}
	return err
}

var errAnotherRegistry = errors.New("it has another registry of worker ids than this process uses; list servers of one cluster only")

// checkRegistry returns an error if this process holds a worker id and the server does not have
// the registry of the worker id. A server of another cluster would accept a renewal, since the
// document is missing there, while the first cluster gives the worker id to
// another process. If a server had the registry before and no longer has it,
// it was wiped. This is not an error: renewals continue there, and a new process
// waits until the lost leases have ended.
func (c *cluster) checkRegistry(ctx context.Context, target string, server documents) error {
	c.mu.Lock()
	held := time.Now().Before(c.heldUpTo)
	c.mu.Unlock()
	if !held {
		return nil
	}
	registry, err := readRegistry(ctx, server, c.service)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case registry == c.heldRegistry:
		c.shownBy[target] = true
	case !c.shownBy[target]:
		return errAnotherRegistry
	}
	return nil
}

// readRegistry returns the identity of a server's registry, "" if it has none yet.
func readRegistry(ctx context.Context, server documents, service string) (string, error) {
	text, found, err := server.query(ctx, api.DocumentID(service, worker.RegistrySlot))
	if err != nil || !found {
		return "", err
	}
	var d worker.Doc
	err = d.Decode(text)
	return d.Nonce, err
}

// registryTimeout is the time in which a server has to return its registry at the start.
const registryTimeout = time.Second

// checkCluster compares the registries of all servers and returns an error if
// they differ: with servers of two clusters, two processes could get the same
// worker id. A server that does not answer in time is checked when the process
// connects to it.
func (c *cluster) checkCluster(ctx context.Context) error {
	registries := make([]string, len(c.targets))
	for try := time.Now(); ; {
		var wg sync.WaitGroup
		for i, target := range c.targets {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, registryTimeout)
				defer cancel()
				l, err := connect(ctx, target, c.tls, c.namespace)
				if err != nil {
					return
				}
				defer l.close()
				if registries[i], err = readRegistry(ctx, pinnedLink{c, l}, c.service); registries[i] == "" && err == nil {
					registries[i] = "none"
				}
			})
		}
		wg.Wait()
		first, other := -1, -1
		for i, r := range registries {
			switch {
			case r == "":
			case first < 0:
				first = i
			case r != registries[first]:
				other = i
			}
		}
		if other < 0 {
			return nil
		}
		// Other nodes return a new registry with a delay.
		if time.Since(try) > visibilityDelay {
			return api.UnusableError(c.targets[first]+" and "+c.targets[other],
				fmt.Sprintf("they have different registries (%s, %s), so they belong to two clusters; list servers of one cluster only", registries[first], registries[other]))
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return nil
		}
	}
}
