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

// A server's ok is no proof: 2.0.x says it to every compare-and-set and does
// nothing. Before a server is used it must refuse an md5 that nobody wrote;
// after the first overwrite of this process, it must refuse the md5 that was
// replaced. No read is needed for either: reads lag.

// checkCAS makes sure that a server's compare-and-set compares. It works on a
// document of its own that all processes share and that has always the same
// text, so that nothing is lost where the md5 is ignored. A missing document
// takes any md5, the first time.
func checkCAS(ctx context.Context, server documents, name, service string) error {
	for range 2 {
		err := server.publish(ctx, service+".probe", "probe", noSum())
		if err != nil {
			return unlessMissed(err)
		}
	}
	return api.Unusable(name, "it says ok to a compare-and-set with the wrong md5, as 2.0.x does"+api.Newer)
}

// prove makes sure that writes told ok are carried out: once text is there,
// the md5 that it replaced must be refused. What is sent again is text, which
// changes nothing where the md5 is ignored, and can't come late: no document
// has the md5 a second time.
func (r *registry) prove(ctx context.Context, id, text string, replaced worker.Version) error {
	r.mu.Lock()
	proven := r.proven
	r.mu.Unlock()
	if proven || replaced == "" { // a write upon nothing compares with nothing
		return nil
	}
	err := r.configs.publish(ctx, id, text, string(replaced))
	if err == nil {
		return api.Unusable(r.servers, "it says ok to a compare-and-set and does not carry it out"+api.Newer)
	}
	err = unlessMissed(err)
	r.mu.Lock()
	r.proven = r.proven || err == nil
	r.mu.Unlock()
	return err
}

// unlessMissed gives nil if the comparison failed, be it at a repetition.
func unlessMissed(err error) error {
	if api.CasMissed(err) {
		return nil
	}
	return err
}

var errAnotherRegistry = errors.New("it does not show the registry of worker ids that this process's is of; name servers of one cluster only")

// checkRegistry makes sure, while a slot is held, that a server shows the
// registry in which it is. Another cluster's would take a renewal, upon a
// document that is missing there, while the first one gives the worker id away.
// A server that has shown the registry before was wiped since: that is the
// registry still, where a renewal and a newcomer's unknown history meet.
func (c *cluster) checkRegistry(ctx context.Context, target string, server documents) error {
	c.mu.Lock()
	held := time.Now().Before(c.heldUpTo)
	c.mu.Unlock()
	if !held {
		return nil
	}
	registry, err := registryOf(ctx, server, c.service)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case err != nil:
		return err
	case registry == c.held:
		c.shown[target] = true
	case !c.shown[target]:
		return errAnotherRegistry
	}
	return nil
}

// registryOf gives the identity of a server's registry, "" if it has none yet.
func registryOf(ctx context.Context, server documents, service string) (string, error) {
	text, found, err := server.query(ctx, api.DocumentID(service, worker.RegistrySlot))
	if err != nil || !found {
		return "", err
	}
	var d worker.Doc
	err = d.Decode(text)
	return d.Nonce, err
}

// lookTime is how long servers have at the start to show their registry.
const lookTime = time.Second

// checkCluster asks all servers for their registry: those of two clusters in
// one list are a mistake that would give worker ids away twice. A server that
// does not answer in time is looked at when it is gone to.
func (c *cluster) checkCluster(ctx context.Context) error {
	registries := make([]string, len(c.targets))
	for try := time.Now(); ; {
		var wg sync.WaitGroup
		for i, target := range c.targets {
			wg.Go(func() {
				ctx, cancel := context.WithTimeout(ctx, lookTime)
				defer cancel()
				l, err := connect(ctx, target, c.tls, c.namespace)
				if err != nil {
					return
				}
				defer l.close()
				if registries[i], err = registryOf(ctx, pinned{c, l}, c.service); registries[i] == "" && err == nil {
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
		// One that was just made shows later on other nodes.
		if time.Since(try) > visible {
			return api.Unusable(c.targets[first]+" and "+c.targets[other],
				fmt.Sprintf("they have different registries (%s, %s), so they are of two clusters; name servers of one only", registries[first], registries[other]))
		}
		if !api.Sleep(ctx, 200*time.Millisecond) {
			return nil
		}
	}
}
