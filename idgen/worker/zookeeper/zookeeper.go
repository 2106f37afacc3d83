// Package zookeeper leases worker ids through ZooKeeper, and can share them with Meituan's Java Leaf. Applications import it for
// its side effect and name it in the DSN:
//
//	import _ "github.com/leafsql/leafsql/idgen/worker/zookeeper"
//
//	db, err := sql.Open("mysql-leaf", dsn+"&leafTables=events:id:snowflake&leafWorker=zookeeper(h1:2181,h2:2181,h3:2181)")
//
// The DSN has these parameters, all optional. leafZooKeeperName (default leafsql)
// names the registry, so that several can share an ensemble. With a Java Leaf it is
// that server's leaf.name. leafZooKeeperRoot (default /snowflake) is the node above
// all registries; write each / as %2F. leafZooKeeperUsername and leafZooKeeperPassword
// log in by digest: then other users have no access to the nodes that the package
// creates, except those that Java Leaf uses too. Config has the same settings in Go.
//
// Every worker id is one node, /snowflake/<name>/leafsql/<epoch>/worker-<n>. It is changed only if its version is the expected
// version. Nodes must not be edited or deleted while processes run. Each new registry gets a new random epoch, so a write that a
// process sends late, after a wipe, changes nothing. A process that takes a worker id writes the node clock
// in the same folder, to get the server's time. No node is ephemeral. Leases are independent of
// ZooKeeper's sessions. A process that loses its session opens a new one.
//
// If a node is deleted and created again, its versions start at 0 again. The late write of a process
// that was paused can then find the version that it expects. So do not delete nodes.
//
// # Sharing worker ids with Java Leaf
//
// If the node /snowflake/<name>/forever exists, worker ids are shared with the Java Leaf
// of that name. Java Leaf needs no changes. leafsql does not use some of the
// 1024 worker ids: the number n of each node <ip>:<port>-<n> there, and the 64 numbers
// that the next Java Leafs will take. If so many Java Leafs start that a process's worker
// id becomes one of these, the process takes another worker id.
//
// Java Leaf never removes its nodes. A Java Leaf that has not reported its time for an
// hour may lose its number: if no other worker id is free, a process takes that number
// and deletes the node in the same step. If that Java Leaf returns, it gets a new number.
// In two cases a worker id can be used twice, and no registry can prevent it: a Java Leaf continues for an
// hour without ZooKeeper, or it starts without ZooKeeper, from the number in its local file, after its
// node was deleted.
//
// If the first Java Leaf starts after leafsql, it uses
// number 0, even if a process has it: create an empty node forever before leafsql's
// first start. If the nodes of Java Leaf are lost, for example in a wipe of the ensemble, a running
// Java Leaf does not create its node again, and leafsql cannot find its number: stop all Java
// Leafs, and start them within two minutes.
//
// The package does not support TLS.
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

// Config configures Open. Fields other than Servers may be zero.
type Config struct {
	Servers []string // host:port of servers in one ensemble

	Root string // folder of all registries; "" means /snowflake
	Name string // name of the registry, and leaf.name of a Java Leaf that shares it; "" means leafsql

	Username, Password string // for digest authentication; "" for none
}

// parse parses the source's spec and options in a DSN.
func parse(address string, opts worker.Options) (Config, error) {
	s := setting.New("ZooKeeper", opts)
	return Config{
		Servers: s.Servers(address, "2181"), Root: s.Text("Root"), Name: s.Text("Name"),
		Username: s.Text("Username"), Password: s.Text("Password"),
	}, s.Err()
}

// String returns the name of the registry, without secrets.
func (c Config) String() string {
	return "ZooKeeper " + strings.Join(c.Servers, ",") + ", " + c.folder()
}

// GoString and LogValue call String, so that neither %#v nor slog shows the password.
func (c Config) GoString() string { return c.String() }

func (c Config) LogValue() slog.Value { return slog.StringValue(c.String()) }

// folder returns the folder of leafsql's nodes, and forever the folder of Java Leaf's nodes.
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

// Open returns the source. It does not connect before a worker id is requested. It returns an
// error only if cfg is invalid.
func Open(cfg Config) (worker.Source, error) {
	if err := cfg.complete(); err != nil {
		return worker.Source{}, err
	}
	r := &registry{cfg: cfg, servers: &servers{cfg: cfg}}
	return worker.Source{Slots: r, Name: cfg.String(), Time: r.time, Close: r.servers.close}, nil
}
