package insert

import (
	"slices"
	"strconv"
)

// The id that a statement has for the application: LastInsertId, and SQL's LAST_INSERT_ID().

// An IDPlan states how a statement's id reaches the session and the result. The reader
// decides it, and the executor carries it out.
type IDPlan struct {
	Way    IDWay    // for an execution of the statement alone
	InBulk IDWay    // for an execution for many rows at once
	Update IDUpdate // of an upsert

	// KeepsKey says that a row which the statement brings a key for has that key
	// afterwards, also where an upsert found it there.
	KeepsKey bool

	// KeyArg is the placeholder, counted from 1, whose argument the update list makes the
	// key: KeepsKey holds where the row brought the same. 0: none.
	KeyArg int
}

// An IDWay is how the ids of a statement's rows reach SQL's LAST_INSERT_ID().
type IDWay uint8

const (
	NoID IDWay = iota // not at all: the session's id is left to the server

	// IDInText: if the text fills the statement, it carries the marker LAST_INSERT_ID(first): in
	// the last filled row, plus its distance from the first; in the first filled row of an
	// upsert, so that an answer other than first shows that a later row was a duplicate.
	IDInText

	// SetBefore: the session is set before the statement runs, since no single row can carry the marker for all.
	SetBefore

	// SetAfter: the session is set once the statement has run. A call of LAST_INSERT_ID(), in
	// the text or in a trigger, would read the marker too early, or a row sets what it returns.
	// The text is this one statement.
	SetAfter
)

// An IDUpdate states to which value the update list of an upsert sets LAST_INSERT_ID().
type IDUpdate uint8

const (
	NoUpdate   IDUpdate = iota // to none
	UserUpdate                 // to the argument of the user's own LAST_INSERT_ID(…) in the statement

	// RowUpdate: if the text fills the statement, to the key of a row that was updated.
	RowUpdate

	// AlwaysUpdate: to the key of the row that was updated also if the only row brought a key.
	// The value from before is put back after the statement. The text is this one statement.
	AlwaysUpdate
)

const markerOpen = "LAST_INSERT_ID("

// Marker returns the value of a key that makes it the session's id.
func Marker(id int64) string { return markerOpen + strconv.FormatInt(id, 10) + ")" }

// UpsertMarker returns the value of a key column in an update list that makes it the session's id.
func UpsertMarker(column string) string {
	return "IF(" + markerOpen + column + "), " + column + ", " + column + ")"
}

// The session's id as SQL reads and sets it. SaveID and RestoreID keep it in a user variable.
const (
	SessionID = markerOpen + ")"
	SaveID    = "@leafsql_l = " + SessionID
	RestoreID = "last_insert_id = @leafsql_l"
)

// SetID returns the assignment of a SET that makes id the session's.
func SetID(id int64) string { return "last_insert_id = " + strconv.FormatInt(id, 10) }

// ForBulk returns the plan for executions for many rows at once.
func (p *Plan) ForBulk() *Plan {
	f := p.Findings
	f.Inserts = slices.Clone(f.Inserts)
	for i := range f.Inserts {
		in := &f.Inserts[i]
		in.Way, in.Update = in.InBulk, min(in.Update, RowUpdate)
	}
	q := new(Plan)
	q.Init(p.text, f)
	return q
}

// AnswersRows returns the refusal of an execution that answers with rows, nil if it may. The session would
// have to be set once the rows are read, and the application may read its id first.
func (in *Insert) AnswersRows() error {
	switch {
	case in.Way != SetAfter:
		return nil
	case in.Table.ID == SetAfter:
		return in.Table.Refuse("a trigger or a default of the table reads LAST_INSERT_ID(), and the statement answers with rows", "run it with Exec")
	}
	return in.Table.Refuse("it reads LAST_INSERT_ID() behind its key, and answers with rows", "write the key column behind LAST_INSERT_ID(), or run it with Exec")
}

// explicitKeyID returns the LastInsertId of an INSERT whose rows all brought their keys. Of one row it
// is that key where that is certain, as a server says it of AUTO_INCREMENT:
//
//	INSERT, REPLACE                              the row's key, if it was stored
//	upsert that inserted the row                 likewise
//	upsert whose list does not change the key    likewise if it updated the row, where
//	                                             no other column is unique
//	the same where others are                    the key of the row that it updated, by
//	                                             a marker
//	upsert with a marker of its own              what the server says, if that is an id
//
// Of several rows it is the server's answer, because libraries count on from it, and so
// it is where a trigger may set the key, and where an upsert left the row as it was.
func (in *Insert) explicitKeyID(b *Block, affected, server int64, foundRows bool) int64 {
	switch {
	case in.Update == AlwaysUpdate && server != 0 && affected < 2: // an update counts 2, and one of a system-versioned table 3
		return 0 // the row was there, and stayed as it was
	case server != 0, affected == 0, b.OwnKey == 0, in.Table.SetsKey, in.Duplicates >= Update && in.Table.UpdatesSetKey:
	case in.Duplicates < Update, in.KeepsKey && !b.Moved, in.Update == AlwaysUpdate, affected == 1 && (!foundRows || in.Update == UserUpdate):
		return b.OwnKey
	}
	return server
}

// KeyID returns the LastInsertId of an INSERT that drew the ids of a block, if any,
// by the count and the id in the server's answer. ask is set if only SELECT
// LAST_INSERT_ID() on the same connection has it.
//
//	INSERT, REPLACE                                 the first id of the block
//	INSERT IGNORE                                   the first id if every row was stored, else 0
//	upsert of one row, with the markers             what the server says: the row's id, updated or not
//	upsert of several rows, with the markers        the first id if the server says so, else 0
//	upsert of one row without our marker            the first id if one row was inserted for sure, else 0
//	upsert of several rows without our marker       0
//	keys that are UUIDs                             what the server says
//	keys that a trigger may set                     likewise for one row, else 0
//	select without a table that gave no row         what the server says; 0 under IGNORE
func (in *Insert) KeyID(b *Block, affected, server int64, foundRows bool) (id int64, ask bool) {
	every, ignores := affected == int64(in.Rows), in.Duplicates == Ignore || in.Duplicates == UpdateOrIgnore
	switch {
	case b.N == 0:
		return in.explicitKeyID(b, affected, server, foundRows), false
	case in.Rows > 1 && in.Table.UUID == NoUUID && (in.Table.SetsKey || in.Duplicates >= Update && in.Table.UpdatesSetKey):
		return 0, false // of AUTO_INCREMENT the server's is the last row's
	case in.Table.UUID != NoUUID, in.Table.SetsKey, in.Duplicates >= Update && in.Table.UpdatesSetKey, in.Conditional && affected == 0 && !ignores:
		return server, false
	case in.Duplicates < Update && (every || !ignores):
		return b.First, false
	case in.Duplicates < Update:
		return 0, false
	case in.Update >= RowUpdate && in.Way == IDInText:
		// Each row that was updated or left alone put its own key into
		// LAST_INSERT_ID(), after the first filled row had put the first id
		// there: it is still there only if no row from that one on was a
		// duplicate.
		switch {
		case server == 0 && affected > 0:
			return 0, true
		case in.Rows == 1:
			return server, false
		case server == b.First && (!ignores || every):
			return b.First, false
		}
	case in.Rows == 1:
		// The server's id is that of the row which was updated, by a marker. Without one an affected
		// count of 1 says "inserted", except under clientFoundRows, where an unchanged row counts
		// 1 as well.
		switch {
		case in.Update != NoUpdate && server != 0:
			return server, false
		case affected == 1 && (!foundRows || in.Update == UserUpdate):
			return b.First, false
		}
	}
	return 0, false
}

// IDAfter returns the value to which SQL's LAST_INSERT_ID() has to be set after a statement that could
// not carry it: the statement's LastInsertId, or the first id of an INSERT IGNORE that
// stored some of its rows. 0 leaves it as it is.
func (in *Insert) IDAfter(b *Block, affected, id int64) int64 {
	if id == 0 && in.Duplicates == Ignore && affected > 0 {
		return b.First
	}
	return id
}
