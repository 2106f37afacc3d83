// Package insert plans what a SQL text needs so that every row it writes to a
// configured table gets a key, and renders the text that gives it.
//
//	plan, need, err := insert.Parse(text, mode, lookup)
//	…
//	fills := []insert.Fill{{First: first, N: plan.Inserts[0].Holes}}
//	text = plan.Text(fills)
//
// It is pure: no I/O, no generators, no database/sql. It does not parse SQL;
// it finds the places of the keys among the tokens, and refuses a statement
// that would write a configured table in a form it cannot read.
package insert

import (
	"fmt"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A Mode holds the settings of a session that change what the bytes of a text
// mean.
type Mode struct {
	// SQLModeKnown says that the two fields of sql_mode are true.
	SQLModeKnown       bool
	NoBackslashEscapes bool // \ is an ordinary character in strings
	ANSIQuotes         bool // "x" is a name

	// CharsetKnown says that Charset is true.
	CharsetKnown bool
	Charset      lex.Charset // of character_set_client

	// VersionKnown says that the two fields of the server's version are true.
	VersionKnown bool
	MariaDB      bool
	Version      int // as version comments write it: 101119, 90704
}

// A Need is a set of settings that Parse has to know for a text.
type Need uint8

const (
	NeedSQLMode Need = 1 << iota // SELECT @@sql_mode
	NeedVersion                  // SELECT VERSION()
	NeedCharset                  // SELECT @@character_set_client
)

// A Lookup returns the configured table that a name in a text means, nil where
// that table is not configured. The database is "" for a bare name without a
// USE before it in the same text. Names come unquoted, otherwise as written.
// Its error is returned by Parse untouched.
type Lookup func(db, name string) (*Table, error)

// A Table is what a plan has to know of a configured table.
type Table struct {
	DB, Name string
	Key      string   // the key column, as the catalog spells it
	Columns  []string // visible columns in ordinal order, for INSERTs without a column list

	IntegerKey bool // a key of another type gets no upsert mark
	KeepZero   bool // 0 in the key column is a value, not "please generate"
	Mark       bool // the statement carries LAST_INSERT_ID(first)
	UpsertMark bool // ON DUPLICATE KEY UPDATE may write the key column

	Ref any // the caller's own
}

// A Plan says what one text needs. It is immutable and safe for concurrent use.
type Plan struct {
	// Inserts are the statements that write a configured table and may have to
	// be changed for it, in text order. Where there are none the text runs as
	// it is.
	Inserts []Insert

	// Results is the number of statements in the text, each of which answers
	// once. CALL, EXECUTE and MariaDB's compound statements may answer more
	// often; an Insert after one of those has Statement -1, and one before it
	// FromEnd 0.
	Results int

	// NumInput is the number of placeholders in the text.
	NumInput int

	// Use is the database in use after the text ran, "" where the text leaves
	// it as it was.
	Use string

	// UseUnknown says that the text may change the database in use in a way
	// that cannot be read from it (EXECUTE). Ask SELECT DATABASE() before the
	// next text with bare names.
	UseUnknown bool

	text   string
	edits  []edit
	texts  []string // what the edits insert
	shapes shapes
}

// An Insert is one INSERT, REPLACE or LOAD DATA statement that writes a
// configured table.
type Insert struct {
	Table     *Table
	Statement int // index of its answer, as in AllLastInsertIds; -1: not known
	FromEnd   int // the same from the end, where 1 is the last answer; 0: not known
	Rows      int // rows of VALUES, 1 for SET; 0 for a Select and LOAD DATA
	Holes     int // rows that lack a key whatever the arguments are

	// ArgKeys are the rows whose key is a placeholder: the argument decides
	// whether they have one.
	ArgKeys []ArgKey

	Replace   bool // REPLACE
	Ignore    bool // INSERT IGNORE
	Upsert    bool // has ON DUPLICATE KEY UPDATE
	Returning bool // has RETURNING, or otherwise answers with rows

	// Mark says that the text, where it fills this statement, carries
	// LAST_INSERT_ID(first): in the last filled row, plus its distance from the
	// first; in the first filled row where Upsert is set, so that an answer
	// other than first tells that a later row was a duplicate. Table.Mark asks
	// for it; a call of LAST_INSERT_ID() that would read it forbids it.
	Mark bool

	// UpsertMark says that the text, where it fills this statement, makes
	// LAST_INSERT_ID() the key of a row that was updated.
	UpsertMark bool

	// UserMark says that the statement itself calls LAST_INSERT_ID with an
	// argument: the server's answer is what the user asked for.
	UserMark bool

	// Wraps says that the text differs from the user's even where nothing is
	// filled: a key is an expression, which is guarded, or the statement lists
	// no columns, so that they are written out.
	Wraps bool

	// Select is set for INSERT … SELECT and INSERT … TABLE, whose rows are
	// known to the server only.
	Select *Select

	edits span // its edits in Plan.edits
}

// An ArgKey is a row whose key is a placeholder.
type ArgKey struct {
	Row int // 0-based among the statement's rows
	Arg int // 0-based among the text's placeholders
}

// A Fill is what one execution gives one Insert. A text takes one for each of
// Plan.Inserts, in that order.
type Fill struct {
	First int64 // the first id of the block
	N     int   // ids in the block: rows to fill; 0 leaves the statement unfilled

	// Explicit has an entry for each of Insert.ArgKeys, true where the argument
	// is a key already; nil: none is. It is empty for statements without.
	Explicit []bool
}

// A Refusal is the error for a statement that would write a configured table
// and cannot be filled.
type Refusal struct {
	DB, Table string // the table as the configuration knows it
	Reason    string // what in the statement cannot be filled
	Way       string // what to write instead
}

func (r *Refusal) Error() string {
	name := r.Table
	if r.DB != "" {
		name = r.DB + "." + r.Table
	}
	return fmt.Sprintf("leafsql: no key for the rows of %s: %s; %s", name, r.Reason, r.Way)
}
