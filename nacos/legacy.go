package nacos

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/leafsql/leafsql/idgen/worker"
)

// legacy is the registry on 1.4.1 to 1.4.8. The worker id is the integer id
// that the server gives a persistent instance; since it gives one id to
// several that register at once, and loses registrations, ids are settled and
// compared before they are used. The slot's document, written without
// comparison, is the second guard: two that have one id meet there.
type legacy struct {
	web     *web
	self    Instance
	service string
	log     *slog.Logger
	settle  time.Duration // how long a registration is left to show; 5 s

	mu    sync.Mutex
	in    instance   // the registration; IP "" if there is none
	mine  int        // its id, or unsettled
	kept  []instance // other registrations, so that their ids are not given again
	asked bool       // workers was asked, and no slot was taken since
}

const unsettled = -1

// Times of the courtesy to others in 1.4's registry.
const (
	settleTime = 5 * time.Second
	deadAfter  = 10 * time.Minute // a registration this old whose bound is over is removed
	boundRest  = 3 * time.Minute  // what a slot's bound may be from being free to others
)

const metaSince = "registeredAt" // Unix ms

func newLegacy(cfg Config, w *web) *legacy {
	return &legacy{web: w, self: cfg.Instance, service: cfg.Service, log: cfg.Logger, settle: settleTime}
}

func (l *legacy) source() worker.Source {
	return worker.Source{Slots: l, Workers: l.workers, Held: l.held}
}

// workers is worker.Source's Workers: it names the one worker id that is this
// instance's, registering it first if need be. When it is asked again, because
// the id could not be taken, the id has to stand up to the others once more.
func (l *legacy) workers(ctx context.Context) ([]int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = true
	port := cmp.Or(l.self.Port, anyPort())
	for try := 0; ; try++ {
		if l.in.IP == "" {
			l.in, l.mine = l.instance(port), unsettled
		}
		why, err := l.verify(ctx)
		if err != nil {
			return nil, err
		}
		if why == "" {
			return []int{l.mine}, l.dropKept(ctx)
		}
		if l.in.IP != "" {
			if err := l.web.deregister(ctx, l.in); err != nil {
				return nil, err
			}
		}
		l.in, port = instance{}, anyPort()
		// The others that got the same id do the same: go apart.
		pause := time.Duration(rand.Int64N(int64(min(2<<min(try, 4), 16)) * int64(l.settle) / 5))
		l.log.Info("leafsql: registering with Nacos again for another instance id", "why", why, "pause", pause)
		if !sleep(ctx, pause) {
			return nil, fmt.Errorf("no instance id of its own yet: %s: %w", why, context.Cause(ctx))
		}
	}
}

// dropKept removes the registrations that kept ids from being given.
func (l *legacy) dropKept(ctx context.Context) error {
	for len(l.kept) > 0 {
		if err := l.web.deregister(ctx, l.kept[0]); err != nil {
			return err
		}
		l.kept = l.kept[1:]
	}
	return nil
}

// verify makes sure that this instance is registered and alone has its id. why
// says what speaks against it.
func (l *legacy) verify(ctx context.Context) (why string, err error) {
	if l.mine == unsettled {
		id, why, err := l.enrol(ctx)
		if err != nil || why != "" {
			return why, err
		}
		if why = l.occupied(ctx, id); why != "" {
			// Whoever wrote the document is not in the list any more, it may have
			// been this process: without this registration the next one would be
			// given the same id again.
			l.kept, l.in = append(l.kept, l.in), instance{}
			return why, nil
		}
		l.mine = id
		l.bury(ctx)
		return "", nil
	}
	id, found, why, err := l.look(ctx, l.in)
	switch {
	case err != nil || why != "":
		return why, err
	case !found || id != l.mine:
		return fmt.Sprintf("instance id %d is not in every list any more", l.mine), nil
	}
	return l.occupied(ctx, l.mine), nil
}

// anyPort makes a registration of this process's own: an equal ip:port would
// be the same instance.
func anyPort() int { return 10000 + rand.IntN(50000) }

func (l *legacy) instance(port int) instance {
	return instance{
		IP: l.self.IP, Port: port, ClusterName: l.self.Cluster, Weight: 1, Healthy: true, Enabled: true,
		Metadata: l.self.metadata(map[string]string{
			metaGenerator: "snowflake",
			metaOwner:     strconv.Itoa(os.Getpid()),
		}),
	}
}

// enrol registers and waits until all servers agree, twice, on an id that only
// this instance has. why says what spoke against it, "" if nothing.
func (l *legacy) enrol(ctx context.Context) (id int, why string, err error) {
	for range 4 { // registrations told ok may never show
		// From when it shows, not before: an id that stood up to what showed
		// earlier is in use.
		l.in.Metadata[metaSince] = strconv.FormatInt(time.Now().UnixMilli(), 10)
		if err := l.web.register(ctx, l.in); err != nil {
			return 0, "", err
		}
		if !sleep(ctx, l.settle) {
			return 0, "", context.Cause(ctx)
		}
		var found bool
		for look := range 2 {
			var now int
			now, found, why, err = l.look(ctx, l.in)
			if err != nil || why != "" {
				return 0, why, err
			}
			if !found || look == 1 && now != id {
				found = false
				break
			}
			id = now
			if !sleep(ctx, l.settle/5) {
				return 0, "", context.Cause(ctx)
			}
		}
		if found {
			return id, "", nil
		}
	}
	return 0, "the registration does not show in the list", nil
}

// look reads every server's list. why says that another has the id and goes
// first: who registered earlier keeps it.
func (l *legacy) look(ctx context.Context, in instance) (id int, found bool, why string, err error) {
	for i, base := range l.web.bases {
		list, err := l.web.list(ctx, base)
		if err != nil {
			return 0, false, "", err
		}
		at, n := -1, 0
		for _, o := range list {
			if o.at(in) {
				n++
				if at, err = instanceID(o); err != nil {
					return 0, false, "", err
				}
			}
		}
		if n != 1 || i > 0 && at != id {
			return 0, false, "", nil
		}
		id = at
		for _, o := range list {
			if oid, err := instanceID(o); err == nil && oid == id && !o.at(in) && before(o, in) {
				return 0, true, fmt.Sprintf("instance id %d was given to %s:%d as well", id, o.IP, o.Port), nil
			}
		}
	}
	return id, true, "", nil
}

// before is an order that all instances agree on: an older registration may
// be in use already.
func before(a, b instance) bool {
	return cmp.Or(cmp.Compare(since(a), since(b)), strings.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port)) < 0
}

// since is when an instance registered, in Unix ms, by its own clock; 0 where
// that is not known.
func since(in instance) int64 {
	ms, err := strconv.ParseInt(in.Metadata[metaSince], 10, 64)
	if err != nil {
		return 0
	}
	return ms
}

// instanceID is the integer that 1.4.1 gives. It may stand alone or before
// the first "#".
func instanceID(in instance) (int, error) {
	text, _, _ := strings.Cut(in.InstanceID, "#")
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("leafsql: Nacos 1.4: the instance id %q is no number; the instances of service other than those of leafsql need a service of their own", in.InstanceID)
	}
	return id, nil
}

// occupied says who holds the slot's document, if its bound is not over: a
// registration of a process that crashed, or one that has the same id.
func (l *legacy) occupied(ctx context.Context, id int) (why string) {
	d, ver, err := l.read(ctx, id)
	if err != nil || ver == "" || !inUse(d) {
		return ""
	}
	return fmt.Sprintf("worker id %d is held by %s", id, d.Owner)
}

// inUse reports whether a slot may have an owner who issues ids.
func inUse(d worker.Doc) bool {
	return !d.Free && time.Now().Before(time.UnixMilli(d.HW).Add(boundRest))
}

// bury removes the registrations of processes that are long gone, so that
// their ids can be given again.
func (l *legacy) bury(ctx context.Context) {
	list, err := l.web.list(ctx, l.web.bases[0])
	if err != nil {
		return
	}
	old := time.Now().Add(-deadAfter).UnixMilli()
	for _, in := range list {
		id, err := instanceID(in)
		if err != nil || since(in) == 0 || since(in) > old || in.at(l.in) {
			continue
		}
		if d, ver, err := l.read(ctx, id); err == nil && ver != "" && d.HW+boundRest.Milliseconds() < time.Now().UnixMilli() {
			_ = l.web.deregister(ctx, in) // whoever starts next tries again
		}
	}
}

// check makes sure that the registration is still there, with its id.
func (l *legacy) check(ctx context.Context) error {
	for _, base := range l.web.bases {
		list, err := l.web.list(ctx, base)
		if err != nil {
			return err
		}
		for _, o := range list {
			if o.at(l.in) {
				if id, err := instanceID(o); err != nil || id != l.mine {
					return fmt.Errorf("the instance id is %q now, and was %d", o.InstanceID, l.mine)
				}
				list = nil
				break
			}
		}
		if list != nil {
			return fmt.Errorf("the instance %s:%d is not in the list any more", l.in.IP, l.in.Port)
		}
	}
	return nil
}

// held is worker.Source's Held: what is lost or given back is registered
// anew for the next lease.
func (l *legacy) held(ctx context.Context, h worker.Holding) {
	if h.Held {
		l.log.Warn("leafsql: this Nacos has no compare-and-set (1.4): worker ids are its instance ids, verified but not guaranteed; upgrade to Nacos 2.3 or later, or use another source of worker ids", "worker", h.Worker)
		return
	}
	l.leave(ctx)
}

func (l *legacy) leave(ctx context.Context) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in.IP != "" {
		l.kept = append(l.kept, l.in)
		l.in = instance{}
	}
	if err := l.dropKept(ctx); err != nil {
		l.log.Warn("leafsql: Nacos still lists this process, which has given its worker id back", "worker", l.mine, "err", err)
	}
}

// Close implements io.Closer.
func (l *legacy) Close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	l.leave(ctx)
	l.web.close()
	return nil
}
