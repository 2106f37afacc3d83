// Package zookeeper leases worker ids through ZooKeeper, beside Meituan's Java Leaf if it is there. Applications import it for
// its effect and name it in the DSN:
//
//	import _ "github.com/leafsql/leafsql/idgen/worker/zookeeper"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafWorker=zookeeper(h1:2181,h2:2181,h3:2181)")
//
// The DSN has these parameters, all optional. leafZooKeeperName (leafsql if missing)
// names the registry, so that several can share an ensemble; beside a Java Leaf it is
// that server's leaf.name. leafZooKeeperRoot (/snowflake if missing) is the node above
// all registries; write each / as %2F. leafZooKeeperUsername and leafZooKeeperPassword
// log in by digest: then other users have no access to the nodes that the package
// creates, but for those that Java Leaf uses too. Config says the same in Go.
//
// Every worker id is one node, /snowflake/<name>/leafsql/<epoch>/worker-<n>, that is changed by its version alone. None is to
// be edited or deleted while processes run. Each new registry gets a new random epoch, so a write that was decided on
// before a wipe changes nothing after it. Who takes a worker id writes the node clock
// beside them, for the server's time. No node is ephemeral. A lost session does not end a
// lease, and a session does not keep one: a lease lasts until its bound. A process that
// loses its session opens a new one.
//
// A node that is deleted and made again has its versions from 0 on: the put of a process
// that was stopped meanwhile can meet the version that it expects. So delete none.
//
// # Beside Java Leaf
//
// If the node /snowflake/<name>/forever exists, worker ids are shared with the Java Leaf
// of that name, in which nothing has to be changed. This library leaves out some of the
// 1024 worker ids: the number n of each node <ip>:<port>-<n> there, and the 64 numbers
// that Java Leaf takes next. If so many Java Leaf servers start that a process's worker
// id becomes one of these, the process takes another.
//
// Java Leaf never removes its nodes. A Java Leaf that has not reported its time for an
// hour may lose its number: if no other worker id is free, a process takes that number
// and deletes the node in the same step. If that Java Leaf returns, it gets a new number.
// Two things no registry can prevent: a Java Leaf that goes on for an hour without
// ZooKeeper, and one that starts without it, from the number in its local file, after its
// node was deleted. And where the first Java Leaf is started after this library, it takes
// number 0 unasked, whoever has it: create the node forever, empty, before this library's
// first start. If the nodes of Java Leaf are lost, as by a wipe of the ensemble, a running
// one does not write its own again, and this library can't know its number: stop all Java
// Leaf servers, and start them within two minutes.
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
	return worker.Source{Slots: r, Name: cfg.String(), Time: r.time, Close: r.servers.close}, nil
}
