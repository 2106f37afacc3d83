// Package nacos14 is the registry on Nacos 1.4.1 to 1.4.8, which have no compare-and-set.
// The worker id is the integer id that the server gives a persistent instance. The server
// can give one id to several instances that register at once, and it can lose
// registrations. So each process waits some seconds after it registered, and compares its
// id with the ids of all instances before it uses the id. There is also a document for each worker id, the
// slot, which is written without compare-and-set. If two instances have the same id, one of them finds
// the other's document. So an id is verified, but not guaranteed to be unique.
package nacos14

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
	"github.com/leafsql/leafsql/nacos/internal/api"
)

// Config is the address of the registry. All fields are needed.
type Config struct {
	HTTP      *api.HTTP // closed by the source
	Version   string    // version of the servers
	Servers   string    // for errors
	Name      string    // name of the registry, for logs and errors
	Namespace string    // "": the default namespace
	Group     string
	Service   string
	Self      api.Instance // ip, port (0: any), cluster and metadata
	Logger    *slog.Logger
}

// Open returns the source. It returns a worker.UnusableError for servers older than
// 1.4.1.
func Open(cfg Config) (worker.Source, error) {
	if isOlder(cfg.Version) {
		cfg.HTTP.Close()
		return worker.Source{}, api.UnusableError(cfg.Servers, "it is version "+cfg.Version+", whose instance ids change when an instance registers again"+api.NewerHint)
	}
	return newRegistry(cfg).source(), nil
}

// isOlder reports whether a version is from before 1.4.1.
func isOlder(version string) bool {
	var a, b, c int
	fmt.Sscanf(version, "%d.%d.%d", &a, &b, &c)
	return cmp.Or(cmp.Compare(a, 1), cmp.Compare(b, 4), cmp.Compare(c, 1)) < 0
}

// registry implements worker.Slots. Only the slot with the number of the instance id can be used.
type registry struct {
	Config
	listDelay time.Duration // time until a registration is expected in all lists; 5 s

	mu                sync.Mutex
	registration      api.Instance   // the registration of this process; IP "" if there is none
	ownID             int            // id of the registration, or noID
	keptRegistrations []api.Instance // other registrations, kept so that their ids are not given again
	ownNonce          string         // the nonce last written into a slot that is held
}

const noID = -1

// Times after which registrations and slots of other instances can be removed or taken.
const (
	settleTime = 5 * time.Second
	deadAfter  = 10 * time.Minute // an older registration is removed if its lease has ended
	boundRest  = 3 * time.Minute  // time after the end of a slot's lease until other processes can take the slot
)

// Metadata of an instance.
const (
	metaGenerator = "preserved.instance.id.generator"
	metaOwner     = "owner"
	metaSince     = "registeredAt" // Unix ms
)

func newRegistry(cfg Config) *registry {
	return &registry{Config: cfg, listDelay: settleTime, ownID: noID}
}

func (r *registry) source() worker.Source {
	return worker.Source{Slots: r, Inserts: true, Name: r.Name, Time: r.HTTP.Time, Last: r.instanceID, OnChange: r.onChange, Close: r.close}
}

// instanceID implements worker.Source's Last. It returns the only worker id
// that this instance can use, and registers the instance if necessary. It is
// called again if the id could not be taken. Then it compares the id again with
// the ids of all other instances.
func (r *registry) instanceID(ctx context.Context) (int, bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	id, err := r.findUnique(ctx)
	if err != nil && ctx.Err() == nil {
		r.Logger.Info("leafsql: Nacos has not given this process its own instance id yet", "err", err)
	}
	return id, err == nil
}

func (r *registry) findUnique(ctx context.Context) (int, error) {
	port := cmp.Or(r.Self.Port, randomPort())
	for try := 0; ; try++ {
		if r.registration.IP == "" {
			r.registration, r.ownID = r.instance(port), noID
		}
		why, err := r.verify(ctx)
		if err != nil {
			return 0, err
		}
		if why == "" {
			return r.ownID, r.dropKept(ctx)
		}
		if r.registration.IP != "" {
			if err := r.deregister(ctx, r.registration); err != nil {
				return 0, err
			}
		}
		r.registration, r.ownID, port = api.Instance{}, noID, randomPort()
		// Other instances with the same id also retry, so the pause is random.
		pause := time.Duration(rand.Int64N(int64(min(2<<min(try, 4), 16)) * int64(r.listDelay) / 5))
		r.Logger.Info("leafsql: this process registers with Nacos again to get another instance id", "reason", why, "pause", pause.String())
		if !api.Sleep(ctx, pause) {
			return 0, fmt.Errorf("%s: %w", why, context.Cause(ctx))
		}
	}
}

// dropKept removes the registrations that were kept to reserve their ids.
func (r *registry) dropKept(ctx context.Context) error {
	for len(r.keptRegistrations) > 0 {
		if err := r.deregister(ctx, r.keptRegistrations[0]); err != nil {
			return err
		}
		r.keptRegistrations = r.keptRegistrations[1:]
	}
	return nil
}

// verify registers this instance if necessary, and checks that no other instance has
// its id. why is the reason against the id, "" if there is none.
func (r *registry) verify(ctx context.Context) (why string, err error) {
	if r.ownID == noID {
		id, why, err := r.registerUnique(ctx)
		if err != nil || why != "" {
			return why, err
		}
		if why = r.occupiedReason(ctx, id); why != "" {
			// The process that wrote the document is no longer in the list; perhaps it
			// was this process. The registration is kept: otherwise the server
			// would give the same id again.
			r.keptRegistrations, r.registration = append(r.keptRegistrations, r.registration), api.Instance{}
			return why, nil
		}
		r.ownID = id
		r.removeEnded(ctx)
		return "", nil
	}
	id, found, why, err := r.checkID(ctx, r.registration)
	switch {
	case err != nil || why != "":
		return why, err
	case !found || id != r.ownID:
		return fmt.Sprintf("instance id %d is no longer in every server's list", r.ownID), nil
	}
	return r.occupiedReason(ctx, r.ownID), nil
}

// randomPort returns a random port for a registration: registrations with an equal
// ip:port would be one instance.
func randomPort() int { return 10000 + rand.IntN(50000) }

func (r *registry) instance(port int) api.Instance {
	in := r.Self
	in.Port, in.Weight, in.Healthy, in.Enabled = port, 1, true, true
	return in.WithMetadata(map[string]string{metaGenerator: "snowflake", metaOwner: strconv.Itoa(os.Getpid())})
}

// registerUnique registers and waits until all servers agree, twice, on an id that only
// this instance has. why is the reason against the id, "" if there is none.
func (r *registry) registerUnique(ctx context.Context) (id int, why string, err error) {
	for range 4 { // again if an acknowledged registration does not appear in the lists
		// Each attempt gets a new time: since the last attempt, another instance may
		// have verified this id, and use it.
		r.registration.Metadata[metaSince] = strconv.FormatInt(time.Now().UnixMilli(), 10)
		if err := r.register(ctx, r.registration); err != nil {
			return 0, "", err
		}
		if !api.Sleep(ctx, r.listDelay) {
			return 0, "", context.Cause(ctx)
		}
		var found bool
		for look := range 2 {
			var now int
			now, found, why, err = r.checkID(ctx, r.registration)
			if err != nil || why != "" {
				return 0, why, err
			}
			if !found || look == 1 && now != id {
				found = false
				break
			}
			id = now
			if !api.Sleep(ctx, r.listDelay/5) {
				return 0, "", context.Cause(ctx)
			}
		}
		if found {
			return id, "", nil
		}
	}
	return 0, "the registration is not in the server's list", nil
}

// checkID reads every server's list. found is false if the lists do not agree on the
// id. why is set if another instance has the id and registered earlier, because that instance keeps the id.
func (r *registry) checkID(ctx context.Context, in api.Instance) (id int, found bool, why string, err error) {
	for i, base := range r.HTTP.Servers() {
		list, err := r.list(ctx, base)
		if err != nil {
			return 0, false, "", err
		}
		at, n := -1, 0
		for _, o := range list {
			if o.SameAddress(in) {
				n++
				if at, err = idOf(o); err != nil {
					return 0, false, "", err
				}
			}
		}
		if n != 1 || i > 0 && at != id {
			return 0, false, "", nil
		}
		id = at
		for _, o := range list {
			if oid, err := idOf(o); err == nil && oid == id && !o.SameAddress(in) && precedes(o, in) {
				return 0, true, fmt.Sprintf("instance id %d was also given to %s:%d", id, o.IP, o.Port), nil
			}
		}
	}
	return id, true, "", nil
}

// precedes reports whether a comes before b in an order that all instances agree on. The older registration
// comes first, as it may be in use already.
func precedes(a, b api.Instance) bool {
	return cmp.Or(cmp.Compare(registeredAt(a), registeredAt(b)), strings.Compare(a.IP, b.IP), cmp.Compare(a.Port, b.Port)) < 0
}

// registeredAt returns the time of a registration in Unix ms, by the instance's own
// clock, or 0 if unknown.
func registeredAt(in api.Instance) int64 {
	ms, err := strconv.ParseInt(in.Metadata[metaSince], 10, 64)
	if err != nil {
		return 0
	}
	return ms
}

// idOf returns the integer id that 1.4.1 gives: the instance id, or its part in
// front of the first "#".
func idOf(in api.Instance) (int, error) {
	text, _, _ := strings.Cut(in.InstanceID, "#")
	id, err := strconv.Atoi(text)
	if err != nil || id < 0 {
		return 0, fmt.Errorf("leafsql: Nacos 1.4: the instance id %q is not a number; register other instances than those of leafsql in another service", in.InstanceID)
	}
	return id, nil
}

// occupiedReason returns a reason if another process may still hold the slot: it crashed a short
// time ago, or it has the same id. Otherwise it returns "".
func (r *registry) occupiedReason(ctx context.Context, id int) (why string) {
	d, ver, err := r.read(ctx, id)
	if err != nil || ver == "" || !inUse(d) || d.Nonce == r.ownNonce {
		return ""
	}
	return fmt.Sprintf("worker id %d is held by %s", id, d.Owner)
}

// inUse reports whether the slot may have an owner that issues ids.
func inUse(d worker.Doc) bool {
	return !d.Free && time.Now().Before(d.HighWater.Add(boundRest))
}

// removeEnded removes the registrations of processes that ended long ago, so that
// their ids can be given again.
func (r *registry) removeEnded(ctx context.Context) {
	list, err := r.list(ctx, r.HTTP.Servers()[0])
	if err != nil {
		return
	}
	old := time.Now().Add(-deadAfter).UnixMilli()
	for _, in := range list {
		id, err := idOf(in)
		if err != nil || registeredAt(in) == 0 || registeredAt(in) > old || in.SameAddress(r.registration) {
			continue
		}
		if d, ver, err := r.read(ctx, id); err == nil && ver != "" && time.Since(d.HighWater) > boundRest {
			_ = r.deregister(ctx, in) // the next process that starts tries again
		}
	}
}

// checkRegistration returns an error unless the registration still exists, with its id.
func (r *registry) checkRegistration(ctx context.Context) error {
	for _, base := range r.HTTP.Servers() {
		list, err := r.list(ctx, base)
		if err != nil {
			return err
		}
		found := false
		for _, o := range list {
			if !o.SameAddress(r.registration) {
				continue
			}
			if id, err := idOf(o); err != nil || id != r.ownID {
				return fmt.Errorf("the instance id is now %q, and was %d before", o.InstanceID, r.ownID)
			}
			found = true
		}
		if !found {
			return fmt.Errorf("the instance %s:%d is no longer in the list", r.registration.IP, r.registration.Port)
		}
	}
	return nil
}

// onChange implements worker.Source's OnChange. After a lease was lost or
// released, it removes the registration; the next lease registers again.
func (r *registry) onChange(ctx context.Context, id int, _ worker.Doc, held bool) {
	if held {
		r.Logger.Warn("leafsql: this Nacos (1.4) has no compare-and-set, so worker ids are its instance ids, which are verified but not guaranteed to be unique; upgrade to Nacos 2.3 or later, or use another source of worker ids for all processes", "worker_id", id)
		return
	}
	r.leave(ctx, id)
}

// leave removes the registration if its id is the worker id, or if id is noID.
func (r *registry) leave(ctx context.Context, id int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.registration.IP != "" && (r.ownID == id || id == noID) {
		r.keptRegistrations = append(r.keptRegistrations, r.registration)
		r.registration, r.ownID = api.Instance{}, noID
	}
	if err := r.dropKept(ctx); err != nil {
		r.Logger.Warn("leafsql: Nacos still lists this process as the holder of a worker id that it has released", "err", err)
	}
}

func (r *registry) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	r.leave(ctx, noID)
	r.HTTP.Close()
	return nil
}
