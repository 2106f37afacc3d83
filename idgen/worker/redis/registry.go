package redis

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/leafsql/leafsql/idgen/worker"
)

// registry implements worker.Slots on keys. Their versions are their texts.
type registry struct {
	client     redis.UniversalClient
	cfg        Config
	replicas   atomic.Int64 // number of replicas that must have a write before it counts
	policyOnce sync.Once    // for the check of maxmemory-policy
}

// key returns the key of a slot's document. A cluster chooses the node by the part in braces.
func (r *registry) key(slot int) string {
	if slot == worker.RegistrySlot {
		return "{" + r.cfg.Prefix + "}:registry"
	}
	return "{" + r.cfg.Prefix + "}:worker:" + strconv.Itoa(slot)
}

// node returns a client of the server that has the documents. In a cluster this client does not use go-redis' redirections, which
// would send a write again after its reply was lost.
func (r *registry) node(ctx context.Context) (redis.Cmdable, error) {
	if c, ok := r.client.(*redis.ClusterClient); ok {
		return c.MasterForKey(ctx, r.key(worker.RegistrySlot))
	}
	return r.client, nil
}

// explain adds the registry's name to a server's error, and a hint if the server denies access. It also makes the next call look up
// a cluster's nodes again, as another node may have the documents by now.
func (r *registry) explain(err error) error {
	if c, ok := r.client.(*redis.ClusterClient); ok {
		c.ReloadState(context.Background())
	}
	switch {
	case redis.IsAuthError(err):
		return r.unusableError("it denies the login, correct leafRedisUsername and leafRedisPassword: %w", err)
	case redis.IsPermissionError(err):
		return r.unusableError("its user lacks a right, grant those that the package's documentation lists: %w", err)
	}
	return fmt.Errorf("%s: %w", r.cfg.String(), err)
}

// unusableError returns the UnusableError for a server that cannot be used as a registry.
func (r *registry) unusableError(reason string, args ...any) error {
	return &worker.UnusableError{Err: fmt.Errorf("leafsql: %s: "+reason, append([]any{r.cfg.String()}, args...)...)}
}

// Get implements worker.Slots.
func (r *registry) Get(ctx context.Context, slot int) (worker.Doc, worker.Version, error) {
	node, err := r.node(ctx)
	if err != nil {
		return worker.Doc{}, "", r.explain(err)
	}
	text, err := node.Get(ctx, r.key(slot)).Result()
	switch {
	case errors.Is(err, redis.Nil):
		return worker.Doc{}, "", nil
	case err != nil:
		return worker.Doc{}, "", r.explain(err)
	}
	var d worker.Doc
	if err := d.Decode(text); err != nil {
		return worker.Doc{}, "", fmt.Errorf("key %s: %w", r.key(slot), err)
	}
	return d, worker.Version(text), nil
}

// compareAndSet replaces the text ARGV[1] by ARGV[2]; "" means missing. No two documents written to a slot are equal.
const compareAndSet = `if (redis.call('GET', KEYS[1]) or '') ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2])
return 1`

// Put implements worker.Slots.
func (r *registry) Put(ctx context.Context, slot int, d worker.Doc, expected worker.Version) (worker.Version, bool, error) {
	node, err := r.node(ctx)
	if err != nil {
		return "", false, &worker.NotWrittenError{Err: r.explain(err)}
	}
	var (
		text = d.Encode()
		want = r.replicas.Load()
		pipe = node.Pipeline() // one connection, as WAIT counts the writes of its connection
		put  = pipe.Eval(ctx, compareAndSet, []string{r.key(slot)}, string(expected), text)
		wait *redis.IntCmd
	)
	if want > 0 {
		wait = redis.NewIntCmd(ctx, "wait", want, replicaTimeout(ctx).Milliseconds())
		pipe.Process(ctx, wait)
	}
	pipe.Exec(ctx) // each command has its own error
	switch written, err := put.Int(); {
	case err != nil && isAnswer(err):
		return "", false, &worker.NotWrittenError{Err: r.explain(err)}
	case err != nil:
		return "", false, r.explain(err)
	case written == 0:
		return "", false, nil
	}
	if wait != nil {
		have, err := wait.Result()
		if err != nil {
			return "", false, r.explain(err)
		}
		if have < want {
			return "", false, fmt.Errorf("%s: only %d of %d required replicas have the write; start the others, or lower leafRedisReplicas",
				r.cfg.String(), have, want)
		}
	}
	return worker.Version(text), true, nil
}

// isAnswer reports whether err is an answer of the server. If it is, the script has not written, as the write is its last step.
func isAnswer(err error) bool {
	_, ok := errors.AsType[redis.Error](err)
	return ok
}

// replicaTimeout returns how long to wait for replicas: half of the remaining time, so that the answer arrives
// in time.
func replicaTimeout(ctx context.Context) time.Duration {
	d := time.Second
	if until, ok := ctx.Deadline(); ok {
		d = min(d, time.Until(until)/2)
	}
	return max(d, time.Millisecond) // 0 would mean forever
}

// identity returns the server's replication id, which changes in a restart and in a fail-over.
func (r *registry) identity(ctx context.Context) (string, error) {
	node, err := r.node(ctx)
	if err != nil {
		return "", r.explain(err)
	}
	text, err := node.Info(ctx, "replication").Result()
	if err != nil {
		return "", r.explain(err)
	}
	info := parseInfo(text)
	switch {
	case info["role"] == "slave":
		return "", fmt.Errorf("%s: the server is a replica; use the address of the primary, or of Sentinels with leafRedisMaster", r.cfg.String())
	case info["master_replid"] == "":
		return "", r.unusableError("INFO has no master_replid, which is needed to detect fail-overs; use Redis 4 or later, without a proxy")
	}
	if n, _ := strconv.Atoi(info["connected_slaves"]); n > 0 && r.cfg.Replicas == 0 {
		r.replicas.Store(1) // it stays 1, since a primary that was cut off loses its replicas
	}
	r.policyOnce.Do(func() { r.checkPolicy(ctx, node) })
	return info["master_replid"], nil
}

// checkPolicy logs a warning for a server that may evict documents.
func (r *registry) checkPolicy(ctx context.Context, node redis.Cmdable) {
	text, err := node.Info(ctx, "memory").Result()
	if p := parseInfo(text)["maxmemory_policy"]; err == nil && p != "" && p != "noeviction" {
		r.cfg.Logger.Warn("leafsql: this Redis may evict keys, and after the eviction of a worker id's document processes wait for minutes; set maxmemory-policy to noeviction",
			"registry", r.cfg.String(), "maxmemory_policy", p)
	}
}

// parseInfo returns the fields of an INFO answer.
func parseInfo(info string) map[string]string {
	m := make(map[string]string)
	for line := range strings.Lines(info) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ":"); ok {
			m[name] = value
		}
	}
	return m
}

func (r *registry) time(ctx context.Context) (time.Time, error) {
	node, err := r.node(ctx)
	if err != nil {
		return time.Time{}, err
	}
	return node.Time(ctx).Result()
}
