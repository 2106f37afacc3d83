package nacos

import (
	"cmp"
	"context"
	"log/slog"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/nacos/internal/api"
)

// naming is Nacos' naming service, for the persistent instances of one service.
type naming interface {
	register(context.Context, api.Instance) error
	deregister(context.Context, api.Instance) error
	list(context.Context) ([]api.Instance, error)
}

// Metadata of a worker's instance.
const (
	metaGenerator = "preserved.instance.id.generator"
	metaWorker    = "workerId"
	metaNonce     = "nonce"
	metaOwner     = "owner"
	metaHW        = "hw" // the latest time allowed in ids when the worker id was taken, in Unix ms
)

// presence registers the process with its worker id in the service list, for people.
// No lease depends on this entry.
type presence struct {
	names naming
	slots worker.Slots
	self  Instance
	log   *slog.Logger

	mayBeListed bool // the entry may be in the list; needs no lock, as calls of onChange do not overlap
}

// firstPort is the port of worker id 0 if none is configured: servers try to
// connect to the port of a persistent instance, and a port below 10000 may
// belong to another program.
const firstPort = 10000

func (p *presence) instance(id int, d worker.Doc) api.Instance {
	return api.Instance{
		// Servers keep the instance id of a request over gRPC, so readers of the list see
		// the worker id.
		InstanceID: strconv.Itoa(id),
		IP:         p.self.IP, Port: cmp.Or(p.self.Port, firstPort+id), ClusterName: p.self.Cluster,
		Weight: 1, Healthy: true, Enabled: true, Metadata: p.self.Metadata,
	}.WithMetadata(map[string]string{
		metaGenerator: "snowflake",
		metaWorker:    strconv.Itoa(id),
		metaNonce:     d.Nonce,
		metaOwner:     d.Owner,
		metaHW:        strconv.FormatInt(d.HighWater.UnixMilli(), 10),
	})
}

// onChange implements worker.Source's OnChange.
func (p *presence) onChange(ctx context.Context, id int, d worker.Doc, held bool) {
	in := p.instance(id, d)
	switch {
	case held:
		if p.show(ctx, in); p.mayBeListed {
			p.removeDead(ctx, in)
		}
	case p.mayBeListed:
		p.mayBeListed = false
		if err := p.remove(ctx, in); err != nil {
			p.log.Warn("leafsql: Nacos still lists this process as the holder of a worker id that it has released", "worker_id", id, "err", err)
		}
	}
}

// show registers the instance, and retries until it succeeds. It begins some
// time after the worker id was taken: if many processes start at once, the
// others still need the server for their worker ids.
func (p *presence) show(ctx context.Context, in api.Instance) {
	if !api.Sleep(ctx, time.Second+rand.N(time.Second)) {
		return
	}
	warned := false
	for pause := time.Second; ; pause = min(2*pause, 30*time.Second) {
		p.mayBeListed = true // even after an error
		err := p.names.register(ctx, in)
		if err == nil {
			return
		}
		if !warned && ctx.Err() == nil {
			warned = true
			p.log.Warn("leafsql: Nacos does not list this process as the holder of its worker id yet; ids are not affected",
				"worker_id", in.Metadata[metaWorker], "err", err)
		}
		if !api.Sleep(ctx, pause) {
			return
		}
	}
}

// remove removes the entry of this lease from the list. A process that has taken the
// worker id in the meantime may have its entry at the same address.
func (p *presence) remove(ctx context.Context, in api.Instance) error {
	list, err := p.names.list(ctx)
	if err != nil {
		return err
	}
	for _, o := range list {
		if nonce := o.Metadata[metaNonce]; o.SameAddress(in) && nonce != "" && nonce != in.Metadata[metaNonce] {
			return nil
		}
	}
	return p.names.deregister(ctx, in)
}

// tidyInterval is the average time between two searches of one process for entries of
// dead processes.
const tidyInterval = 10 * time.Minute

// removeDead removes entries of dead processes, at intervals until ctx ends. Each process checks
// the entry with the next higher worker id; after the highest, the lowest follows. After a process
// has removed an entry, it also checks the next one.
func (p *presence) removeDead(ctx context.Context, in api.Instance) {
	self := workerOf(in)
	for {
		list, err := p.names.list(ctx)
		if err == nil && !slices.ContainsFunc(list, in.SameAddress) {
			p.show(ctx, in) // the entry was removed by hand
		}
		slices.SortFunc(list, func(a, b api.Instance) int {
			after := func(o api.Instance) int { return (workerOf(o) - self + maxWorkers) % maxWorkers }
			return cmp.Compare(after(a), after(b))
		})
		for _, o := range list {
			if o.SameAddress(in) || workerOf(o) < 0 {
				continue
			}
			if !p.isDead(ctx, o) || p.names.deregister(ctx, o) != nil {
				break
			}
		}
		if !api.Sleep(ctx, tidyInterval/2+rand.N(tidyInterval)) {
			return
		}
	}
}

// maxWorkers is larger than every worker id.
const maxWorkers = 1 << 22

// workerOf returns the worker id of an entry, or -1 if it has none.
func workerOf(in api.Instance) int {
	n, err := strconv.Atoi(in.Metadata[metaWorker])
	if err != nil || n < 0 || n >= maxWorkers {
		return -1
	}
	return n
}

// isDead reports whether the process of an entry has released or lost its worker id, or
// its lease ended so long ago that the worker id can be taken.
func (p *presence) isDead(ctx context.Context, in api.Instance) bool {
	d, _, err := p.slots.Get(ctx, workerOf(in))
	return err == nil && (d.Free || d.Nonce != in.Metadata[metaNonce] || time.Since(d.HighWater) > 3*time.Minute)
}

// lastWorker implements worker.Source's Last: it returns the worker id at this
// process's address in the list. A process without a configured port has no
// such address.
func (p *presence) lastWorker(ctx context.Context) (int, bool) {
	if p.self.Port == 0 {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(ctx, 500*time.Millisecond)
	defer cancel()
	list, err := p.names.list(ctx)
	if err != nil {
		return 0, false
	}
	for _, in := range list {
		if in.IP == p.self.IP && in.Port == p.self.Port && workerOf(in) >= 0 {
			return workerOf(in), true
		}
	}
	return 0, false
}
