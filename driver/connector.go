package driver

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/go-sql-driver/mysql"
)

// Name is what the driver is registered as. It begins with "mysql" because
// libraries pick their dialect by that prefix.
const Name = "mysql-leaf"

func init() { sql.Register(Name, Driver{}) }

var (
	_ driver.Driver        = Driver{}
	_ driver.DriverContext = Driver{}
	_ driver.Connector     = (*Connector)(nil)
)

// Driver is the database/sql driver. Applications use it by its Name.
type Driver struct{}

// Open connects once, with a connector of its own that lasts as long as the
// connection. database/sql calls OpenConnector instead.
func (d Driver) Open(dsn string) (driver.Conn, error) {
	c, err := d.OpenConnector(dsn)
	if err != nil {
		return nil, err
	}
	connector := c.(*Connector)
	dc, err := connector.Connect(context.Background())
	if err != nil {
		connector.Close()
		return nil, err
	}
	dc.(*conn).closeConnector = true
	return dc, nil
}

// OpenConnector reads the DSN, and connects to nothing.
func (Driver) OpenConnector(dsn string) (driver.Connector, error) {
	cfg, err := ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return NewConnector(cfg)
}

// A Connector makes connections that share tables, plans and generators. Use
// it with sql.OpenDB, whose DB.Close closes it too.
type Connector struct {
	cfg     *Config
	inner   driver.Connector
	rules   []Rule
	idle    bool // leafTables=none
	catalog *catalog
	ids     generators
	stats   counters

	view   atomic.Pointer[view]
	aging  *time.Timer
	closed atomic.Bool

	setup struct {
		sync.Mutex
		done      bool
		database  string // the DSN's
		foldsCase bool
	}
	once sync.Map // what is said or checked once: string -> struct{}
}

// NewConnector returns a connector for go-sql-driver as cfg.MySQL configures it.
func NewConnector(cfg *Config) (*Connector, error) {
	if cfg.MySQL == nil {
		return nil, &ConfigError{"Config.MySQL", "not set", "start from driver.NewConfig or driver.ParseDSN"}
	}
	inner, err := mysql.NewConnector(cfg.MySQL)
	if err != nil {
		return nil, err
	}
	return Wrap(inner, cfg)
}

// Wrap returns a connector for connections that inner makes: a connector of
// go-sql-driver with a dial function of one's own, or one that a tracing
// package put around it. Each connection has to implement what
// go-sql-driver's do, or Connect says what is missing.
func Wrap(inner driver.Connector, cfg *Config) (*Connector, error) {
	cfg = cfg.Clone()
	cfg.AllocTable = cmp.Or(cfg.AllocTable, "leaf_alloc")
	cfg.Lease = cmp.Or(cfg.Lease, DefaultLease)
	if err := check(cfg); err != nil {
		return nil, err
	}
	c := &Connector{cfg: cfg, inner: inner, rules: bySpecificity(cfg.Tables), idle: !cfg.Auto && len(cfg.Tables) == 0, catalog: newCatalog(inner)}
	var err error
	if c.ids, err = newGenerators(cfg, inner); err != nil {
		c.catalog.db.Close()
		return nil, err
	}
	c.view.Store(newView())
	c.aging = time.AfterFunc(maxAge, c.age)
	return c, nil
}

// check finds what is wrong with a Config before anything connects.
func check(cfg *Config) error {
	if cfg.Auto && len(cfg.Tables) > 0 {
		return &ConfigError{"leafTables", "auto stands beside rules", "set Config.Auto to false, or Config.Tables to nil"}
	}
	if cfg.Auto && cfg.SegmentStore != nil {
		return &ConfigError{"leafTables", "auto reads leaf_alloc, which a SegmentStore of one's own replaces", "name the tables"}
	}
	for _, r := range cfg.Tables {
		switch {
		case r.Database == "" && cfg.MySQL != nil && cfg.MySQL.DBName == "":
			return ruleError(r.String(), "the DSN has no database that a bare table name could mean", "write db."+r.Table)
		case r.Kind == Snowflake && r.Generator == nil && cfg.Worker == "" && cfg.WorkerSource == nil:
			return &ConfigError{"leafWorker", fmt.Sprintf("missing, and table %s takes snowflakes", r.Table),
				"name a source of worker ids, for example leafWorker=static(7) or leafWorker=nacos(127.0.0.1:8848)"}
		}
	}
	return nil
}

// Driver is part of driver.Connector.
func (c *Connector) Driver() driver.Driver { return Driver{} }

// Connect makes a connection. The first one also reads what all share, such
// as leaf_alloc's tags under leafTables=auto.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ic, ok := dc.(innerConn)
	if !ok {
		dc.Close()
		return nil, &ConfigError{"the wrapped driver", fmt.Sprintf("its connection (%T) lacks %s", dc, missing(dc)), "wrap go-sql-driver's own connector, or one that passes these on"}
	}
	if err := c.prepare(ctx, ic); err != nil {
		dc.Close()
		return nil, err
	}
	return &conn{innerConn: ic, c: c, db: c.setup.database}, nil
}

// prepare learns, before the first connection is used, what no statement can
// do without. It runs again until it has worked once.
func (c *Connector) prepare(ctx context.Context, ic innerConn) error {
	s := &c.setup
	s.Lock()
	defer s.Unlock()
	if s.done {
		return nil
	}
	if c.cfg.MySQL != nil {
		s.database = c.cfg.MySQL.DBName
	}
	if !c.idle {
		var err error
		if c.cfg.MySQL == nil {
			if s.database, err = currentDatabase(ctx, ic); err != nil {
				return err
			}
		}
		if s.foldsCase, err = c.catalog.foldsCase(ctx); err != nil {
			return err
		}
		if s.foldsCase {
			for i := range c.rules {
				c.rules[i].Tag = c.rules[i].tag()
				c.rules[i].Database, c.rules[i].Table = strings.ToLower(c.rules[i].Database), strings.ToLower(c.rules[i].Table)
			}
		}
		if c.cfg.Create && c.ids.alloc() != nil {
			if err := c.ids.alloc().Create(ctx); err != nil {
				return err
			}
		}
		if c.cfg.Auto {
			if _, err := c.tags(ctx, c.view.Load()); err != nil {
				return err
			}
		}
	}
	s.done = true
	return nil
}

// Close ends prefetching and gives the worker's lease back, where no other
// Connector shares them. sql.DB's Close calls it; a second call does nothing.
func (c *Connector) Close() error {
	if c.closed.Swap(true) {
		return nil
	}
	c.aging.Stop()
	c.catalog.db.Close()
	return c.ids.close()
}

// age replaces the view: an ALTER TABLE elsewhere must not go unseen for long.
func (c *Connector) age() {
	c.forget()
	if !c.closed.Load() {
		c.aging.Reset(maxAge)
	}
}

// forget makes the next statements read the catalog again.
func (c *Connector) forget() { c.view.Store(newView()) }

// first reports, once for each key, that it was not asked before.
func (c *Connector) first(key string) bool {
	_, seen := c.once.LoadOrStore(key, struct{}{})
	return !seen
}

// missing names the interfaces of innerConn that a connection lacks.
func missing(dc driver.Conn) string {
	var names []string
	have := reflect.TypeOf(dc)
	for m := range reflect.TypeFor[innerConn]().Methods() {
		if _, ok := have.MethodByName(m.Name); !ok {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}
