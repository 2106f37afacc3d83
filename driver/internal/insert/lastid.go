package insert

import (
	"slices"
	"strconv"
)

// This file decides which id a statement returns to the application, as LastInsertId and by SQL's LAST_INSERT_ID().
// The comments call the result of LAST_INSERT_ID() the session's id. The marker is LAST_INSERT_ID(id) in place of
// an id: the server stores the id, and makes it the session's id.

// An IDPlan states how a statement's id becomes the session's id and the result's id. Package read makes the plan.
type IDPlan struct {
	Way    IDWay    // way of a statement that is executed once
	InBulk IDWay    // way of a prepared statement whose execution stores many rows
	Update IDUpdate // effect of the update list of an upsert

	// KeepsKey reports whether a row with an explicit key still has that key afterwards, even if it was
	// a duplicate and the upsert updated it.
	KeepsKey bool

	// KeyArg, unless 0, is the number of the placeholder, counted from 1, that the update list assigns
	// to the key. KeepsKey is then true only if the argument is equal to the row's key.
	KeyArg int
}

// An IDWay is a way in which the ids of a statement's rows reach SQL's LAST_INSERT_ID().
type IDWay uint8

const (
	NoID IDWay = iota // the server sets the session's id

	// IDInText: if the statement is filled, the marker LAST_INSERT_ID(first) is in its text. The last filled row has
	// the marker plus the distance of the row's id from the first id. In an upsert the first filled row has the
	// marker: if the server returns another id, a row was a duplicate.
	IDInText

	// IDSetBefore: the session's id is set before the statement runs, since the marker cannot be in a single
	// row.
	IDSetBefore

	// IDSetAfter: the session's id is set after the statement has run, because a call of LAST_INSERT_ID()
	// in the statement or in a trigger would read the marker, or because the statement itself sets the
	// session's id. The query consists of this one statement.
	IDSetAfter
)

// An IDUpdate states to which value the update list of an upsert sets the session's id.
type IDUpdate uint8

const (
	NoUpdate   IDUpdate = iota // the id is unchanged
	UserUpdate                 // the argument of the user's own LAST_INSERT_ID(…) in the statement

	// RowUpdate: the key of a row that was updated, if the statement is filled.
	RowUpdate

	// AlwaysUpdate: the key of the row that was updated, even if the only row has an explicit key.
	// The previous id is restored after the statement. The query consists of this one statement.
	AlwaysUpdate
)

const markerOpen = "LAST_INSERT_ID("

// Marker returns an expression for a key column that stores id and makes it the session's id.
func Marker(id int64) string { return markerOpen + strconv.FormatInt(id, 10) + ")" }

// UpsertMarker returns an expression for an update list that keeps the key column's value and makes it
// the session's id.
func UpsertMarker(column string) string {
	return "IF(" + markerOpen + column + "), " + column + ", " + column + ")"
}

// SQL expressions for the session's id. SaveID and RestoreID keep the id in a user variable.
const (
	SessionID = markerOpen + ")"
	SavedID   = "@leafsql_l"
	SaveID    = SavedID + " = " + SessionID
	RestoreID = "last_insert_id = " + SavedID
)

// SetID returns the assignment of a SET statement that makes id the session's id.
func SetID(id int64) string { return "last_insert_id = " + strconv.FormatInt(id, 10) }

// SetSessionID returns a statement that makes id, a number or SavedID, the session's id. TiDB accepts last_insert_id in SET
// and ignores it. Vitess does not parse it, and ignores DO.
func (s Settings) SetSessionID(id string) string {
	switch {
	case s.TiDB:
		return "DO " + markerOpen + id + ")"
	case s.Vitess:
		return "SET " + SavedID + " = " + markerOpen + id + ")"
	}
	return "SET last_insert_id = " + id
}

// ForBulk returns a copy of the plan for executions that store many rows at once. p is unchanged.
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

// CheckReturning returns the *Refusal of an execution that returns rows, or nil if it may run. For a
// refused execution the session's id would have to be set after the rows are read, and the application
// may read the id earlier.
func (in *Insert) CheckReturning() error {
	switch {
	case in.Way != IDSetAfter:
		return nil
	case in.Table.IDWay == IDSetAfter:
		return in.Table.Refuse("a trigger or a default of the table reads LAST_INSERT_ID(), and the statement returns rows", "run it with Exec")
	}
	return in.Table.Refuse("it reads LAST_INSERT_ID() after its key, and returns rows", "write the key column after LAST_INSERT_ID(), or run it with Exec")
}

// explicitKeyID returns the LastInsertId of an INSERT if all rows have explicit keys. For one row it
// is the row's key if that is certain, as with AUTO_INCREMENT:
//
//	INSERT, REPLACE                              the row's key, if it was stored
//	upsert that inserted the row                 the row's key
//	upsert that does not change the key          the row's key, also if the row was updated and
//	                                             no other column is unique
//	the same, but another column is unique       the key of the row that was updated, by
//	                                             a marker
//	upsert with a marker in the user's query     the server's id, if it is not 0
//
// For several rows it is the server's id, because libraries count up from the LastInsertId. It is also
// the server's id if a trigger may set the key, or if an upsert left the row unchanged.
func (in *Insert) explicitKeyID(b *Block, affected, server int64, foundRows bool) int64 {
	switch {
	case in.Update == AlwaysUpdate && server != 0 && affected < 2: // for an update, affected is 2, or 3 in a system-versioned table
		return 0 // the row existed and is unchanged
	case server != 0, affected == 0, b.ExplicitKey == 0, in.Table.SetsKey, in.Duplicates >= Update && in.Table.UpdatesSetKey:
	case in.Duplicates < Update, in.KeepsKey && !b.KeyMoved, in.Update == AlwaysUpdate, affected == 1 && (!foundRows || in.Update == UserUpdate):
		return b.ExplicitKey
	}
	return server
}

// ResultID returns the LastInsertId of an INSERT with the ids of a block, if it needed ids. affected and
// server are the count and the id in the server's result. ask is set if the id has to be read by SELECT
// LAST_INSERT_ID() on the same connection.
//
//	INSERT, REPLACE                                 the first id of the block
//	INSERT IGNORE                                   the first id if every row was stored, else 0
//	upsert of one row, with the markers             the server's id: the row's key, updated or not
//	upsert of several rows, with the markers        the first id if the server returns it, else 0
//	other upsert of one row                         the id that its update list set, else the first id if
//	                                                the row was certainly inserted, else 0
//	other upsert of several rows                    0
//	keys that are UUIDs                             the server's id
//	keys that a trigger may set                     the server's id for one row, else 0
//	select without a table that gave no row         the server's id; 0 under IGNORE
func (in *Insert) ResultID(b *Block, affected, server int64, foundRows bool) (id int64, ask bool) {
	every, ignores := affected == int64(in.Rows), in.Duplicates == Ignore || in.Duplicates == UpdateOrIgnore
	switch {
	case b.N == 0:
		return in.explicitKeyID(b, affected, server, foundRows), false
	case in.Rows > 1 && in.Table.UUID == NoUUID && (in.Table.SetsKey || in.Duplicates >= Update && in.Table.UpdatesSetKey):
		return 0, false // with AUTO_INCREMENT the server would return the last row's key
	case in.Table.UUID != NoUUID, in.Table.SetsKey, in.Duplicates >= Update && in.Table.UpdatesSetKey, in.Conditional && affected == 0 && !ignores:
		return server, false
	case in.Duplicates < Update && (every || !ignores):
		return b.First, false
	case in.Duplicates < Update:
		return 0, false
	case in.Update >= RowUpdate && in.Way == IDInText:
		// The first filled row sets LAST_INSERT_ID() to the first id. Each duplicate, whether it is
		// updated or left unchanged, sets it to its key. So LAST_INSERT_ID() is the first id only if
		// neither the first filled row nor a later row was a duplicate.
		switch {
		case server == 0 && affected > 0:
			return 0, true
		case in.Rows == 1:
			return server, false
		case server == b.First && (!ignores || every):
			return b.First, false
		}
	case in.Rows == 1:
		// If the update list sets the id, the server's id is the key of the row that was updated.
		// Otherwise an affected count of 1 means that the row was inserted. Under clientFoundRows the count
		// is not certain, since it is also 1 for an unchanged row.
		switch {
		case in.Update != NoUpdate && server != 0:
			return server, false
		case affected == 1 && (!foundRows || in.Update == UserUpdate):
			return b.First, false
		}
	}
	return 0, false
}

// SessionIDAfter returns the new session's id after a statement without a marker: the
// statement's LastInsertId, or the first id of an INSERT IGNORE that stored some of its rows. 0 means
// that the session's id is not changed.
func (in *Insert) SessionIDAfter(b *Block, affected, id int64) int64 {
	if id == 0 && in.Duplicates == Ignore && affected > 0 {
		return b.First
	}
	return id
}
