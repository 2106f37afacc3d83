package insert

// Which id an INSERT has for the application: LastInsertId, and SQL's LAST_INSERT_ID().

// explicitKeyID is the LastInsertId of an INSERT whose rows all brought their keys. Of one row it
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
	case in.OwnMarker && server != 0 && affected < 2: // an update counts 2, and one of a system-versioned table 3
		return 0 // the row was there, and stayed as it was
	case server != 0, affected == 0, b.OwnKey == 0, in.Table.SetsKey, in.Upsert && in.Table.UpdatesSetKey:
	case !in.Upsert, in.KeepsKey && !b.Moved, in.OwnMarker, affected == 1 && (!foundRows || in.UserMarker):
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
	every := affected == int64(in.Rows)
	switch {
	case b.N == 0:
		return in.explicitKeyID(b, affected, server, foundRows), false
	case in.Rows > 1 && in.Table.UUID == NoUUID && (in.Table.SetsKey || in.Upsert && in.Table.UpdatesSetKey):
		return 0, false // of AUTO_INCREMENT the server's is the last row's
	case in.Table.UUID != NoUUID, in.Table.SetsKey, in.Upsert && in.Table.UpdatesSetKey, in.Conditional && affected == 0 && !in.Ignore:
		return server, false
	case in.Upsert && in.UpsertMarker && in.Marker:
		// Each row that was updated or left alone put its own key into
		// LAST_INSERT_ID(), after the first filled row had put the first id
		// there: it is still there only if no row from that one on was a
		// duplicate.
		switch {
		case server == 0 && affected > 0:
			return 0, true
		case in.Rows == 1:
			return server, false
		case server == b.First && (!in.Ignore || every):
			return b.First, false
		}
		return 0, false
	case in.Upsert && in.UpsertMarker && in.Rows == 1 && server != 0: // no marker in the row
		return server, false
	case in.Upsert && in.Rows == 1:
		// Without our marker an affected count of 1 says "inserted", except
		// under clientFoundRows, where an unchanged row counts 1 as well. A
		// marker of the user's own says which row was updated.
		switch {
		case in.UserMarker && server != 0:
			return server, false
		case affected == 1 && (!foundRows || in.UserMarker):
			return b.First, false
		}
		return 0, false
	case in.Upsert, in.Ignore && !every:
		return 0, false
	}
	return b.First, false
}

// IDAfter is what SQL's LAST_INSERT_ID() has to be set to after a statement that could
// not carry it: the statement's LastInsertId, or the first id of an INSERT IGNORE that
// stored some of its rows. 0 leaves it as it is.
func (in *Insert) IDAfter(b *Block, affected, id int64) int64 {
	if id == 0 && in.Ignore && !in.Upsert && affected > 0 {
		return b.First
	}
	return id
}
