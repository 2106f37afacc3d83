package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/go-sql-driver/mysql"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/plancache"
)

const (
	maxAge = 60 * time.Second // how old a view may get

	planEntries = 4096    // texts in one plan cache
	planBytes   = 8 << 20 // their bytes
)

// A view is what the connector believes about the database: which tables are
// configured, what they look like, and the plans made from that. It is never
// corrected, only replaced as a whole: when it is a minute old, after an error
// that says a table has changed, after DDL of our own.
type view struct {
	mu     sync.Mutex
	tables map[tableName]*insert.Table // nil: not configured
	tags   map[string]string           // under leafTables=auto: table or db.table -> tag
	plans  map[planKey]*plancache.Cache[*entry]
}

type tableName struct{ db, name string }

// planKey is what the reading of a text depends on besides the view.
type planKey struct {
	db   string
	mode insert.Mode
}

func newView() *view {
	return &view{
		tables: make(map[tableName]*insert.Table),
		plans:  make(map[planKey]*plancache.Cache[*entry]),
	}
}

// cache returns the plans of sessions with the same database and settings.
func (v *view) cache(key planKey) *plancache.Cache[*entry] {
	v.mu.Lock()
	defer v.mu.Unlock()
	p, ok := v.plans[key]
	if !ok {
		p = plancache.New[*entry](planEntries, planBytes)
		v.plans[key] = p
	}
	return p
}

// lookup says which configured table a name means, nil for none. conn is
// asked about tables that only it can see.
func (c *Connector) lookup(ctx context.Context, v *view, conn innerConn, db, name string) (*insert.Table, error) {
	if c.setup.foldsCase {
		db, name = strings.ToLower(db), strings.ToLower(name)
	}
	key := tableName{db, name}
	v.mu.Lock()
	t, ok := v.tables[key]
	v.mu.Unlock()
	if ok {
		return t, nil
	}
	rule, ok, err := c.rule(ctx, v, db, name)
	if err != nil {
		return nil, err
	}
	if ok {
		if t, err = c.open(ctx, conn, rule, key); err != nil {
			return nil, err
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tables[key] = t
	return t, nil
}

// rule finds the rule that counts for a table.
func (c *Connector) rule(ctx context.Context, v *view, db, name string) (Rule, bool, error) {
	if c.cfg.Auto {
		tags, err := c.tags(ctx, v)
		if err != nil {
			return Rule{}, false, err
		}
		tag, ok := tags[db+"."+name]
		if !ok && db == c.defaultDatabase() {
			tag, ok = tags[name]
		}
		return Rule{Table: name, Kind: Segment, Tag: tag}, ok, nil
	}
	for _, r := range c.rules {
		inDB := db == c.defaultDatabase()
		if r.Database != "" {
			inDB = wildcard(r.Database, db)
		}
		if inDB && wildcard(r.Table, name) {
			return r, true, nil
		}
	}
	return Rule{}, false, nil
}

// defaultDatabase is the DSN's, as table names compare.
func (c *Connector) defaultDatabase() string {
	if c.setup.foldsCase {
		return strings.ToLower(c.setup.database)
	}
	return c.setup.database
}

// tags reads leaf_alloc's tags once for each view.
func (c *Connector) tags(ctx context.Context, v *view) (map[string]string, error) {
	v.mu.Lock()
	tags := v.tags
	v.mu.Unlock()
	if tags != nil {
		return tags, nil
	}
	rows, err := c.ids.alloc().Tags(ctx)
	if isServerError(err, errNoSuchTable) {
		return nil, &ConfigError{
			Param:  "leafTables=auto",
			Reason: fmt.Sprintf("there is no table %s to read tags from (%s)", c.cfg.AllocTable, serverMessage(err)),
			Way:    "add leafCreate=true to have it created, name it with leafAllocTable=[db.]table, or fill nothing with leafTables=none",
		}
	}
	if err != nil {
		return nil, err
	}
	tags = make(map[string]string, len(rows))
	for _, r := range rows {
		name := r.Tag
		if c.setup.foldsCase {
			name = strings.ToLower(name)
		}
		tags[name] = r.Tag
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.tags = tags
	return tags, nil
}

// Numbers of the server's errors that mean something here.
const (
	errParse         = 1064
	errUnknownColumn = 1054
	errColumnCount   = 1136
	errTableDenied   = 1142
	errColumnDenied  = 1143
	errNoSuchTable   = 1146
	errLockWait      = 1205
	errOutOfRange    = 1690
)

func isServerError(err error, numbers ...uint16) bool {
	var e *mysql.MySQLError
	if !errors.As(err, &e) {
		return false
	}
	for _, n := range numbers {
		if e.Number == n {
			return true
		}
	}
	return false
}

func serverMessage(err error) string {
	var e *mysql.MySQLError
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}
