package tagrow

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/internal/quote"
)

// The description of a row ends with a mark, which names the server that the row was last drawn on. It replicates together with
// the number that it protects, and whoever does not know of it leaves it alone.
const (
	markBegin = "leafsql@"

	MarkOff = markBegin + "off" // the mark of a row that is drawn from on any server

	// Unmatched is the mark of no server: the next fetch of a row with it jumps.
	Unmatched = markBegin + "0000000000000000 0 0"

	// MaxText is how many characters the user's text in a description may have for a mark to find room behind it.
	MaxText = 200
)

// A Mark is what the end of a row's description records.
type Mark struct {
	Server string // hash of the server's identity; "" if the row has no mark
	Jumps  int64  // how often the row jumped, each time within an hour after the one before
	At     int64  // when it jumped last, in seconds since 1970; 0 if it never has
	Off    bool   // the row is drawn from on any server
}

func (m Mark) String() string { return fmt.Sprintf("%s%s %d %d", markBegin, m.Server, m.Jumps, m.At) }

var (
	markStart = regexp.MustCompile(`(?i) ?leafsql@`) // servers compare without regard to case
	markText  = regexp.MustCompile(`^ ?leafsql@([0-9a-f]{16}) ([0-9]{1,4}) ([0-9]{1,12})$`)
)

// ParseMark splits a description into the user's text and the mark. ok is false if the mark cannot be read.
func ParseMark(description string) (text string, m Mark, ok bool) {
	at := markStart.FindStringIndex(description)
	if at == nil {
		return description, m, true
	}
	text, mark := description[:at[0]], description[at[0]:]
	if strings.TrimPrefix(mark, " ") == MarkOff {
		return text, Mark{Off: true}, true
	}
	parts := markText.FindStringSubmatch(mark)
	if parts == nil {
		return text, m, false
	}
	m.Server = parts[1]
	m.Jumps, _ = strconv.ParseInt(parts[2], 10, 64)
	m.At, _ = strconv.ParseInt(parts[3], 10, 64)
	return text, m, m.String() == strings.TrimPrefix(mark, " ")
}

// Guard returns the part of a Move that lets it change only a row that was last drawn on the server that executes it. hash is
// the expression for that server. The description is written as it is, so that it is in the events of MINIMAL row images too.
func Guard(hash string) (set, where string) {
	return ", description = description", " AND LOCATE(CONCAT('" + markBegin + "', " + hash + "), description) > 0"
}

// GuardOff returns the part of a Move of a row that is drawn from on any server.
func GuardOff() (where string) { return " AND LOCATE('" + MarkOff + "', description) > 0" }

// Mark returns the part of a Move that gives a row without a mark its first one, on the server that the mark names.
func (m Mark) Mark(hash string) (set, where string) {
	return ", description = CONCAT_WS(' ', NULLIF(description, ''), " + quote.String(m.String()) + ")",
		" AND COALESCE(LOCATE('" + markBegin + "', description), 0) = 0 AND COALESCE(CHAR_LENGTH(description), 0) <= " + strconv.Itoa(MaxText) + m.on(hash)
}

// Replace returns the part of a Move that replaces an old mark, on the server that the new one names.
func (m Mark) Replace(old Mark, hash string) (set, where string) {
	return ", description = REPLACE(description, " + quote.String(old.String()) + ", " + quote.String(m.String()) + ")",
		" AND LOCATE(" + quote.String(old.String()) + ", description) > 0" + m.on(hash)
}

// on returns the condition that the mark's server executes the statement. The server is a literal, since a replica that is sent
// the text would write its own.
func (m Mark) on(hash string) string { return " AND " + hash + " = " + quote.String(m.Server) }

// Foreign returns the query for the hash of the server that answers, and for how many rows of the table another server's mark is on,
// or jumped within the last day. It locks nothing: FOR UPDATE has proxies ask the primary.
func Foreign(hash, table string) string {
	return "SELECT " + hash + ", (SELECT COUNT(*) FROM " + table + " WHERE LOCATE('" + markBegin + "', description) > 0 AND LOCATE('" + MarkOff + "', description) = 0" +
		" AND (LOCATE(CONCAT('" + markBegin + "', " + hash + "), description) = 0 OR SUBSTRING_INDEX(description, ' ', -1) > UNIX_TIMESTAMP() - 86400)) FOR UPDATE"
}
