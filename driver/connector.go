package driver

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"
	"golang.org/x/sync/semaphore"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/ownpool"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/internal/servererr"
)

// Name is what the driver is registered as. It begins with "mysql" because
// libraries pick their dialect by that prefix.
const Name = "mysql-leaf"

func init() { sql.Register(Name, sqlDriver{}) }

var (
	_ driver.Driver        = sqlDriver{}
	_ driver.DriverContext = sqlDriver{}
	_ driver.Connector     = (*Connector)(nil)
)

// sqlDriver is the database/sql driver. Applications use it by its Name.
type sqlDriver struct {
	connector *Connector // of a pool; nil for the registered driver
}

// Open connects once, with a connector of its own that lasts as long as the
// connection. database/sql calls OpenConnector instead.
func (d sqlDriver) Open(dsn string) (driver.Conn, error) {
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
func (sqlDriver) OpenConnector(dsn string) (driver.Connector, error) {
	cfg, err := ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return NewConnector(cfg)
}

// A Connector makes connections that share tables, plans and generators. Use
// it with sql.OpenDB, whose DB.Close closes it too; the next sql.OpenDB begins anew.
type Connector struct {
	cfg     *Config
	inner   driver.Connector
	rules   []Rule
	idle    bool // leafTables=none
	catalog *catalog.Catalog
	counts  counters

	store      *ids.Store
	snowflakes *ids.Snowflakes // nil: nothing takes them

	ctx    context.Context // of what runs in the background; ends with Close
	cancel context.CancelFunc
	closed atomic.Bool

	remake func() (*Connector, error) // makes another
	nextMu sync.Mutex
	next   *Connector // that connections are made by since Close

	schema     atomic.Pointer[schema]
	used       atomic.Bool // a statement used it since it was refreshed
	rowMissing atomic.Bool // the last row of leaf_alloc that was looked for was not there

	// What is learned before the first connection is used.
	ready     atomic.Bool
	learning  *semaphore.Weighted // of 1, held while that is done
	defaultDB string              // the DSN's, as table names compare
	foldsCase bool
	settings  insert.Settings // the server's version

	showsTransactions atomic.Bool // the server refuses failsInTransaction where one is open

	replaced atomic.Int64 // when a connection was last closed for want of a right, in Unix nanoseconds

	wrapped      bool // inner was given to Wrap
	interpolates bool // the inner driver puts arguments into texts
	foundRows    bool // affected counts are of rows found

	said sync.Map // what the log was told, and is told once: string -> struct{}
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
	own, err := mysql.NewConnector(ownpool.Config(cfg.MySQL))
	if err != nil {
		return nil, err
	}
	return wrap(inner, own, cfg, storeKey(cfg.MySQL))
}

// Wrap returns a connector for connections that inner makes: a connector of
// go-sql-driver with a dial function of one's own, or one that a tracing
// package put around it. Each connection has to implement what
// go-sql-driver's do, or Connect says what is missing. Where inner connects to is
// not known, so it shares its segments, and its worker id of mysql(), with no
// other Connector unless cfg.Store names where they are.
func Wrap(inner driver.Connector, cfg *Config) (*Connector, error) {
	return wrap(inner, nil, cfg, "")
}

// wrap is Wrap with another connector for connections of ours, unless that is nil. key
// is equal for those that lead to the same database, "" where that is not known.
func wrap(inner, own driver.Connector, cfg *Config, key string) (*Connector, error) {
	cfg = cfg.Clone()
	cfg.AllocTable = cmp.Or(cfg.AllocTable, "leaf_alloc")
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	if err := check(cfg); err != nil {
		return nil, err
	}
	if cfg.Auto && cfg.MySQL != nil && cfg.MySQL.DBName == "" && cfg.Store == "" && !strings.Contains(cfg.AllocTable, ".") {
		cfg.Auto, cfg.Tables = false, []Rule{{Table: "*"}} // no tags tell which INSERTs want ids: each is refused that may
	}
	c := &Connector{cfg: cfg, inner: inner, rules: bySpecificity(cfg.Tables), idle: !cfg.Auto && len(cfg.Tables) == 0, learning: semaphore.NewWeighted(1), wrapped: own == nil}
	var err error
	ours := cmp.Or(own, inner)
	if c.store, err = openStore(cfg, ours, key); err != nil {
		return nil, err
	}
	if c.snowflakes, err = openSnowflakes(cfg, c.store); err != nil {
		c.store.Close()
		return nil, err
	}
	if cfg.MySQL != nil {
		c.interpolates, c.foundRows = cfg.MySQL.InterpolateParams, cfg.MySQL.ClientFoundRows
	}
	c.catalog = catalog.New(ownpool.Open(ours, 2))
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.schema.Store(newSchema(nil))
	c.remake = func() (*Connector, error) { return wrap(inner, own, cfg, key) }
	return c, nil
}

// Driver is part of driver.Connector.
func (c *Connector) Driver() driver.Driver { return sqlDriver{c} }

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
		return nil, &ConfigError{"the wrapped driver", fmt.Sprintf("its connection (%T) lacks %s", dc, lackedMethods(dc)), "wrap go-sql-driver's own connector, or one that passes these on"}
	}
	var db string
	if c, err = c.open(); err == nil {
		db, err = c.database(ctx, ic)
	}
	if err == nil {
		err = c.learn(ctx, ic, db)
	}
	if err != nil {
		dc.Close()
		return nil, err
	}
	own := &conn{Session: session.New(ic, db, c.settings), connector: c}
	if !c.wrapped {
		own.SetSeveral(c.cfg.MySQL.MultiStatements)
	}
	return own, nil
}

// learn reads, before the first connection is used, what no statement can do
// without. It runs again until it has worked once. Who comes meanwhile waits as
// long as its own context lets it.
func (c *Connector) learn(ctx context.Context, ic innerConn, database string) error {
	if c.idle || c.ready.Load() {
		return nil
	}
	if err := c.learning.Acquire(ctx, 1); err != nil {
		return err
	}
	defer c.learning.Release(1)
	if c.ready.Load() {
		return nil
	}
	if err := c.learnServer(ctx, ic, database); err != nil {
		return err
	}
	if c.cfg.Auto {
		if err := c.learnTags(ctx); err != nil {
			return err
		}
	}
	c.warnMissing(ctx)
	go c.keepFresh()
	c.ready.Store(true)
	return nil
}

// database is the one in use on a new connection, "" for none.
func (c *Connector) database(ctx context.Context, ic innerConn) (string, error) {
	switch {
	case c.cfg.MySQL != nil:
		return c.cfg.MySQL.DBName, nil
	case c.idle: // nobody needs it
		return "", nil
	}
	return session.Database(ctx, ic)
}

// learnServer reads the server's version and how it compares names.
func (c *Connector) learnServer(ctx context.Context, ic innerConn, database string) error {
	version, err := session.Value(ctx, ic, "VERSION()")
	if err != nil {
		return catalogError("the server's version", err)
	}
	c.settings.MariaDB, c.settings.Version = session.ParseVersion(version)
	folds, err := session.Value(ctx, ic, "@@lower_case_table_names")
	if err != nil {
		return catalogError("lower_case_table_names", err)
	}
	c.foldsCase = folds != "0"
	if c.catalog.FoldsCase = c.foldsCase; c.foldsCase {
		for i := range c.rules {
			r := &c.rules[i]
			if r.Tag == "" && r.Table != "*" && r.Database+database != "" {
				r.Tag = r.Table // as it was written
			}
			r.Database, r.Table = strings.ToLower(r.Database), strings.ToLower(r.Table)
		}
	}
	c.defaultDB = c.fold(database, "").DB
	return nil
}

// learnTags reads which tables leafTables=auto means.
func (c *Connector) learnTags(ctx context.Context) error {
	tags, err := c.readTags(ctx)
	if c.cfg.Create && servererr.Is(err, servererr.NoSuchTable) {
		if err := c.store.Alloc.Create(ctx); err != nil {
			return c.allocError(c.store.Table, "creating it", err)
		}
		tags, err = c.readTags(ctx)
	}
	if err != nil {
		return c.allocError(c.store.Table, "reading its tags", err)
	}
	if len(tags) == 0 && c.cfg.Create {
		c.cfg.logger().Warn("leafsql: leafCreate=true has no table to fill: leafTables=auto means the tables that have a row in leaf_alloc, and there is none",
			"way out", "name the tables: leafTables=orders,items, or leafTables=* for all")
	}
	c.schema.Store(newSchema(tags))
	return nil
}

// warnMissing says once which named rules mean no table: statements for a
// table whose name was mistyped run as they are.
func (c *Connector) warnMissing(ctx context.Context) {
	var names []catalog.Name
	for _, r := range c.rules {
		name := catalog.Name{DB: cmp.Or(r.Database, c.defaultDB), Table: r.Table}
		if !r.Exclude && name.DB != "" && !strings.Contains(name.String(), "*") {
			names = append(names, name)
		}
	}
	found, err := c.catalog.Tables(ctx, names)
	for _, name := range names {
		if err == nil && found[name] == nil {
			c.cfg.logger().Warn("leafsql: a rule of leafTables names a table that is not there (yet): INSERTs into it are filled once it is",
				"table", name.String(), "way out", "check the name and its case")
		}
	}
}

// open is the Connector that makes connections: c, or since Close another.
func (c *Connector) open() (_ *Connector, err error) {
	if !c.closed.Load() {
		return c, nil
	}
	c.nextMu.Lock()
	defer c.nextMu.Unlock()
	if c.next == nil {
		c.next, err = c.remake()
	}
	return c.next, err
}

// current is the Connector that open made, without making one.
func (c *Connector) current() *Connector {
	c.nextMu.Lock()
	defer c.nextMu.Unlock()
	return cmp.Or(c.next, c)
}

// Close ends prefetching and gives the worker's lease back, where no other
// Connector shares them. sql.DB's Close calls it; a second call does nothing.
func (c *Connector) Close() error {
	if c.closed.Swap(true) {
		c.nextMu.Lock()
		next := c.next
		c.next = nil
		c.nextMu.Unlock()
		if next == nil {
			return nil
		}
		return next.Close()
	}
	c.cancel()
	c.catalog.Close()
	var err error
	if c.snowflakes != nil {
		err = c.snowflakes.Close() // first: its leases may be kept beside the store
	}
	return errors.Join(c.store.Close(), err)
}

// once is the logger for what is said once for each key.
func (c *Connector) once(key string) *slog.Logger {
	if _, said := c.said.LoadOrStore(key, struct{}{}); said {
		return slog.New(slog.DiscardHandler)
	}
	return c.cfg.logger()
}

// lackedMethods names the methods of innerConn that a connection lacks.
func lackedMethods(dc driver.Conn) string {
	var names []string
	have := reflect.TypeOf(dc)
	for m := range reflect.TypeFor[innerConn]().Methods() {
		if _, ok := have.MethodByName(m.Name); !ok {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}
