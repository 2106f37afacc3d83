// Package redis leases worker ids through Redis. Applications import it for its effect and name it
// in the DSN:
//
//	import _ "github.com/leafsql/leafsql/idgen/worker/redis"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafWorker=redis(h1:6379)")
//
// One address is a single server, several are nodes of a Redis Cluster, and with leafRedisMaster,
// the name of a primary, they are Sentinels. Parameters of the DSN, all optional, are
// leafRedisUsername, leafRedisPassword, leafRedisDatabase; leafRedisMaster,
// leafRedisSentinelUsername and leafRedisSentinelPassword; leafRedisCluster=true where a cluster
// has one address; leafRedisTLS (true, or skip-verify); leafRedisCA, leafRedisCert and
// leafRedisKey, the PEM files for TLS; leafRedisPrefix, leafsql if missing, by which several
// registries share a server; and leafRedisReplicas, below. Config says the same in Go.
//
// Every worker id is one key, {leafsql}:worker:<n>, that is changed by compare-and-set alone, a
// script of three lines; {leafsql}:registry is the registry's own. In a cluster one node has all of
// them. They have no expiry and must not get one, nor be evicted, edited or deleted while processes
// run: a server whose maxmemory-policy is not noeviction is warned about.
//
// Redis loses what it has acknowledged: its last writes in a fail-over, and in a restart too,
// unless appendfsync is always. After a fail-over and after a restart the server has another
// replication id, which shows that writes may have been lost. Processes that hold worker ids go on
// then. The first process that takes a worker id afterwards, however much later, waits for the
// lease, a quarter of it and 60 s, until a former owner whom the server has forgotten cannot issue
// ids any more, and so do others until that wait is over. The first process of a new registry waits
// as long, unless leafsql init ran before or leafNewRegistry declares it new.
//
// A primary that the Sentinels have replaced does not know this at once, and goes on acknowledging
// writes. So where there are replicas, one of them has to have a write before it counts (WAIT).
// leafRedisReplicas says how many: 1 by default with Sentinels, and elsewhere once the server was
// seen to have replicas. If it is the number of all replicas (2 for a primary with two replicas),
// no worker id has two owners in any partition, and no worker id is renewed while a replica is
// away. If it is less, a partition can give one worker id to two processes: if the old primary,
// enough replicas and some processes stay cut off together from the Sentinels and the other
// processes, both primaries give out the same worker ids. leafRedisReplicas=0 waits for none.
//
// The user needs the commands GET, SET, EVAL, INFO, TIME and WAIT; with leafRedisDatabase also
// SELECT; in a cluster also CLUSTER SLOTS and CLUSTER SHARDS. Redis 4 and later will do, and
// Valkey. A proxy that hides which server answers can't be used.
//
// The package takes no client of the application's: one that sends a write again by itself would
// not be safe.
package redis

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/setting"
)

func init() { worker.Register("redis", openDSN) }

func openDSN(address string, opts worker.Options) (func(context.Context) (worker.Source, error), error) {
	cfg, err := parse(address, opts)
	if err == nil {
		err = cfg.complete()
	}
	if err != nil {
		return nil, err
	}
	return func(context.Context) (worker.Source, error) { return Open(cfg) }, nil
}

// Config says where the registry is, for Open. Its zero fields have defaults.
type Config struct {
	Servers []string // host:port: a server, nodes of a cluster, or Sentinels
	Cluster bool     // one server that is of a cluster
	Master  string   // the primary's name, where Servers are Sentinels

	Username, Password                 string
	SentinelUsername, SentinelPassword string
	Database                           int         // not in a cluster
	TLS                                *tls.Config // nil: no TLS

	Prefix string // of the keys; "leafsql"

	// Replicas is how many of them must have a write before it counts. 0: one, with Sentinels or where there are any. -1: none.
	Replicas int

	Logger *slog.Logger // of warnings; slog.Default()
}

// parse reads the source's spec and options from a DSN.
func parse(address string, opts worker.Options) (Config, error) {
	s := setting.Of("Redis", opts)
	cfg := Config{
		Cluster: s.Flag("Cluster"), Master: s.Text("Master"),
		Username: s.Text("Username"), Password: s.Text("Password"),
		SentinelUsername: s.Text("SentinelUsername"), SentinelPassword: s.Text("SentinelPassword"),
		TLS: s.TLS(), Prefix: s.Text("Prefix"),
	}
	cfg.Database, _ = s.Number("Database")
	if n, ok := s.Number("Replicas"); ok {
		cfg.Replicas = cmp.Or(n, -1)
	}
	port := "6379"
	if cfg.Master != "" {
		port = "26379"
	}
	cfg.Servers = s.Servers(address, port)
	return cfg, s.Err()
}

// String names the registry, without secrets.
func (c Config) String() string {
	s := "Redis " + strings.Join(c.Servers, ",")
	if c.Master != "" {
		s += ", primary " + c.Master
	}
	if c.Database != 0 {
		s += fmt.Sprintf(", database %d", c.Database)
	}
	return s + ", keys {" + c.Prefix + "}:…"
}

// GoString and LogValue are String: neither %#v nor slog must show the passwords.
func (c Config) GoString() string { return c.String() }

func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c *Config) complete() error {
	c.Prefix = cmp.Or(c.Prefix, "leafsql")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	switch isCluster := c.Cluster || c.Master == "" && len(c.Servers) > 1; {
	case len(c.Servers) == 0:
		return errors.New("leafsql: Redis: no server; write for example redis(h1:6379)")
	case strings.ContainsAny(c.Prefix, "{} \n"):
		return fmt.Errorf("leafsql: Redis: the prefix %q; write one without braces and spaces", c.Prefix)
	case c.Cluster && c.Master != "":
		return errors.New("leafsql: Redis: leafRedisMaster is for Sentinels, which a cluster has none of; leave it or leafRedisCluster out")
	case isCluster && c.Database != 0:
		return errors.New("leafsql: Redis: a cluster has no other database than 0; leave leafRedisDatabase out, or name the Sentinels' primary with leafRedisMaster")
	}
	return nil
}

// answerTime is how long a server or Sentinel is waited for; WAIT takes a second of it at most. Making a connection may take four
// times that: one that stands still is asked for the primary twice and then once more beside the others, and where the time is up
// before, it is asked for ever.
const answerTime = 1500 * time.Millisecond

// Open gives the source that a worker id is leased from. Nothing connects before one is wanted.
func Open(cfg Config) (worker.Source, error) {
	if err := cfg.complete(); err != nil {
		return worker.Source{}, err
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: cfg.Servers, MasterName: cfg.Master, IsClusterMode: cfg.Cluster,
		Username: cfg.Username, Password: cfg.Password, SentinelUsername: cfg.SentinelUsername, SentinelPassword: cfg.SentinelPassword,
		DB: cfg.Database, TLSConfig: cfg.TLS,
		Dialer: marked(redis.NewDialer(&redis.Options{DialTimeout: 4 * answerTime, TLSConfig: cfg.TLS})),

		MaxRetries: -1, DialerRetries: 1, // nothing is sent twice, and the keeper tries again
		ContextTimeoutEnabled: true, DialTimeout: 4 * answerTime, ReadTimeout: answerTime,
		PoolSize: 4, ConnMaxIdleTime: time.Minute,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	if cfg.Master != "" {
		sentinels.Store(true)
	}
	r := &registry{client: client, cfg: cfg}
	r.replicas.Store(int64(max(cfg.Replicas, 0)))
	if cfg.Replicas == 0 && cfg.Master != "" {
		r.replicas.Store(1)
	}
	return worker.Source{Slots: r, Name: cfg.String(), Identity: r.identity, Time: r.time, Close: client.Close}, nil
}
