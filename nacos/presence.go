package nacos

import (
	"context"
	"log/slog"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// naming is Nacos' naming service, for persistent instances of one service.
type naming interface {
	register(context.Context, instance) error
	deregister(context.Context, instance) error
	list(context.Context) ([]instance, error)
}

// Metadata of a worker's instance.
const (
	metaGenerator = "preserved.instance.id.generator"
	metaWorker    = "workerId"
	metaNonce     = "nonce"
	metaOwner     = "owner"
	metaHW        = "hw" // the bound when the worker id was taken, in Unix ms
)

// presence shows in the service list who holds which worker id. It is for
// people: no lease depends on it.
type presence struct {
	names naming
	self  Instance
	log   *slog.Logger

	listed bool // perhaps; guarded by held being called one at a time
}

// held is worker.Source's Held.
func (p *presence) held(ctx context.Context, h worker.Holding) {
	in := p.instance(h)
	if h.Held {
		p.show(ctx, in)
		return
	}
	if !p.listed {
		return
	}
	p.listed = false
	if err := p.remove(ctx, in); err != nil {
		p.log.Warn("leafsql: Nacos still lists this process, which has given its worker id back", "worker", h.Worker, "err", err)
	}
}

// remove takes this lease's entry out of the list. At the same address there
// may be that of a process which has taken the worker id since.
func (p *presence) remove(ctx context.Context, in instance) error {
	list, err := p.names.list(ctx)
	if err != nil {
		return err
	}
	for _, o := range list {
		if nonce := o.Metadata[metaNonce]; o.at(in) && nonce != "" && nonce != in.Metadata[metaNonce] {
			return nil
		}
	}
	return p.names.deregister(ctx, in)
}

func (p *presence) instance(h worker.Holding) instance {
	port := p.self.Port
	if port == 0 {
		port = h.Worker + 1
	}
	return instance{
		// Servers keep the id they are given over gRPC, so that it is the
		// worker id for those who read it.
		InstanceID: strconv.Itoa(h.Worker),
		IP:         p.self.IP, Port: port, ClusterName: p.self.Cluster,
		Weight: 1, Healthy: true, Enabled: true,
		Metadata: p.self.metadata(map[string]string{
			metaGenerator: "snowflake",
			metaWorker:    strconv.Itoa(h.Worker),
			metaNonce:     h.Doc.Nonce,
			metaOwner:     h.Doc.Owner,
			metaHW:        strconv.FormatInt(h.Doc.HW, 10),
		}),
	}
}

// show registers the instance, again and again until it is done, and then
// removes those of former owners of the worker id: it is ours now. It begins a
// while after the take: where many start at once they all still need the
// server for their worker ids.
func (p *presence) show(ctx context.Context, in instance) {
	if !sleep(ctx, time.Second+rand.N(time.Second)) {
		return
	}
	p.listed = true
	pause := 500 * time.Millisecond
	for {
		err := p.names.register(ctx, in)
		if err == nil {
			break
		}
		if pause == 500*time.Millisecond && ctx.Err() == nil {
			p.log.Warn("leafsql: Nacos does not list this process as the holder of its worker id yet; ids are not affected",
				"worker", in.Metadata[metaWorker], "err", err)
		}
		if !sleep(ctx, pause) {
			return
		}
		pause = min(2*pause, 30*time.Second)
	}
	others, err := p.names.list(ctx)
	if err != nil {
		return
	}
	for _, o := range others {
		if o.Metadata[metaWorker] == in.Metadata[metaWorker] && !o.at(in) {
			_ = p.names.deregister(ctx, o) // whoever takes the worker id next tries again
		}
	}
}

// last is worker.Source's Last: the worker id beside this process's address in
// the list. Without a port of its own the process has no such address.
func (p *presence) last(ctx context.Context) (int, bool) {
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
		if in.IP != p.self.IP || in.Port != p.self.Port {
			continue
		}
		if n, err := strconv.Atoi(in.Metadata[metaWorker]); err == nil {
			return n, true
		}
	}
	return 0, false
}
