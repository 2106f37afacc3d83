// Package driver is the database/sql driver "mysql-leaf". It is go-sql-driver/mysql with
// one addition: every INSERT into a table that leafTables names (a configured table) gets
// its primary key from a Leaf segment or from a snowflake instead of AUTO_INCREMENT.
//
//	import _ "github.com/leafsql/leafsql/driver"
//
//	db, err := sql.Open("mysql-leaf", "app:secret@tcp(127.0.0.1:3306)/shop?leafTables=orders")
//	res, err := db.ExecContext(ctx, "INSERT INTO orders (customer) VALUES (?)", "ann")
//	id, err := res.LastInsertId()
//
// The SQL stays as it was, and so does what comes back: LastInsertId is the
// first id that was generated, SELECT LAST_INSERT_ID() on the same connection
// gives it too, and the other ids of the statement follow it one by one, in
// row order. A row that names a key of its own keeps it. NULL, DEFAULT and 0
// in the key column mean "generate", as AUTO_INCREMENT takes them.
//
// A statement that writes a configured table in a form that cannot be filled
// is refused with a [RefusedError] and never runs as it is.
//
// What the package does not do: it does not parse or check SQL beyond finding
// the places of keys, it does not route to shards, it does not see rows that
// triggers, routines or other clients write, and it does not wrap Rows, Tx or
// the inner driver's errors.
package driver
