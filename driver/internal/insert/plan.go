// Package insert plans what a SQL text needs so that every row it writes to a
// configured table gets a key, and renders the text that gives it.
//
//	plan, missing, err := insert.Parse(text, settings, lookup)
//	…
//	blocks := []insert.Block{{First: first, N: plan.Inserts[0].Lacking}}
//	text = plan.Text(blocks)
//
// It is pure: no I/O, no generators, no database/sql. It does not parse SQL:
// it finds the places of the keys among the tokens, and refuses a statement
// that would write a configured table in a form it cannot read. A statement
// whose rows only the server knows (INSERT … SELECT, LOAD DATA) gets a [Staging],
// one of which it knows the keys alone (expressions) an [Evaluation]: texts that
// put the rows, or the keys, into a temporary table first.
//
// The files, in the order in which a text goes through them:
//
//	plan.go                    what Parse takes and gives: Settings, Table, Plan, Insert, Block
//	parse.go                   Parse: a text is read in each way that its session may read it
//	reader.go                  the tokens of one such reading, names and expressions
//	statement.go, ddl.go       which statement begins; those that are not INSERTs
//	insert.go                  one INSERT, REPLACE or LOAD DATA from its target to its end
//	values.go, source.go       its rows: in the text, or from a query or a file
//	key.go                     what a value in the key column means
//	touches.go                 what an expression reads and changes beside its row
//	staging.go, evaluation.go  the statements that run instead, where the server has to be asked
//	render.go, template.go     a plan and ids as a text, and as a text with arguments
//	program.go                 what the stored programs of a server write, for those who look at one
package insert

import (
	"fmt"
	"strings"
)

// Settings are what of a session and its server decides the meaning of a text.
type Settings struct {
	// SQLModeKnown says that the two fields of sql_mode are true.
	SQLModeKnown       bool
	NoBackslashEscapes bool // \ is an ordinary character in strings
	ANSIQuotes         bool // "x" is a name

	// CharsetKnown says that Charset is true.
	CharsetKnown bool
	Charset      string // character_set_client

	// VersionKnown says that the two fields of the server's version are true.
	VersionKnown bool
	MariaDB      bool
	Version      int // as version comments write it: 101119, 90704

	// ViewsKnown says that ViewsReadID is true: some view on the server may read
	// LAST_INSERT_ID().
	ViewsKnown  bool
	ViewsReadID bool
}

// SetSQLMode takes the two modes that matter from the value of sql_mode.
func (s *Settings) SetSQLMode(mode string) {
	for name := range strings.SplitSeq(mode, ",") {
		switch name {
		case "NO_BACKSLASH_ESCAPES":
			s.NoBackslashEscapes = true
		case "ANSI_QUOTES":
			s.ANSIQuotes = true
		}
	}
	s.SQLModeKnown = true
}

// Missing is a set of settings that Parse has to know for a text.
type Missing uint8

const (
	MissingSQLMode Missing = 1 << iota // SELECT @@sql_mode
	MissingVersion                     // SELECT VERSION()
	MissingCharset                     // SELECT @@character_set_client
	MissingViews                       // whether some view may read LAST_INSERT_ID()
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

	// NowColumns are the columns that are the statement's time by default.
	NowColumns []string

	IntegerKey bool // a key of another type gets no upsert marker
	UUID       UUIDForm
	Unsigned   bool // the key's type has no negative values
	KeepZero   bool // 0 in the key column is a value, not "please generate"
	Floors     bool // explicit keys move the counter
	Marker     bool // the statement carries LAST_INSERT_ID(first)
	// UpsertMarker says that ON DUPLICATE KEY UPDATE may write the key column.
	UpsertMarker bool
	ReadsID      bool // a trigger reads LAST_INSERT_ID(): no marker may stand before it

	// UpdatesReadID says that a trigger of updates does: an update list may not
	// set the marker.
	UpdatesReadID bool

	// FunctionsReadID says that a stored function may read LAST_INSERT_ID(): no
	// marker may stand before its call.
	FunctionsReadID bool

	Ref any // the caller's own
}

// A UUIDForm is how a column holds UUIDs.
type UUIDForm uint8

const (
	NoUUID    UUIDForm = iota // keys are numbers
	UUIDText                  // as 36 characters
	UUIDBytes                 // as 16 bytes
)

// A TableName is a table as a text names it, without quotes; DB is "" where
// the text names none.
type TableName struct{ DB, Table string }

// A Plan says what one text needs. It is immutable and safe for concurrent use.
type Plan struct {
	// Inserts are the statements that write a configured table and may have to
	// be changed for it, in text order. Where there are none the text runs as
	// it is.
	Inserts []Insert

	// Cut, unless 0, is where the text has to be cut: run what is before it
	// and then plan what is behind it as a text of its own, which has all
	// placeholders but the first CutInput. The other fields, but NumInput, say
	// nothing then.
	Cut, CutInput int

	// Results is the number of statements in the text, each of which answers
	// once, but for CALL, EXECUTE and MariaDB's compound statements.
	Results int

	// NumInput is the number of placeholders in the text.
	NumInput int

	// Use is the database in use after the text ran, "" where the text leaves
	// it as it was.
	Use string

	// Charset says that the text may change character_set_client.
	Charset bool

	// Changes are what the text does to tables, views and stored programs.
	Changes []Change

	// Unseen says that the text runs statements that are not written in it
	// (CALL, EXECUTE): they may change tables and the database in use.
	Unseen bool

	text      string
	edits     []edit
	texts     []string // what the edits insert
	templates templates
}

// A Change is a table or view that a text creates, alters, renames or drops, or a
// stored program that it defines.
type Change struct {
	TableName
	Temporary bool // it creates a temporary table
	Drop      bool // it drops the table, perhaps a temporary one
	Database  bool // it drops the whole database TableName.DB
	Program   bool // it names no table: it defines a routine, a trigger or a view, which any statement may run
}

// An Insert is one INSERT, REPLACE or LOAD DATA statement that writes a
// configured table.
type Insert struct {
	Table     *Table
	Statement int // index of its answer, as in AllLastInsertIds
	Rows      int // rows of VALUES, 1 for SET and for a select without a table; 0: not known
	Lacking   int // rows that lack a key whatever the arguments are

	// ArgKeys are the rows whose key is a placeholder: the argument decides
	// whether they have one.
	ArgKeys []ArgKey

	// Floor is the highest key that the text itself gives, rounded up; 0: none
	// that the counter has to pass.
	Floor int64

	// OwnKey is the key that the text itself gives the only row, where it is
	// written as a whole number above 0; else 0.
	OwnKey int64

	Replace   bool // REPLACE
	Ignore    bool // INSERT IGNORE
	Upsert    bool // has ON DUPLICATE KEY UPDATE
	Returning bool // has RETURNING, or otherwise answers with rows

	// Conditional says that the row comes from a select without a table, whose
	// WHERE decides whether there is one.
	Conditional bool

	// Marker says that the text, where it fills this statement, carries
	// LAST_INSERT_ID(first): in the last filled row, plus its distance from the
	// first; in the first filled row where Upsert is set, so that an answer
	// other than first tells that a later row was a duplicate.
	Marker bool

	// UpsertMarker says that the text, where it fills this statement, makes
	// LAST_INSERT_ID() the key of a row that was updated.
	UpsertMarker bool

	// UserMarker says that the statement itself calls LAST_INSERT_ID with an
	// argument: the server's answer is what the user asked for.
	UserMarker bool

	// Positional says that the user's text lists no columns. They are written
	// out always, so that values stay with the columns they were planned for.
	Positional bool

	// Late says that no place in the text will do for the marker: a call of
	// LAST_INSERT_ID(), in the text or in a trigger, would read it too early, or
	// a row sets what that says. The session has to be told the id once the
	// statement has run. The text is this one statement.
	Late bool

	// Staging is set where only the server knows the rows, Evaluation where it
	// knows the rows' keys. The text then is this one statement, and the texts
	// to run are the Staging's or the Evaluation's; nothing is said of rows.
	Staging    *Staging
	Evaluation *Evaluation

	head span // the bytes up to the target

	editSpan span // its edits in Plan.edits
}

// Alone says whether the statement takes more than its text to run, and so
// needs a text of its own.
func (in *Insert) Alone() bool { return in.Staging != nil || in.Evaluation != nil || in.Late }

// An ArgKey is a row whose key is a placeholder.
type ArgKey struct {
	Row int // 0-based among the statement's rows
	Arg int // 0-based among the text's placeholders
}

// A Block is the ids that one execution gives one Insert. A text takes one for
// each of Plan.Inserts, in that order.
type Block struct {
	First int64    // the first id
	UUID  [16]byte // the first where Table.UUID is set: the last 8 bytes count up
	N     int      // how many ids: rows to fill; 0 leaves the statement unfilled

	// OwnKey is the key that the only row brought, where it is known to be a
	// whole number above 0 that the column holds; else 0.
	OwnKey int64

	// Explicit has an entry for each of Insert.ArgKeys, true where the argument
	// is a key already; nil: none is. It is empty for statements without.
	Explicit []bool
}

// A Refusal is the error for a statement that would write a configured table
// and cannot be filled.
type Refusal struct {
	DB, Table string // the table as the configuration knows it
	Reason    string // what in the statement cannot be filled
	Fix       string // what to write instead
}

func (r *Refusal) Error() string {
	name := "table " + r.Table
	switch {
	case r.Table == "":
		name = "statement"
	case r.DB != "":
		name = "table " + r.DB + "." + r.Table
	}
	return fmt.Sprintf("leafsql: %s: %s; %s", name, r.Reason, r.Fix)
}
