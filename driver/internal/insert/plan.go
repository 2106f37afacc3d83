// Package insert has the Plan, which states how a query has to change so that every row that it writes to a
// configured table gets a key. It also renders the changed query. Package read makes the Plan of a query.
//
//	blocks := []insert.Block{{First: first, N: plan.Inserts[0].RowsWithoutKey}}
//	text := plan.Text(blocks)
//
// The package does no I/O, parses no SQL, and uses neither generators nor database/sql. Its comments use these terms:
//
//   - A statement is filled if ids are added as keys to its rows that have no key.
//   - An explicit key is a key that the application writes in the query or passes as an argument.
//   - The session's id is the result of SQL's LAST_INSERT_ID() in the session.
//   - The marker is LAST_INSERT_ID(id), written in place of an id. It stores the id, and makes it the session's id.
//   - An upsert is an INSERT … ON DUPLICATE KEY UPDATE; the text after UPDATE is its update list.
//   - The counter has to pass a key: the counter's next id has to be above the key before the rows are written.
//   - A staged statement is an INSERT … SELECT or a LOAD DATA. Only the server has its rows, so they are written to a
//     temporary table, the stage, where they get keys. The copy is the statement that copies them into the table.
//
// The files:
//
//	settings.go            how a session reads a query
//	plan.go                the contents of a plan: Table and its Keys, Plan, Insert, Block, Refusal
//	privilege.go           which privileges a filled statement needs
//	effects.go             other effects of a piece of SQL: variables, tables, the session's id
//	key.go                 the meaning of a value in the key column
//	render.go              the changed query, with the ids as literals or as arguments
//	staging.go             the parts of a statement if only the server can see its rows
//	lastid.go              which id a statement returns to the application
package insert

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/quote"
)

// A Table has the facts about a configured table that a plan depends on.
type Table struct {
	Keys
	Name    TableName
	Key     string   // the key column, as the catalog spells it
	KeyType string   // such as "int(10) unsigned"
	Highest int64    // the highest id that the key column can hold
	Columns []string // visible columns in ordinal order, for INSERTs without a column list

	IntegerKey     bool
	UUID           UUIDForm
	Unsigned       bool       // the key's type has no negative values
	ZeroKey        KeyMeaning // meaning of a 0 in the key column: KeyBySession, KeyGiven or KeyWanted
	OnReplacedZero func()     // called for each 0 for which a key is generated; may be nil
	Floors         bool       // the counter has to pass explicit keys
	Keyless        bool       // a session's temporary table: its key has neither AUTO_INCREMENT nor generated ids

	// IDWay is NoID if the server alone sets the session's id, IDSetAfter if a trigger or a column's
	// default reads that id, and IDInText otherwise. UpdatesID reports whether leafsql may set the id in
	// the update list of an upsert.
	IDWay     IDWay
	UpdatesID bool

	// SetsKey reports whether a trigger that runs before an INSERT may set the key, so that the key is
	// unknown. UpdatesSetKey reports the same for triggers that run before an UPDATE.
	SetsKey, UpdatesSetKey bool

	AutoIncrement bool // the key is still AUTO_INCREMENT
	RowTriggers   RowTriggers

	// HasOtherUnique reports whether a row may be a duplicate in an index other than the key's index. The
	// server's result does not identify the existing row, since the key is not AUTO_INCREMENT.
	HasOtherUnique bool

	Triggers Effects // effects of its triggers, of the routines that they call, and of its columns' defaults
}

// RowTriggers states whether a table has triggers BEFORE INSERT or BEFORE UPDATE.
type RowTriggers uint8

const (
	NoTriggers     RowTriggers = iota
	HiddenTriggers             // there may be triggers that this user cannot see; only on servers with the bug MDEV-36026
	SomeTriggers
)

// A UUIDForm is the form in which a column stores UUIDs.
type UUIDForm uint8

const (
	NoUUID    UUIDForm = iota // keys are numbers
	UUIDText                  // as 36 characters
	UUIDBytes                 // as 16 bytes
)

// A Plan states what one query needs. It is immutable and safe for concurrent use.
type Plan struct {
	Findings
	text      string
	size      int                      // approximate length in bytes without keys
	templates atomic.Pointer[Template] // newest cached template
}

// Findings are the results of reading a query.
type Findings struct {
	// Inserts are the statements that write a configured table and may need changes, in the order of
	// the query. If there are none, the query runs unchanged.
	Inserts []Insert

	// Cut, unless 0, is the offset at which the query has to be cut. The caller runs the part in front of it, and
	// then plans the rest as a separate query. The first CutInput placeholders belong to the first part.
	// If Cut is set, Ends and NumInput are the only other valid fields.
	Cut, CutInput int

	// Ends are the offsets at which the query can be cut to run each statement by itself: after each
	// semicolon that is followed by a statement or by a comment. If Settings.SingleStatement is set, a
	// comment does not count. If Cut is set, it is the last of Ends.
	Ends []int

	// Results is the number of statements in the query, plus 1 if a comment after the last statement returns
	// a result. Each statement returns one result, except CALL, EXECUTE and MariaDB's compound
	// statements.
	Results int

	// NumInput is the number of placeholders in the query.
	NumInput int

	// Use is the database in use after the query, or "" if the query does not change it.
	Use string

	// SetsSession reports whether the query may change the settings that decide how the session reads
	// queries.
	SetsSession bool

	// SetsRole reports whether the query may change the roles of the session.
	SetsRole bool

	// Changes are the changes of tables, views and stored programs that the query makes.
	Changes []Change

	// Opaque reports whether the query runs statements that the reader cannot see (CALL, EXECUTE, compound
	// statements). They may change tables and the database in use.
	Opaque bool

	// RunsPrograms reports whether the query may run stored programs: by a call, through a view that it selects
	// from, or by a table's triggers. It is set only if the session has temporary tables.
	RunsPrograms bool

	Edits []Edit
	Texts []string // texts that the edits insert
}

// Init sets p to the plan of a query with the findings f.
func (p *Plan) Init(text string, f Findings) {
	p.Findings, p.text = f, text
	if len(p.Inserts) == 0 {
		return
	}
	p.size = len(text) + len(f.Inserts)*len(markerOpen+")+")
	for _, inserted := range f.Texts {
		p.size += len(inserted)
	}
	for i := range p.Inserts {
		in := &p.Inserts[i]
		in.fullMarkedEdit = in.findMarkedEdit(p.Edits, &Block{N: 1})
	}
}

// MemorySize returns the approximate size of the plan in bytes without its query, including one cached
// template. It is 0 for a plan without Inserts.
func (p *Plan) MemorySize() int {
	if len(p.Inserts) == 0 {
		return 0
	}
	rows := cap(p.Edits)
	for i := range p.Inserts {
		rows += cap(p.Inserts[i].ArgKeys)
	}
	return rows*int(unsafe.Sizeof(Edit{})) + len(p.Inserts)*int(unsafe.Sizeof(Insert{})) + p.size + len(p.Edits)*int(unsafe.Sizeof(place{}))
}

// HasEffects reports whether the query does more than write rows.
func (p *Plan) HasEffects() bool {
	return p.Use != "" || p.SetsSession || p.SetsRole || p.Opaque || p.RunsPrograms || len(p.Changes) > 0
}

// A Change is a table or view that a query creates, alters, renames or drops, or a stored program that
// it defines.
type Change struct {
	TableName
	Temporary bool      // creates a temporary table or, if Drop is set, drops a table only if it is temporary
	Like      TableName // table that CREATE TABLE … LIKE copies
	Drop      bool      // drops or renames the table, perhaps a temporary one
	Truncate  bool      // empties the table
	Database  bool      // drops the whole database TableName.DB
	Program   bool      // defines a routine, a trigger or a view, which any statement may run; TableName is empty
}

// An Insert is one INSERT, REPLACE or LOAD DATA statement that writes a
// configured table.
type Insert struct {
	Table          *Table
	Statement      int // index of the statement's result among the results of the query
	Rows           int // rows of VALUES; 1 for SET and for a select without a table; 0 if unknown
	RowsWithoutKey int // rows that need a generated key whatever the arguments are

	// ArgKeys are the placeholders, counted from 0 in the query, in place of a row's key. The argument
	// decides whether the row already has a key.
	ArgKeys []int

	// Floor is the highest explicit key written in the query that the counter has to pass, or 0 if there is
	// none.
	Floor int64

	// ExplicitKey is the key of the only row if it is written as an integer above 0; else 0.
	ExplicitKey int64

	// WritesZero reports whether the query writes a 0 as a key, and the plan depends on Settings.KeepsZero.
	WritesZero bool

	Duplicates Duplicates
	Returning  bool // has RETURNING, or returns rows for another reason

	// Conditional reports whether the row comes from a select without a table, so that a WHERE clause
	// decides whether there is a row.
	Conditional bool

	IDPlan

	// Positional reports whether the user's query lists no columns. Rendering always adds the list, so
	// that an ALTER TABLE cannot change the columns to which the values belong.
	Positional bool

	// Diagnostics reports whether the statement reads the number of errors or warnings of the previous
	// statement.
	Diagnostics bool

	// Staging is set if only the server can see the rows. The query then consists of this one statement,
	// and the fields about rows are unset.
	Staging *Staging

	// Written is the text of the statement up to its rows, or up to the last assignment of SET. Updates
	// is its update list. Together they decide which privileges the statement needs on its table.
	Written, Updates string
	Columns          []string // columns to which a SELECT or a file gives values; nil for VALUES and SET

	EditFrom, EditTo int // range of the statement's edits in Plan.Edits

	fullMarkedEdit int // index of the edit that contains the marker if every possible row gets a key, or -1
}

// NeedsOwnText reports whether the statement must be a query by itself, because leafsql sends other statements before or
// after it.
func (in *Insert) NeedsOwnText() bool { return in.Staging != nil || in.Way == IDSetAfter }

// Duplicates states how a statement handles a row if its key, or another unique value, is in
// use. Update and UpdateOrIgnore are upserts.
type Duplicates uint8

const (
	Fail           Duplicates = iota // INSERT
	Replace                          // REPLACE
	Ignore                           // INSERT IGNORE
	Update                           // INSERT … ON DUPLICATE KEY UPDATE
	UpdateOrIgnore                   // INSERT IGNORE … ON DUPLICATE KEY UPDATE
)

// A Block is a range of ids that one execution gives to one Insert. Rendering takes one Block for each
// of Plan.Inserts, in that order.
type Block struct {
	First int64    // the first id
	UUID  [16]byte // the first UUID if Table.UUID is set; the last 8 bytes of the next UUIDs count up
	N     int      // number of ids, one for each row to fill; 0 leaves the statement unfilled

	// ExplicitKey is the explicit key of the only row if it is known to be an integer above 0 that fits the
	// column; else 0.
	ExplicitKey int64

	// KeepZero reports whether a 0 in the key column of a row in the stage is a key.
	KeepZero bool

	// Numbered reports whether all staged rows get ids, and the stage numbers its rows from 1 to N without gaps.
	Numbered bool

	// KeyMoved reports whether the argument of Insert.KeyArg differs from ExplicitKey.
	KeyMoved bool

	// PendingSkip, unless 0, is a key that the counter has to pass after the statement has run.
	PendingSkip int64

	// Explicit has an entry for each of Insert.ArgKeys, which is true if the argument is a key. It is nil
	// if no argument is a key.
	Explicit []bool
}

// ErrRefused is the target for errors.Is that every refusal matches.
var ErrRefused = errors.New("leafsql: refused")

// A Refusal is the error for a statement that would write a configured table and cannot be filled.
type Refusal struct {
	Table  TableName // the table; zero if it is not known
	Column string    // the key column, if the table is the cause and the column is known
	Reason string    // the part of the statement that cannot be filled
	Fix    string    // hint, such as another form of the statement

	Statement string // text of the refused statement in a query of several statements; "" if the text is the whole query or unknown

	Unreadable bool // the statement cannot be parsed; it may be invalid on every server
	Transient  bool // some facts could not be read from the server; do not cache the refusal
}

// Refuse returns a *Refusal of a statement that writes the table.
func (t *Table) Refuse(reason, fix string) error {
	return &Refusal{Table: t.Name, Reason: reason, Fix: fix}
}

// Is reports whether target is ErrRefused.
func (r *Refusal) Is(target error) bool { return target == ErrRefused }

// TableText returns the name of the refused table, with its database if that is known, or "".
func (r *Refusal) TableText() string { return strings.TrimPrefix(r.Table.String(), ".") }

func (r *Refusal) Error() string {
	what := "statement"
	if r.Table.Table != "" {
		what = "table " + r.TableText()
	}
	if r.Column != "" {
		what += ", key column " + r.Column
	}
	return errprefix.Format(what, r.Reason, r.Fix)
}

// Keys reserves the ids for a table's rows, and keeps the counter above the explicit keys of rows. It is safe
// for concurrent use.
type Keys interface {
	// Draw reserves b.N ids and sets the first id in b. The error is a *Refusal, or an error that names
	// the table or the configuration.
	Draw(ctx context.Context, s Querier, b *Block) error

	// Skip raises the counter above a row's explicit key. late is nil, or the block of a statement that needs no
	// ids. With late, Skip may leave the counter unchanged and set late.PendingSkip to the key: if this would skip
	// more than half of the ids that remain in the column, or if late.PendingSkip is this key already. The caller
	// then calls SkipAfter when the statement has run.
	Skip(ctx context.Context, s Querier, key int64, late *Block) error

	// SkipAfter raises the counter above a key after its statement has run and returned err. A key of 0
	// is ignored.
	SkipAfter(ctx context.Context, key int64, err error)

	// SkipDuplicate raises the counter above all keys of the table if an id of the block was already in use.
	SkipDuplicate(ctx context.Context, b *Block)
}

// A Querier evaluates an expression on the application's connection.
type Querier interface {
	QueryValue(ctx context.Context, expression string) (string, error)
}

// A TableName is a table's name without quotes. DB is "" if the query names no database.
type TableName struct{ DB, Table string }

func (n TableName) String() string { return n.DB + "." + n.Table }

// Quoted returns the name in SQL's backquotes.
func (n TableName) Quoted() string { return quote.Qualified(n.DB, n.Table) }
