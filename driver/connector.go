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
	"github.com/leafsql/leafsql/driver/internal/ownpool"
	"github.com/leafsql/leafsql/driver/internal/planner"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/driver/internal/staged"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/internal/inspect"
)

// Name is what the driver is registered as. It begins with "mysql" because
// libraries pick their dialect by that prefix.
const Name = "mysql-leaf"

func init() {
	sql.Register(Name, sqlDriver{})
	inspect.Server = inspectServer
}

var _ driver.DriverContext = sqlDriver{}

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
	cfg    *Config
	inner  driver.Connector
	tables *tables.Set
	plans  planner.Plans
	stages staged.Server

	store      *ids.Store
	snowflakes *ids.Snowflakes // nil: nothing takes them

	closed atomic.Bool
	remake func() (*Connector, error) // makes another
	nextMu sync.Mutex
	next   *Connector // that connections are made by since Close

	wrapped      bool // inner was given to Wrap
	interpolates bool // the inner driver puts arguments into texts
	foundRows    bool // affected counts are of rows found, on the connections that Connect makes
}

// NewConnector returns a connector for go-sql-driver as cfg.MySQL configures it.
func NewConnector(cfg *Config) (*Connector, error) {
	if cfg.MySQL == nil {
		return nil, configError("Config.MySQL", "not set", "start from driver.NewConfig or driver.ParseDSN")
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
	if cfg.Auto() && cfg.MySQL != nil && cfg.MySQL.DBName == "" && cfg.Store == "" && !strings.Contains(cfg.AllocTable, ".") {
		cfg.Tables = []Rule{{Table: "*"}} // no tags tell which INSERTs want ids: each is refused that may
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
	c.stages.Catalog = c.tables.Catalog
	if cfg.MySQL != nil {
		c.interpolates, c.foundRows = cfg.MySQL.InterpolateParams, cfg.MySQL.ClientFoundRows
	}
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
		return nil, configError("the wrapped driver", fmt.Sprintf("its connection (%T) lacks %s", dc, lackedMethods(dc)), "wrap go-sql-driver's own connector, or one that passes these on")
	}
	var db string // in use, "" for none
	switch c, err = c.open(); {
	case err != nil:
	case c.cfg.MySQL != nil:
		db = c.cfg.MySQL.DBName
	case !c.tables.Idle(): // else nothing needs it
		db, err = session.Value(ctx, ic, "DATABASE()")
	}
	if err == nil {
		err = public(c.tables.Learn(ctx, ic, db))
	}
	if err != nil {
		dc.Close()
		return nil, err
	}
	own := c.newConn(ic, db, c.foundRows)
	if !c.wrapped {
		own.SetSeveral(c.cfg.MySQL.MultiStatements)
	}
	return own, nil
}

// newConn returns the connection that fills what is sent to another, once Learn has run. db
// is the database in use.
func (c *Connector) newConn(inner innerConn, db string, foundRows bool) *conn {
	return &conn{Planner: planner.New(session.New(inner, db, c.tables.Settings), c.tables, &c.plans),
		connector: c, foundRows: foundRows, stage: staged.Stage{Server: &c.stages}}
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
	c.tables.Close()
	var err error
	if c.snowflakes != nil {
		err = c.snowflakes.Close() // first: its leases may be kept beside the store
	}
	return errors.Join(c.store.Close(), err)
}

// inspectServer is inspect.Server.
func inspectServer(ctx context.Context, dsn string, tags []string) (*inspect.Inspection, error) {
	cfg, err := ParseDSN(dsn)
	if err == nil {
		err = check(cfg)
	}
	if err != nil {
		return nil, err
	}
	for _, r := range cfg.Tables {
		if r.Database == "" && cfg.MySQL.DBName == "" {
			return nil, ruleError(r.String(), "the DSN has no database that a bare table name could mean", "write db."+r.Table)
		}
	}
	own, err := mysql.NewConnector(ownpool.Config(cfg.MySQL))
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
		return nil, public(err)
	}
	for k := range i.Tables {
		i.Tables[k].Err = public(i.Tables[k].Err)
	}
	return i, nil
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
