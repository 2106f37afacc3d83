// Package zookeeper leases worker ids through ZooKeeper, beside Meituan's Java Leaf if it is there. Applications import it for
// its effect and name it in the DSN:
//
//	import _ "github.com/leafsql/leafsql/idgen/worker/zookeeper"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafWorker=zookeeper(h1:2181,h2:2181,h3:2181)")
//
// Parameters of the DSN, all optional, are leafZooKeeperName, leafsql if missing, by which several registries share an
// ensemble: leaf.name, where there is a Java Leaf; leafZooKeeperRoot, the folder of all, /snowflake if missing, each / written
// as %2F; and leafZooKeeperUsername and leafZooKeeperPassword, who log in by digest. With them nobody else may touch what the
// package creates, but for the folders that Java Leaf uses too. Config says the same in Go.
//
// Every worker id is one node, /snowflake/<name>/leafsql/<epoch>/worker-<n>, that is changed by its version alone. None is to
// be edited or deleted while processes run. Each new registry gets a new random epoch, so a write that was decided on
// before a wipe changes nothing after it. No node is ephemeral. A lost session does not end a lease, and a session does not
// keep one: a lease lasts until its bound. Who is disconnected opens a new session.
//
// # Beside Java Leaf
//
// Where /snowflake/<name>/forever is, worker ids are shared with the Java Leaf of that name, both unchanged. Of the 1024
// worker ids this library does not use the number n of any node <ip>:<port>-<n> there, nor the next 64 numbers of Java Leaf.
// A process whose worker id comes to be one of them, because many a Java Leaf was started, takes another.
//
// Java Leaf never removes its nodes. One that has not reported its time for an hour stands back: if no other worker id is to be
// had, its number is taken and its node deleted in the same step, so that a Java Leaf which returns to that address gets a
// new number. Two things no registry can prevent: a Java Leaf that goes on for an hour without ZooKeeper, and one that starts
// without it, from the number in its local file, after its node was deleted. And where the first Java Leaf is started after
// this library, it takes number 0 unasked, whoever has it: create the node forever, empty, before this library's first start.
//
// The package makes no TLS connections.
package zookeeper

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"path"
	"strings"

	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/setting"
)

func init() { worker.Register("zookeeper", openDSN) }

func openDSN(_ context.Context, address string, opts worker.Options) (worker.Source, error) {
	cfg, err := parse(address, opts)
	if err != nil {
		return worker.Source{}, err
	}
	return Open(cfg)
}

// Config says where the registry is, for Open. Its zero fields have defaults.
type Config struct {
	Servers []string // host:port, of one ensemble

	Root string // the folder of all registries; "/snowflake"
	Name string // the registry's, and leaf.name of a Java Leaf beside it; "leafsql"

	Username, Password string // for digest authentication; "" for none
}

// parse reads the source's spec and options from a DSN.
func parse(address string, opts worker.Options) (Config, error) {
	s := setting.Of("ZooKeeper", opts)
	return Config{
		Servers: s.Servers(address, "2181"), Root: s.Text("Root"), Name: s.Text("Name"),
		Username: s.Text("Username"), Password: s.Text("Password"),
	}, s.Err()
}

// String names the registry, without secrets.
func (c Config) String() string {
	return "ZooKeeper " + strings.Join(c.Servers, ",") + ", " + c.folder()
}

// GoString and LogValue are String: neither %#v nor slog must show the password.
func (c Config) GoString() string { return c.String() }

func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// folder has this library's nodes, forever those of Java Leaf.
func (c Config) folder() string  { return path.Join(c.Root, c.Name, "leafsql") }
func (c Config) forever() string { return path.Join(c.Root, c.Name, "forever") }

func (c *Config) complete() error {
	c.Root = cmp.Or(c.Root, "/snowflake")
	c.Name = cmp.Or(c.Name, "leafsql")
	switch {
	case len(c.Servers) == 0:
		return errors.New("leafsql: ZooKeeper: no server; write for example zookeeper(h1:2181,h2:2181,h3:2181)")
	case strings.ContainsAny(c.Name, "/\x00") || c.Name == "." || c.Name == "..":
		return fmt.Errorf("leafsql: ZooKeeper: leafZooKeeperName=%s: want a name without /", c.Name)
	case c.Root != "/" && (!strings.HasPrefix(c.Root, "/") || path.Clean(c.Root) != c.Root):
		return fmt.Errorf("leafsql: ZooKeeper: leafZooKeeperRoot=%s: want a path such as /snowflake", c.Root)
	case c.Username == "" && c.Password != "" || strings.Contains(c.Username, ":"):
		return errors.New("leafsql: ZooKeeper: leafZooKeeperPassword needs a leafZooKeeperUsername, without a colon")
	}
	return nil
}

// Open gives the source that a worker id is leased from. Nothing connects before one is wanted.
func Open(cfg Config) (worker.Source, error) {
	if err := cfg.complete(); err != nil {
		return worker.Source{}, err
	}
	r := &registry{cfg: cfg, servers: &servers{cfg: cfg}}
	return worker.Source{Slots: r, Name: cfg.String(), Close: r.servers.close}, nil
}
