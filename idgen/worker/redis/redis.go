// Package redis leases worker ids through Redis. Applications import it for its side effect and name it
// in the DSN:
//
//	import _ "github.com/leafsql/leafsql/idgen/worker/redis"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafWorker=redis(h1:6379)")
//
// One address is a single server, several are nodes of a Redis Cluster, and with leafRedisMaster,
// the name of a primary, they are Sentinels. Parameters of the DSN, all optional, are
// leafRedisUsername, leafRedisPassword, leafRedisDatabase; leafRedisMaster,
// leafRedisSentinelUsername and leafRedisSentinelPassword; leafRedisCluster=true if a cluster
// has one address; leafRedisTLS (true, or skip-verify); leafRedisCA, leafRedisCert and
// leafRedisKey, the PEM files for TLS; leafRedisPrefix (default leafsql), with which several
// registries can share a server; and leafRedisReplicas, see below. Config has the same settings in Go.
//
// Every worker id is one key, {leafsql}:worker:<n>. It is changed only by compare-and-set, with a
// script of three lines. {leafsql}:registry is the registry's own key. In a cluster all these keys are on one
// node. They have no expiry, and must not get one, or be evicted, edited or deleted while processes
// run. If a server's maxmemory-policy is not noeviction, a warning is logged.
//
// Redis loses acknowledged writes: it loses the last writes in a fail-over, and also in a restart
// unless appendfsync is always. After a fail-over and after a restart the server has another
// replication id, which shows that writes may have been lost. Then processes that hold worker ids
// continue. The next process that takes a worker id, however late, waits for 60 s plus 1.25 times
// the lease. After this wait, a former owner with a lost key can no longer issue
// ids. Other processes wait until this wait has ended. The first process of a new registry waits
// for the same time, unless leafsql init ran before or leafNewRegistry declares it new.
//
// A primary that the Sentinels have replaced does not notice this at once, and continues to acknowledge
// writes. So if there are replicas, a write counts only when leafRedisReplicas of them have it (WAIT).
// The default is 1 with Sentinels. Without Sentinels it is 0 until the server is first seen with
// replicas, and 1 from then on. With leafRedisReplicas=0 no write waits.
//
// If all replicas are required (2 for a primary with two replicas), no worker id has two
// owners in any partition, but no worker id is renewed while a replica is away. If fewer are required,
// two processes can get the same worker id in a partition. This happens if the old primary, enough
// replicas and some processes are cut off together from the Sentinels and the other processes. The Sentinels promote
// another primary, and both primaries give out the same worker ids.
//
// The user needs the commands GET, SET, EVAL, INFO, TIME and WAIT; with leafRedisDatabase also
// SELECT; in a cluster also CLUSTER SLOTS and CLUSTER SHARDS. Redis 4 and later are supported, and
// Valkey. Proxies that hide which server answers are not supported.
//
// The package does not accept a client of the application, since a client that retries writes by itself is
// not safe.
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

// Config configures Open. Fields other than Servers may be zero.
type Config struct {
	Servers []string // host:port: a server, nodes of a cluster, or Sentinels
	Cluster bool     // the only server is a node of a cluster
	Master  string   // the primary's name, if Servers are Sentinels

	Username, Password                 string
	SentinelUsername, SentinelPassword string
	Database                           int         // not in a cluster
	TLS                                *tls.Config // nil: no TLS

	Prefix string // prefix of the keys; "" means leafsql

	// Replicas is the number of replicas that must have a write before it counts. 0 means one if there are
	// Sentinels or the server has replicas, and otherwise none. -1 means none.
	Replicas int

	Logger *slog.Logger // logs warnings; nil means slog.Default()
}

// parse parses the source's spec and options in a DSN.
func parse(address string, opts worker.Options) (Config, error) {
	s := setting.New("Redis", opts)
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

// String returns the name of the registry, without secrets.
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

// GoString and LogValue call String, so that neither %#v nor slog shows the passwords.
func (c Config) GoString() string { return c.String() }

func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

func (c *Config) complete() error {
	c.Prefix = cmp.Or(c.Prefix, "leafsql")
	c.Logger = cmp.Or(c.Logger, slog.Default())
	switch isCluster := c.Cluster || c.Master == "" && len(c.Servers) > 1; {
	case len(c.Servers) == 0:
		return errors.New("leafsql: Redis: no server; write for example redis(h1:6379)")
	case strings.ContainsAny(c.Prefix, "{} \n"):
		return fmt.Errorf("leafsql: Redis: the prefix %q has braces or spaces; remove them", c.Prefix)
	case c.Cluster && c.Master != "":
		return errors.New("leafsql: Redis: leafRedisMaster is for Sentinels, and a cluster has no Sentinels; leave out leafRedisMaster or leafRedisCluster")
	case isCluster && c.Database != 0:
		return errors.New("leafsql: Redis: a cluster has only database 0; leave out leafRedisDatabase, or set leafRedisMaster to the Sentinels' primary")
	}
	return nil
}

// answerTime is the timeout for an answer of a server or Sentinel; WAIT takes at most a second of it. Opening a connection may take
// four times answerTime, because go-redis tries a frozen Sentinel twice before it tries all Sentinels together. With a shorter timeout for
// connections, only the frozen Sentinel would be tried, again and again.
const answerTime = 1500 * time.Millisecond

// Open returns the source. It does not connect before a worker id is requested. It returns an
// error only if cfg is invalid.
func Open(cfg Config) (worker.Source, error) {
	if err := cfg.complete(); err != nil {
		return worker.Source{}, err
	}
	client := redis.NewUniversalClient(&redis.UniversalOptions{
		Addrs: cfg.Servers, MasterName: cfg.Master, IsClusterMode: cfg.Cluster,
		Username: cfg.Username, Password: cfg.Password, SentinelUsername: cfg.SentinelUsername, SentinelPassword: cfg.SentinelPassword,
		DB: cfg.Database, TLSConfig: cfg.TLS,
		Dialer: markErrors(redis.NewDialer(&redis.Options{DialTimeout: 4 * answerTime, TLSConfig: cfg.TLS})),

		MaxRetries: -1, DialerRetries: 1, // nothing is sent twice; the keeper retries
		ContextTimeoutEnabled: true, DialTimeout: 4 * answerTime, ReadTimeout: answerTime,
		PoolSize: 4, ConnMaxIdleTime: time.Minute,
		DisableIdentity:          true,
		MaintNotificationsConfig: &maintnotifications.Config{Mode: maintnotifications.ModeDisabled},
	})
	if cfg.Master != "" {
		usesSentinels.Store(true)
	}
	r := &registry{client: client, cfg: cfg}
	r.replicas.Store(int64(max(cfg.Replicas, 0)))
	if cfg.Replicas == 0 && cfg.Master != "" {
		r.replicas.Store(1)
	}
	return worker.Source{Slots: r, Name: cfg.String(), Identity: r.identity, Time: r.time, Close: client.Close}, nil
}
