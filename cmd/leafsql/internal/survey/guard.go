package survey

import (
	"fmt"

	"github.com/leafsql/leafsql/internal/quote"
)

// A guard is a trigger that refuses rows without a key, so that no writer without
// mysql-leaf takes a number of AUTO_INCREMENT's.

// Guard is the name of the table's guard; names end after 64 letters.
func (t *Table) Guard() string {
	const suffix = "_needs_id"
	name := []rune(t.Table.Table)
	return string(name[:min(len(name), 64-len(suffix))]) + suffix
}

// CreateGuard is the SQL that creates it.
func (t *Table) CreateGuard() string {
	const longest = 128 // letters of a MESSAGE_TEXT
	const message = "leafsql: %s: row without id: a writer without mysql-leaf, a trigger or a procedure; see leafsql check"
	name := []rune(t.Table.Table)
	if room := longest - len(message) + len("%s"); len(name) > room {
		name = append(name[:room-1:room-1], '…')
	}
	return "CREATE TRIGGER " + quote.In(t.Database, t.Guard()) + " BEFORE INSERT ON " + t.Quoted() + " FOR EACH ROW IF COALESCE(NEW." + quote.Name(t.Column) + ", 0) = 0 THEN" +
		" SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = " + quote.String(fmt.Sprintf(message, string(name))) + "; END IF"
}
