// Package inspect gives the command leafsql and package statuspage access to functions of package driver that report
// how a configuration applies to a server, and what pools share. A Connector uses the same results. The functions execute
// no statement of the application, and take no ids or worker ids.
//
//	shard, err := inspect.Server(ctx, dsn, tags)
//	for _, t := range shard.Tables { … }
//
// It has no logic: the program must import package driver, which sets its functions.
package inspect

import (
	"context"
	"database/sql"
	"database/sql/driver"

	"github.com/leafsql/leafsql/internal/control"
)

// Server reports how the leaf parameters of a DSN apply to its server. Under
// leafTables=auto, tags are the biz_tags of leaf_alloc. Package driver sets it.
var Server func(ctx context.Context, dsn string, tags []string) (*Inspection, error)

// Tags queries all rows of leaf_alloc, ordered by tag, through a *driver.Connector without a Config.SegmentStore. Errors
// are the server's. Package driver sets it.
var Tags func(ctx context.Context, connector driver.Connector) ([]control.Row, error)

// Tag is like Tags for one row. It returns a *segment.UnknownTagError if the tag has no row. Names are compared with
// the table's collation, so the name in the row may differ in letter case. Package driver sets it.
var Tag func(ctx context.Context, connector driver.Connector, tag string) (control.Row, error)

// Pool returns the *driver.Connector of a pool. If another package wraps the driver, Pool takes a connection from the
// pool, and waits at most 5 s for it. Package driver sets it.
var Pool func(db *sql.DB) (driver.Connector, error)

// Store returns an identity of the *driver.Connector's leaf_alloc. Connectors that share segments have equal
// identities. Package driver sets it.
var Store func(connector driver.Connector) any

// An Inspection describes how a configuration applies to its server.
type Inspection struct {
	MariaDB bool
	Version int      // as in version comments: 101119, 90704
	Tables  []Table  // configured tables, sorted by name
	Missing []string // rules that name a table which this user cannot see, and under auto also tags without a table
	Reader
}

// A Kind is a kind of generator, as leafTables names it.
type Kind string

// A Table describes how a configuration fills one table.
type Table struct {
	Database, Table string
	Kind            Kind   // driver.Segment, Sequence, Snowflake or UUID7
	Tag             string // biz_tag, for Segment; else ""

	Columns []string // all columns in the table's order, each with its type: "id bigint(20)"

	// Err is not nil if INSERTs into the table are refused; it is usually a *driver.RefusedError. The
	// following fields are then unset.
	Err error

	Column           string // the key
	Type             string // the column's, such as "bigint(20) unsigned"
	Integer          bool   // it is an integer type
	Highest          int64  // the highest id that it can hold
	CounterLimit     int64  // the counter's next id has to be above all keys below CounterLimit; under leafExplicit=keep there may be higher keys
	AutoIncrement    bool   // the column still has AUTO_INCREMENT
	Indexed          bool   // an index begins with the column, so the highest key is found without reading the table
	Unique           bool   // no two rows can have the same key
	UniqueWithOthers bool   // no two rows can have the same key and the same values in some other columns

	// RefusesLoad is true if LOAD DATA is refused because of the server's bug MDEV-36026. INSERT … SELECT is then also refused, unless
	// the column has AUTO_INCREMENT. TriggersHidden is true if the statements are refused only because this user cannot see the
	// table's triggers.
	RefusesLoad, TriggersHidden bool
}

// A Program is the body of a trigger, a routine or an event, or the SELECT of a view.
type Program struct {
	Database string // the database of unqualified names
	Body     string
	SQLMode  string // the sql_mode when it was created
}

// A Reader finds the tables that stored programs use.
type Reader interface {
	// Writes returns the configured tables (db.table) into which a stored program inserts rows by INSERT, REPLACE or
	// LOAD. leafsql cannot add keys to these rows. Writes does not find statements that the program builds as strings.
	Writes(Program) []string

	// Reads returns the configured tables that a view's SELECT names.
	Reads(Program) []string

	// Excludes reports whether a rule excludes a table.
	Excludes(database, table string) bool

	// Assigns reports whether a trigger sets a column of the new row.
	Assigns(p Program, column string) bool
}
