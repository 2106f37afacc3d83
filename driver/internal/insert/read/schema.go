package read

import "github.com/leafsql/leafsql/driver/internal/insert"

// A Schema says what names in a text mean. Names come unquoted, otherwise as written,
// and the database of a bare one without a USE before it in the same text is "".
// Errors are returned by Parse untouched.
type Schema struct {
	// Table returns the configured table that a name means, nil where that table is
	// not configured.
	Table func(db, name string) (*insert.Table, error)

	// Temporary, unless nil, says that the session has temporary tables, and whether a
	// name means one: Plan.Runs is wanted.
	Temporary func(insert.TableName) bool

	// Stager stages statements whose rows only the server knows.
	Stager Stager
}

// A Stager decides what stored programs and several steps do to a statement; package staged has one. An empty db is
// the database in use.
type Stager interface {
	// Stage completes the staging of a statement, or refuses it. source is the text of its source, in which bare names
	// are of db.
	Stage(in *insert.Insert, db, source string) error

	// ReadsID reports whether a stored function or a view that a text may name reads the session's id.
	ReadsID(db, text string) (bool, error)
}
