package read

import "github.com/leafsql/leafsql/driver/internal/insert"

// A Schema has functions that resolve the names in a query. Names are passed without quotes, but otherwise
// as written. The database of an unqualified name is "" unless a USE precedes it in the same query.
// Parse returns the errors of the functions unchanged.
type Schema struct {
	// Table returns the configured table that a name refers to, or nil if that table is not configured.
	Table func(db, name string) (*insert.Table, error)

	// Temporary reports whether a name refers to a temporary table. It is nil if the session has no
	// temporary tables; then Plan.RunsPrograms is not set.
	Temporary func(insert.TableName) bool

	// Stager stages statements with rows that only the server has.
	Stager Stager
}

// A Stager completes the staging of statements, and finds out whether stored programs read the session's id. To stage a
// statement is to write its rows to a temporary table first, where they get keys. Package staged implements Stager. An
// empty db is the database in use.
type Stager interface {
	// Stage completes the staging of a statement, or refuses the statement. source is the text of its
	// source, in which unqualified names are in db.
	Stage(in *insert.Insert, db, source string) error

	// ReadsID reports whether a stored function or a view that text may name reads the session's id.
	ReadsID(db, text string) (bool, error)
}
