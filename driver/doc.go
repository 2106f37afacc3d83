// Package driver is the database/sql driver "mysql-leaf". It is go-sql-driver/mysql with
// one addition: every INSERT into a table that leafTables names (a configured table) gets
// its primary keys from a Leaf segment or from a snowflake instead of AUTO_INCREMENT.
//
//	import _ "github.com/leafsql/leafsql/driver"
//
//	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders")
//	res, err := db.ExecContext(ctx, "INSERT INTO orders (customer) VALUES (?)", "ann")
//	id, err := res.LastInsertId()
//
// The application's SQL does not change, and neither do its results: LastInsertId
// returns the first generated id, and so does SELECT LAST_INSERT_ID() on the same
// connection. The other ids of the statement are the following integers, in row
// order. A row with an explicit key keeps it. NULL, DEFAULT and 0 in the key column
// mean "generate", as with AUTO_INCREMENT.
//
// To fill a statement is to add ids as keys to its rows without a key. A statement that
// writes a configured table in a form that cannot be filled is refused with a
// [RefusedError] and never runs unchanged.
//
// Limitations: the package parses SQL only to find the places of keys, and does
// not check it. It does not route to shards. It does not see rows that triggers,
// routines or other clients write. It does not wrap Rows, Tx or the inner driver's
// errors.
//
// The comments of this package use these terms:
//
//   - The inner driver is go-sql-driver, or the driver of the connector that was passed to Wrap.
//   - A plan describes where the keys of a query are. It is the same for all executions of the query.
//   - A block is a number of consecutive ids for the rows of one statement.
//   - The marker is LAST_INSERT_ID(id) in place of an id. It sets the id that SQL's LAST_INSERT_ID() returns
//     in the session, which the comments call the session's id.
//   - A staged statement is an INSERT … SELECT or a LOAD DATA. Only the server has its rows, so they
//     go through a temporary table, in which they get keys.
package driver
