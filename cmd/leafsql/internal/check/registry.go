package check

import (
	"context"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/spec"
)

// registryTimeout is the timeout for opening a registry of worker ids and reading its document.
const registryTimeout = 15 * time.Second

// checkRegistries reads the registries of worker ids in leafWorker, each one once, and writes nothing. The default,
// leaf_worker, is checked as a table.
func (c *checker) checkRegistries(ctx context.Context) error {
	seen := make(map[string]bool)
	for _, shard := range c.Shards {
		cfg := shard.Config
		source := fmt.Sprintf("%q %q", cfg.Worker, cfg.WorkerOptions) // %q prints maps in key order
		if !shard.LeasesWorkers() || shard.UsesLeaseTable() || seen[source] {
			continue
		}
		seen[source] = true
		open, err := worker.Lookup(cfg.Worker, cfg.WorkerOptions)
		if err != nil { // such as a source that the application registers
			c.add(Finding{Code: "registry-unreachable", Severity: Note, Server: shard.Label,
				Message: c.sprintf("The registry of worker ids was not read: %s.", errprefix.TrimText(err))})
			continue
		}
		name, exists, err := readRegistry(ctx, open)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case err != nil:
			c.add(Finding{Code: "registry-unreachable", Severity: Error, Server: shard.Label,
				Message: c.sprintf("The registry of worker ids cannot be used, so processes that start issue no snowflakes: %s.", errprefix.TrimText(err)),
				Fix:     "check its server, and leafWorker with its options"})
		case !exists:
			c.add(Finding{Code: "registry-missing", Severity: Warning, Server: shard.Label,
				Message: c.sprintf("There is no registry of worker ids at %s: the first process waits for its first id, 135 s at the default lease.", name),
				Fix:     "run leafsql init, with -new-registry if no process has run; if there should be a registry, correct leafWorker and its options"})
		}
	}
	return nil
}

// readRegistry opens a source for reading only. It returns the registry's name, and whether the registry has been created.
func readRegistry(ctx context.Context, open func(context.Context) (worker.Source, error)) (name string, exists bool, err error) {
	ctx, cancel := context.WithTimeout(spec.WithReadOnly(ctx), registryTimeout)
	defer cancel()
	src, err := open(ctx)
	if err != nil {
		return "", false, err
	}
	if src.Close != nil {
		defer src.Close()
	}
	exists, err = HasRegistry(ctx, src)
	return src.Name, exists, err
}

// HasRegistry reports whether the registry of a source has been created. The error begins with the source's name.
func HasRegistry(ctx context.Context, src worker.Source) (bool, error) {
	_, version, err := src.Slots.Get(ctx, worker.RegistrySlot)
	if err != nil {
		err = fmt.Errorf("%s: %w", src.Name, errprefix.Trim(err))
	}
	return version != "", err
}
