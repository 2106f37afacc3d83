// Package inspect is how the command leafsql asks package driver what a configuration means
// on its server: the same judgement that Connectors come to, without a statement, an id or a
// worker id.
//
//	shard, err := inspect.Server(ctx, dsn, tags)
//	for _, t := range shard.Tables { … }
//
// It judges nothing itself: package driver answers, and has to be imported.
package inspect

import "context"

// Server asks the server of a DSN what its leaf parameters mean there. Under
// leafTables=auto, tags are the biz_tags of leaf_alloc. Package driver sets it.
var Server func(ctx context.Context, dsn string, tags []string) (*Inspection, error)

// An Inspection is what a configuration means on its server.
type Inspection struct {
	MariaDB bool
	Version int      // as version comments write it: 101119, 90704
	Tables  []Table  // that the configuration means, by name
	Missing []string // rules that name a table which this user does not see, and under auto tags that mean none
	Reader
}

// A Table is how a configuration fills one table.
type Table struct {
	Database, Table string
	Kind            string // driver.Segment, Sequence, Snowflake or UUID7
	Tag             string // biz_tag, for Segment; else ""

	Columns []string // all in their order, each with its type: "id bigint(20)"

	// Err is why INSERTs into the table are refused, mostly a *driver.RefusedError. What
	// follows is not known then.
	Err error

	Column        string // the key
	Type          string // the column's, such as "bigint(20) unsigned"
	Integer       bool   // it is an integer type
	Highest       int64  // the highest id that it can hold
	Near          int64  // the counter has to be above all keys below it; under leafExplicit=keep there may be others above it
	AutoIncrement bool   // it still is AUTO_INCREMENT
	Indexed       bool   // an index begins with it, so that the highest key is found without reading the table
	Unique        bool   // no two rows can have the same key
	UniqueWith    bool   // no two rows can have the same key and the same values in some other columns

	// RefusesLoad says that LOAD DATA is refused for the bug MDEV-36026 of its server, as is INSERT … SELECT without AUTO_INCREMENT,
	// and TriggersHidden that it is because this user may not see its triggers.
	RefusesLoad, TriggersHidden bool
}

// A Program is the body of a trigger, a routine or an event, or the select of a view.
type Program struct {
	Database string // what bare names in it mean
	Body     string
	SQLMode  string // as of when it was made
}

// A Reader reads stored programs.
type Reader interface {
	// Writes lists the tables that the configuration means and that INSERT, REPLACE or
	// LOAD write in a stored program, db.table, without their keys being filled. A
	// statement that the program puts together from pieces is not found.
	Writes(Program) []string

	// Reads lists the tables that the configuration means and that a view's select names.
	Reads(Program) []string

	// Excludes reports whether a rule takes a table out.
	Excludes(database, table string) bool

	// Assigns reports whether a trigger sets a column of the row that is written.
	Assigns(p Program, column string) bool
}
