package driver

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/driver/internal/rules"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/idgen"
	"github.com/leafsql/leafsql/idgen/snowflake"
	"github.com/leafsql/leafsql/idgen/worker"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/spec"
)

// storeKey returns a key that is equal for configurations of the same database. It
// is empty if a function of the application chooses the database.
func storeKey(cfg *mysql.Config) string {
	if cfg.DialFunc != nil {
		return ""
	}
	return cfg.FormatDSN() + "|"
}

// openStore opens or shares the leaf_alloc that cfg names. own is the connector for
// the application's database, and key its storeKey. openStore does not connect.
func openStore(cfg *Config, own driver.Connector, key string) (*ids.Store, error) {
	of := cfg.MySQL
	store := ids.StoreConfig{Connector: own, Table: cfg.AllocTable, Key: key, Replacement: cfg.SegmentStore, Logger: cfg.logger()}
	if cfg.Store != "" && cfg.SegmentStore == nil {
		named, err := ParseDSN(cfg.Store)
		if err == nil {
			of = named.MySQL
			store.Connector, err = mysql.NewConnector(pool.AdaptConfig(of))
		}
		if err != nil {
			return nil, configError("leafStore", errprefix.TrimText(err), "write a go-sql-driver DSN")
		}
		store.Key, store.Home.Named = storeKey(of), true
		if of.DBName != "" && !strings.Contains(store.Table, ".") { // with the database, the SQL in errors works on any connection
			store.Table = of.DBName + "." + store.Table
		}
	}
	store.Name = describeDatabase(of)
	if cfg.SegmentStore == nil {
		store.Home.Server = serverAddress(of)
		if store.Home.DB, store.Home.Table = quote.Split(cfg.AllocTable); store.Home.DB == "" && of != nil {
			store.Home.DB = of.DBName
		}
	}
	if store.Key != "" {
		store.Key += cfg.AllocTable
	}
	return ids.OpenStore(store)
}

// serverAddress returns the network and address of the server, or "" if cfg is nil.
func serverAddress(cfg *mysql.Config) string {
	if cfg == nil {
		return ""
	}
	return fmt.Sprintf("%s(%s)", cfg.Net, cfg.Addr)
}

// describeDatabase returns a description of a database without secrets.
func describeDatabase(cfg *mysql.Config) string {
	if cfg == nil {
		return "MySQL"
	}
	return "MySQL " + serverAddress(cfg) + "/" + cfg.DBName
}

// defaultWorker is the source of worker ids if leafWorker is empty.
const defaultWorker = "mysql()"

// openSnowflakes opens or shares the generator of snowflakes. Its worker ids come from the
// source that cfg names, by default the database of store. It returns nil if no snowflakes
// are configured.
func openSnowflakes(cfg *Config, store *ids.Store) (*ids.Snowflakes, error) {
	if cfg.Worker == "" && cfg.WorkerSource == nil && !hasSnowflakeTables(cfg) {
		return nil, nil
	}
	layout := cmp.Or(cfg.Snowflake, snowflake.Leaf)
	err := layout.Validate()
	if err != nil {
		return nil, configError("leafSnowflake", errprefix.TrimText(err), "")
	}
	flakes := ids.SnowflakesConfig{
		Layout: layout, Open: cfg.WorkerSource, Store: store, Create: cfg.Create,
		Worker: worker.Config{Lease: cfg.Lease, NewRegistry: cfg.NewRegistry, AnyClock: cfg.AnyClock, State: cfg.State, Logger: cfg.logger()},
	}
	switch name, address, _ := spec.Parse(cmp.Or(cfg.Worker, defaultWorker)); {
	case cfg.WorkerSource != nil:
	case name != "mysql":
		if flakes.Open, err = worker.Lookup(cfg.Worker, worker.Options(cfg.WorkerOptions)); err != nil {
			if option, ok := errors.AsType[*spec.OptionError](err); ok {
				return nil, configError(option.Param(), option.Reason, option.Hint())
			}
			return nil, configError("leafWorker", errprefix.TrimText(err), "")
		}
		flakes.Source = fmt.Sprintf("%q %q %q", cfg.Worker, cfg.State, cfg.WorkerOptions) // %q prints maps in key order
	case address != "" || len(cfg.WorkerOptions) > 0:
		return nil, configError("leafWorker", "mysql() takes no address and no parameters", "its table is in the database of leaf_alloc; set that with leafAllocTable or leafStore")
	}
	s, err := ids.OpenSnowflakes(flakes)
	if err != nil {
		return nil, configError("leafLease", errprefix.TrimText(err), "write for example 60s")
	}
	if s.Lease != cfg.Lease {
		s.Close()
		return nil, configError("leafLease", fmt.Sprintf("another pool of this process leases its worker id from the same source with leafLease=%v, this one has %v", s.Lease, cfg.Lease),
			"give all pools the same leafLease")
	}
	return s, nil
}

// hasSnowflakeTables reports whether a rule of cfg gives its tables snowflakes.
func hasSnowflakeTables(cfg *Config) bool {
	return slices.ContainsFunc(cfg.Tables, func(r Rule) bool { return r.Kind == Snowflake && r.Generator == nil && !r.Exclude })
}

// queryTags implements inspect.Tags.
func queryTags(ctx context.Context, connector driver.Connector) ([]control.Row, error) {
	c := connector.(*Connector).current()
	rows, err := c.store.Alloc.Tags(ctx)
	if err != nil {
		return nil, publicError(c.tables.AllocError(c.store.Table, "reading its tags", err))
	}
	return rows, nil
}

// queryTag implements inspect.Tag.
func queryTag(ctx context.Context, connector driver.Connector, tag string) (control.Row, error) {
	return connector.(*Connector).current().store.Alloc.Row(ctx, tag)
}

// Segment returns the generator of a tag, for ids without an INSERT. Tables with
// this tag use the same generator. It is closed with the Connector. Nothing is
// queried before the first id; Next then fails with *segment.UnknownTagError if the tag
// has no row. Each name is kept in memory, so check names from untrusted sources against
// leaf_alloc first.
func (c *Connector) Segment(tag string) idgen.Generator {
	return c.current().store.Counter(ids.Tag{Name: tag}).Generator
}

// Snowflake returns the generator of snowflakes, for ids without an INSERT. Tables
// use the same generator. It is closed with the Connector. It is nil if Config
// has no rule with Kind Snowflake, no Worker and no WorkerSource. A worker id is leased
// when the first id is drawn.
func (c *Connector) Snowflake() idgen.Generator {
	if c = c.current(); c.snowflakes == nil {
		return nil
	}
	return c.snowflakes
}

// Worker returns the status of the worker id for snowflakes of this Connector. Until the
// first id is drawn, or if no snowflakes are configured, Phase is "idle" and Worker
// is -1. Worker does not query the registry.
func (c *Connector) Worker() worker.Status {
	if c = c.current(); c.snowflakes == nil {
		return worker.Status{Phase: "idle", Worker: -1}
	}
	return c.snowflakes.Worker()
}

// newTables returns the tables that cfg configures. store and snowflakes are nil if no ids are
// drawn.
func newTables(cfg *Config, ours driver.Connector, store *ids.Store, snowflakes *ids.Snowflakes) *tables.Set {
	of := rules.Config{
		Auto: cfg.Auto(), Rules: cfg.Tables, KeepExplicit: cfg.KeepExplicit, UUID: cfg.UUID, Create: cfg.Create,
		RefuseAutoIncrement: cfg.RefuseAutoIncrement, Logger: cfg.Logger, ResultOnly: cfg.ResultOnly, Zero: cfg.Zero, Server: serverAddress(cfg.MySQL),
		Foreign: store != nil && cfg.Store != "" && (cfg.MySQL == nil || store.Name != describeDatabase(cfg.MySQL)),
	}
	var generator idgen.Generator
	if snowflakes != nil {
		generator = snowflakes
	}
	return tables.New(of, catalog.New(pool.Open(ours, 2)), store, generator)
}
