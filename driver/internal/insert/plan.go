// Package insert has the Plan, which says what a SQL text needs so that every row it
// writes to a configured table gets a key, and makes the texts that give these keys.
// Package read makes the Plan of a text.
//
//	blocks := []insert.Block{{First: first, N: plan.Inserts[0].Lacking}}
//	text := plan.Text(blocks)
//
// It is pure: no I/O, no generators, no database/sql, and it reads no SQL. The files:
//
//	settings.go            how a session reads texts
//	plan.go                what a plan holds: Table and what gives its rows their keys, Plan, Insert, Block, Refusal
//	privilege.go           which privileges it takes
//	effects.go             what a piece of SQL reads and changes apart from its row
//	key.go                 what a value in the key column means
//	render.go              a plan and ids as a text, and as a text with arguments
//	staging.go             the parts of a statement whose rows only the server knows
//	lastid.go              which id a statement has for the application
package insert

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"unsafe"

	"github.com/leafsql/leafsql/internal/part"
	"github.com/leafsql/leafsql/internal/quote"
)

// A Table is what a plan has to know of a configured table.
type Table struct {
	Keys
	Name    TableName
	Key     string   // the key column, as the catalog spells it
	KeyType string   // such as "int(10) unsigned"
	Highest int64    // the highest id that the key column can hold
	Columns []string // visible columns in ordinal order, for INSERTs without a column list

	IntegerKey bool
	UUID       UUIDForm
	Unsigned   bool    // the key's type has no negative values
	ZeroKey    Meaning // of a 0 in the key column: BySession, Given or Wanted
	Zero       func()  // called for each 0 that wants a key; may be nil
	Floors     bool    // explicit keys move the counter
	Keyless    bool    // it is a session's temporary table, whose key has neither AUTO_INCREMENT nor ids

	// ID is IDInText unless the session's id is left alone, or a trigger or a column's default
	// reads it. UpdatesID reports whether the update list of an upsert may set it as well.
	ID        IDWay
	UpdatesID bool

	// SetsKey says that a trigger that runs before an INSERT may set the key, and
	// UpdatesSetKey that one before an UPDATE may: which key the row has then is not
	// known.
	SetsKey, UpdatesSetKey bool

	AutoIncrement bool // the key still is AUTO_INCREMENT
	RowTriggers   RowTriggers

	// OtherUnique says that a row may be a duplicate by another index than the key's, and
	// the server does not say which row it was: the key is not AUTO_INCREMENT.
	OtherUnique bool

	Triggers Effects // of its triggers, of what they call, and of its columns' defaults
}

// RowTriggers states whether a table has triggers BEFORE INSERT or BEFORE UPDATE.
type RowTriggers uint8

const (
	NoTriggers     RowTriggers = iota
	HiddenTriggers             // perhaps, if this user does not see them; only on servers with the bug MDEV-36026
	SomeTriggers
)

// A UUIDForm is how a column holds UUIDs.
type UUIDForm uint8

const (
	NoUUID    UUIDForm = iota // keys are numbers
	UUIDText                  // as 36 characters
	UUIDBytes                 // as 16 bytes
)

// A Plan says what one text needs. It is immutable and safe for concurrent use.
type Plan struct {
	Findings
	text      string
	size      int                      // about how long it gets without its keys
	templates atomic.Pointer[Template] // the last of those it keeps
}

// Findings are what reading a text comes to.
type Findings struct {
	// Inserts are the statements that write a configured table and may have to
	// be changed for it, in text order. Where there are none the text runs as
	// it is.
	Inserts []Insert

	// Cut, unless 0, is where the text has to be cut: run what is before it
	// and then plan what is behind it as a text of its own, which has all
	// placeholders but the first CutInput. The other fields, but Ends and
	// NumInput, say nothing then.
	Cut, CutInput int

	// Ends are where the text can be cut so that each statement has a text of its own: behind
	// the semicolon of each that has another, or a comment, behind it. Under Settings.Single a comment is no part. If Cut is set they go up to that.
	Ends []int

	// Results is the number of statements in the text, each of which answers
	// once, but for CALL, EXECUTE and MariaDB's compound statements.
	Results int

	// NumInput is the number of placeholders in the text.
	NumInput int

	// Use is the database in use after the text ran, "" where the text leaves
	// it as it was.
	Use string

	// Session says that the text may change the settings of the session that decide
	// how texts are read.
	Session bool

	// Role reports that the text may change the roles of the session.
	Role bool

	// Changes are what the text does to tables, views and stored programs.
	Changes []Change

	// Opaque says that the text runs statements that are not written in it
	// (CALL, EXECUTE): they may change tables and the database in use.
	Opaque bool

	// Runs says that the text may run stored programs: by a call, by a view that it
	// selects from, or as triggers of tables that are not configured.
	Runs bool

	Edits []Edit
	Texts []string // what the edits insert
}

// Init makes p the plan of a text by what reading it came to.
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
		in.allMarked = in.marked(p.Edits, &Block{N: 1})
	}
}

// Memory returns about how many bytes the plan takes besides its text, with one of the templates that executions make.
func (p *Plan) Memory() int {
	if len(p.Inserts) == 0 {
		return 0
	}
	rows := cap(p.Edits)
	for i := range p.Inserts {
		rows += cap(p.Inserts[i].ArgKeys)
	}
	return rows*int(unsafe.Sizeof(Edit{})) + len(p.Inserts)*int(unsafe.Sizeof(Insert{})) + p.size + len(p.Edits)*int(unsafe.Sizeof(place{}))
}

// HasEffects says whether the text does more than write rows.
func (p *Plan) HasEffects() bool {
	return p.Use != "" || p.Session || p.Role || p.Opaque || p.Runs || len(p.Changes) > 0
}

// A Change is a table or view that a text creates, alters, renames or drops, or a
// stored program that it defines.
type Change struct {
	TableName
	Temporary bool      // it creates a temporary table or, if Drop is set, drops one and nothing else
	Like      TableName // as which it creates it, by LIKE
	Drop      bool      // it drops or renames the table, perhaps a temporary one
	Truncate  bool      // it empties the table
	Database  bool      // it drops the whole database TableName.DB
	Program   bool      // it names no table: it defines a routine, a trigger or a view, which any statement may run
}

// An Insert is one INSERT, REPLACE or LOAD DATA statement that writes a
// configured table.
type Insert struct {
	Table     *Table
	Statement int // index of its answer among those of the text
	Rows      int // rows of VALUES, 1 for SET and for a select without a table; 0: not known
	Lacking   int // rows that lack a key whatever the arguments are

	// ArgKeys are the placeholders, counted from 0 in the text, that are keys of rows: the argument decides
	// whether the row has one.
	ArgKeys []int

	// Floor is the highest key that the text itself gives; 0: none
	// that the counter has to pass.
	Floor int64

	// OwnKey is the key that the text itself gives the only row, where it is
	// written as a whole number above 0; else 0.
	OwnKey int64

	// Zero says that the text writes a 0 as a key, whose meaning Settings.KeepsZero decided.
	Zero bool

	Duplicates Duplicates
	Returning  bool // has RETURNING, or otherwise answers with rows

	// Conditional says that the row comes from a select without a table, whose
	// WHERE decides whether there is one.
	Conditional bool

	IDPlan

	// Positional says that the user's text lists no columns. They are written
	// out always, so that values stay with the columns they were planned for.
	Positional bool

	// Diagnostics reports that the text reads how many errors or warnings the statement before had.
	Diagnostics bool

	// Staging is set where only the server knows the rows. The text then is this one
	// statement, and nothing is said of its rows.
	Staging *Staging

	// Written is the text of the statement up to its rows, or up to the last column of SET, and Updates is
	// its update list. Together they decide which privileges it needs on its table.
	Written, Updates string
	Columns          []string // that a query or a file gives values for; nil for VALUES and SET

	EditFrom, EditTo int // its edits in Plan.Edits

	allMarked int // which of them carries the marker where every row gets a key that can, -1 none
}

// NeedsOwnText says whether the statement takes more than its text to run, and so
// needs a text of its own.
func (in *Insert) NeedsOwnText() bool { return in.Staging != nil || in.Way == SetAfter }

// Duplicates states how a statement handles a row whose key, or another unique value, is in
// use. Update and above are upserts.
type Duplicates uint8

const (
	Fail           Duplicates = iota // INSERT
	Replace                          // REPLACE
	Ignore                           // INSERT IGNORE
	Update                           // INSERT … ON DUPLICATE KEY UPDATE
	UpdateOrIgnore                   // INSERT IGNORE … ON DUPLICATE KEY UPDATE
)

// A Block is the ids that one execution gives one Insert. A text takes one for
// each of Plan.Inserts, in that order.
type Block struct {
	First int64    // the first id
	UUID  [16]byte // the first where Table.UUID is set: the last 8 bytes count up
	N     int      // how many ids: rows to fill; 0 leaves the statement unfilled

	// OwnKey is the key that the only row brought, where it is known to be a
	// whole number above 0 that the column holds; else 0.
	OwnKey int64

	// KeepZero says that the 0 of a staged row is its key.
	KeepZero bool

	// Moved says that the update list gives the row another key than that, by KeyArg.
	Moved bool

	// Late is a key that the counter passes once the statement has run, else 0.
	Late int64

	// Explicit has an entry for each of Insert.ArgKeys, true where the argument
	// is a key already; nil: none is. It is empty for statements without.
	Explicit []bool
}

// ErrRefused is what errors.Is finds in every refusal.
var ErrRefused = errors.New("leafsql: refused")

// A Refusal is the error for a statement that would write a configured table
// and cannot be filled.
type Refusal struct {
	Of     TableName // the table; zero if it is not known
	Column string    // the key column, where the table is at fault and it could be named
	Reason string    // what in the statement cannot be filled
	Fix    string    // what to write instead

	Text string // the refused statement in a text of several; "" if it is the whole text, or cannot be told from it

	Unreadable bool // it cannot be read: perhaps no server can
	Passing    bool // it holds for this once: of what could not be asked now
}

// Refuse returns the refusal of a statement that writes the table.
func (t *Table) Refuse(reason, fix string) error {
	return &Refusal{Of: t.Name, Reason: reason, Fix: fix}
}

// Is makes errors.Is(err, ErrRefused) true.
func (r *Refusal) Is(target error) bool { return target == ErrRefused }

// On returns the refused table, with its database if that is known, or "".
func (r *Refusal) On() string { return strings.TrimPrefix(r.Of.String(), ".") }

func (r *Refusal) Error() string {
	what := "statement"
	if r.Of.Table != "" {
		what = "table " + r.On()
	}
	if r.Column != "" {
		what += ", key column " + r.Column
	}
	return part.Sentence(what, r.Reason, r.Fix)
}

// Keys give the rows of a table their ids, and keep the ids above the keys that rows bring.
type Keys interface {
	// Draw sets the first id of a block of N.
	Draw(ctx context.Context, s Session, b *Block) error

	// Skip moves the counter above a key that a row brings. late is the block of a statement
	// that draws no ids, or nil: a key that would take more than half of the room left in the
	// column is only noted in late.Late, for SkipAfter, as is the key that late.Late has already.
	Skip(ctx context.Context, s Session, key int64, late *Block) error

	// SkipAfter moves the counter above a key, unless 0, whose statement was sent first and ended
	// with err.
	SkipAfter(ctx context.Context, key int64, err error)

	// AfterDuplicate moves the counter above all keys if an id of the block was in use.
	AfterDuplicate(ctx context.Context, b *Block)
}

// A Session evaluates expressions on the application's connection.
type Session interface {
	Value(ctx context.Context, expression string) (string, error)
}

// A TableName is a table's name without quotes. DB is "" if a text names no database.
type TableName struct{ DB, Table string }

func (n TableName) String() string { return n.DB + "." + n.Table }

// Quoted returns the name as SQL writes it.
func (n TableName) Quoted() string { return quote.In(n.DB, n.Table) }
