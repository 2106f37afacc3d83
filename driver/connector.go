package driver

import (
	"cmp"
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/internal/inspect"
)

// Name is the name of the registered driver. It begins with "mysql" because
// libraries choose their dialect by that prefix.
const Name = "mysql-leaf"

func init() {
	sql.Register(Name, sqlDriver{})
	inspect.Server, inspect.Tags, inspect.Tag = inspectServer, queryTags, queryTag
	inspect.Pool, inspect.Store = inspectPool, storeOf
}

var _ driver.DriverContext = sqlDriver{}

// sqlDriver is the database/sql driver. Applications refer to it by Name.
type sqlDriver struct {
	connector *Connector // the pool's connector; nil for the registered driver
}

// Open opens one connection, with its own connector that is closed with the
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

// OpenConnector returns a Connector for the DSN. It does not connect.
func (sqlDriver) OpenConnector(dsn string) (driver.Connector, error) {
	cfg, err := ParseDSN(dsn)
	if err != nil {
		return nil, err
	}
	return NewConnector(cfg)
}

// A Connector makes connections that share tables, plans and generators. Pass it
// to sql.OpenDB: closing the DB closes the Connector, too. After Close, the next
// connection starts with new tables and generators. A Connector is safe for
// concurrent use.
type Connector struct {
	cfg    *Config
	inner  driver.Connector
	tables *tables.Set
	plans  planner.Plans

	store      *ids.Store
	snowflakes *ids.Snowflakes // nil if no snowflakes are configured

	closed atomic.Bool
	remake func() (*Connector, error) // builds the replacement used after Close
	nextMu sync.Mutex
	next   *Connector // replacement used after Close

	wrapped      bool // inner was passed to Wrap
	interpolates bool // the inner driver interpolates arguments into queries
	foundRows    bool // affected counts of Connect's connections include rows that were found but not changed
}

// NewConnector returns a Connector that uses go-sql-driver with cfg.MySQL. It does not
// connect. The error is a *ConfigError, or go-sql-driver's for cfg.MySQL. The caller
// has to close the Connector, or the sql.DB that uses it.
func NewConnector(cfg *Config) (*Connector, error) {
	if cfg.MySQL == nil {
		return nil, configError("Config.MySQL", "not set", "start from driver.NewConfig or driver.ParseDSN")
	}
	inner, err := mysql.NewConnector(cfg.MySQL)
	if err != nil {
		return nil, err
	}
	own, err := mysql.NewConnector(pool.AdaptConfig(cfg.MySQL))
	if err != nil {
		return nil, err
	}
	return wrap(inner, own, cfg, storeKey(cfg.MySQL))
}

// Wrap returns a Connector that fills statements on the connections of inner. An example
// of inner is a go-sql-driver connector with a custom dial function, or a connector of a
// tracing package. The connections of inner have to implement all interfaces of
// go-sql-driver's connections; otherwise Connect returns a *ConfigError with the missing
// methods. The database of inner is unknown: unless cfg.Store names a database, the Connector
// does not share its segments, or a worker id from mysql(), with other Connectors. Errors and
// closing are as for [NewConnector].
func Wrap(inner driver.Connector, cfg *Config) (*Connector, error) {
	return wrap(inner, nil, cfg, "")
}

// wrap implements Wrap. If own is not nil, it opens leafsql's internal connections. key
// identifies the database, and is empty if the database is unknown.
func wrap(inner, own driver.Connector, cfg *Config, key string) (*Connector, error) {
	cfg = cfg.Clone()
	cfg.AllocTable = cmp.Or(cfg.AllocTable, "leaf_alloc")
	cfg.Lease = cmp.Or(cfg.Lease, defaultLease)
	if err := checkConfig(cfg); err != nil {
		return nil, err
	}
	if cfg.Auto() && cfg.MySQL != nil && cfg.MySQL.DBName == "" && cfg.Store == "" && !strings.Contains(cfg.AllocTable, ".") {
		cfg.Tables = []Rule{{Table: "*"}} // there is no database with the tags, so every INSERT that might need ids is refused
	}
	ours := cmp.Or(own, inner)
	store, err := openStore(cfg, ours, key)
	if err != nil {
		return nil, err
	}
	snowflakes, err := openSnowflakes(cfg, store)
	if err != nil {
		store.Close()
		return nil, err
	}
	c := &Connector{cfg: cfg, inner: inner, store: store, snowflakes: snowflakes, tables: newTables(cfg, ours, store, snowflakes), wrapped: own == nil}
	if cfg.MySQL != nil {
		c.interpolates, c.foundRows = cfg.MySQL.InterpolateParams, cfg.MySQL.ClientFoundRows
	}
	c.remake = func() (*Connector, error) { return wrap(inner, own, cfg, key) }
	return c, nil
}

// Driver implements driver.Connector.
func (c *Connector) Driver() driver.Driver { return sqlDriver{c} }

// Connect opens a connection. The first call also loads the shared state, such as the
// tags of leaf_alloc under leafTables=auto, and returns a *ConfigError if the table or a
// right is missing. Other errors are the inner driver's, an error of reading the shared state,
// or a *ConfigError for a connection that lacks methods.
func (c *Connector) Connect(ctx context.Context) (driver.Conn, error) {
	dc, err := c.inner.Connect(ctx)
	if err != nil {
		return nil, err
	}
	ic, ok := dc.(innerConn)
	if !ok {
		dc.Close()
		return nil, configError("the wrapped driver", fmt.Sprintf("its connection (%T) lacks %s", dc, missingMethods(dc)), "wrap go-sql-driver's connector, or one whose connections have these methods")
	}
	var db string // database in use, or empty
	switch c, err = c.reopen(); {
	case err != nil:
	case c.cfg.MySQL != nil:
		db = c.cfg.MySQL.DBName
	case !c.tables.IsEmpty(): // otherwise the database is not needed
		db, err = session.QueryValue(ctx, ic, "DATABASE()")
	}
	if err == nil {
		err = publicError(c.tables.Learn(ctx, ic, db))
	}
	if err != nil {
		dc.Close()
		return nil, err
	}
	own := c.newConn(ic, db, c.foundRows)
	if !c.wrapped {
		own.SetMultiStatements(c.cfg.MySQL.MultiStatements)
	}
	return own, nil
}

// newConn returns a connection that fills statements and sends them to inner. The tables'
// Learn must have run before. db is the database in use.
func (c *Connector) newConn(inner innerConn, db string, foundRows bool) *conn {
	return &conn{Planner: planner.New(session.New(inner, db, c.tables.Server.Settings), c.tables, &c.plans),
		connector: c, foundRows: foundRows, stageState: staged.ConnState{Server: &c.tables.Server}}
}

// reopen returns the Connector that makes connections: c, or its replacement after Close.
func (c *Connector) reopen() (_ *Connector, err error) {
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

// current returns the replacement that reopen made, or c.
func (c *Connector) current() *Connector {
	c.nextMu.Lock()
	defer c.nextMu.Unlock()
	return cmp.Or(c.next, c)
}

// Close stops prefetching and releases the lease of the worker id, unless another
// Connector shares them. sql.DB.Close calls it. A second call does nothing. The error
// comes from closing connections or the worker source, and is useful only in logs.
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
	c.tables.Close()
	var err error
	if c.snowflakes != nil {
		err = c.snowflakes.Close() // before the store, which may contain its leases
	}
	return errors.Join(c.store.Close(), err)
}

// inspectServer implements inspect.Server.
func inspectServer(ctx context.Context, dsn string, tags []string) (*inspect.Inspection, error) {
	cfg, err := ParseDSN(dsn)
	if err == nil {
		err = checkConfig(cfg)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range cfg.Tables {
		if r.Database == "" && cfg.MySQL.DBName == "" {
			return nil, ruleError(r.String(), "the DSN has no database, and the rule has a table name without one", "write db."+r.Table)
		}
	}
	own, err := mysql.NewConnector(pool.AdaptConfig(cfg.MySQL))
	if err != nil {
		return nil, err
	}
	dc, err := own.Connect(ctx)
	if err != nil {
		return nil, err
	}
	defer dc.Close()
	set := newTables(cfg, own, nil, nil)
	defer set.Close()
	i, err := set.Inspect(ctx, dc.(innerConn), cfg.MySQL.DBName, tags)
	if err != nil {
		return nil, publicError(err)
	}
	for k := range i.Tables {
		i.Tables[k].Err = publicError(i.Tables[k].Err)
	}
	return i, nil
}

// missingMethods returns the names of innerConn's methods that dc lacks.
func missingMethods(dc driver.Conn) string {
	var names []string
	have := reflect.TypeOf(dc)
	for m := range reflect.TypeFor[innerConn]().Methods() {
		if _, ok := have.MethodByName(m.Name); !ok {
			names = append(names, m.Name)
		}
	}
	return strings.Join(names, ", ")
}
