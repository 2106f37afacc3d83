package tagtable

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/internal/quote"
)

// The description of a row ends with a mark, which names the server on which ids were last taken from the row.
// The mark is replicated together with the row's next id, and writers that do not use marks leave it
// unchanged. A row jumps if its mark names another server: its next id is raised by a margin before ids are taken.
const (
	markBegin = "leafsql@"

	MarkOff = markBegin + "off" // mark of a row from which ids may be taken on any server

	// UnmatchedMark is a mark that no server has: the next fetch of a row with it jumps.
	UnmatchedMark = markBegin + "0000000000000000 0 0"

	// MaxTextLength is the maximum length, in characters, of the user's text in a description that also has a mark.
	MaxTextLength = 200
)

// A Mark is the content of the mark at the end of a row's description.
type Mark struct {
	Server string // hash of the server's identity; "" if the row has no mark
	Jumps  int64  // number of jumps of the row, each within an hour of the previous one
	At     int64  // time of the last jump, in seconds since 1970; 0 if there was none
	Off    bool   // ids may be taken from the row on any server
}

func (m Mark) String() string { return fmt.Sprintf("%s%s %d %d", markBegin, m.Server, m.Jumps, m.At) }

var (
	markStart = regexp.MustCompile(`(?i) ?leafsql@`) // case-insensitive, like the servers' comparisons
	markText  = regexp.MustCompile(`^ ?leafsql@([0-9a-f]{16}) ([0-9]{1,4}) ([0-9]{1,12})$`)
)

// ParseMark splits a description into the user's text and the mark. ok is false if the mark cannot be parsed.
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

// Guard returns the part of a Move that restricts it to a row with a mark that names the executing server. hash is the
// SQL expression for this server's hash. The description is assigned to itself so that row events in the binary log
// contain it, even if binlog_row_image is MINIMAL.
func Guard(hash string) (set, where string) {
	return ", description = description", " AND " + locateServer(hash) + " > 0"
}

// locateServer returns an SQL expression that is above 0 if the description has this server's mark, and else 0. MariaDB
// does not compare the hash, which it computes in the connection's character set, with a column in latin1 or gbk (error
// 1267). The text before the mark may not be valid in any character set.
func locateServer(hash string) string {
	return "LOCATE(CONCAT('" + markBegin + "', " + hash + "), CONVERT(SUBSTRING(description, LOCATE('" + markBegin + "', description)) USING utf8mb4))"
}

// GuardOff returns the part of a Move for a row from which ids may be taken on any server.
func GuardOff() (where string) { return " AND LOCATE('" + MarkOff + "', description) > 0" }

// WriteFirst returns the part of a Move that writes the first mark of a row, on the server that the mark names.
func (m Mark) WriteFirst(hash string) (set, where string) {
	return ", description = CONCAT_WS(' ', NULLIF(description, ''), " + quote.String(m.String()) + ")",
		" AND COALESCE(LOCATE('" + markBegin + "', description), 0) = 0 AND COALESCE(CHAR_LENGTH(description), 0) <= " + strconv.Itoa(MaxTextLength) + m.executedBy(hash)
}

// Replace returns the part of a Move that replaces an old mark, on the server that the new mark names.
func (m Mark) Replace(old Mark, hash string) (set, where string) {
	return ", description = REPLACE(description, " + quote.String(old.String()) + ", " + quote.String(m.String()) + ")",
		" AND LOCATE(" + quote.String(old.String()) + ", description) > 0" + m.executedBy(hash)
}

// executedBy returns the SQL condition that the mark's server executes the statement. The server is written as a
// literal, since a replica that receives the statement as text would evaluate its own identity.
func (m Mark) executedBy(hash string) string { return " AND " + hash + " = " + quote.String(m.Server) }

// ForeignMarksQuery returns a query for two values: the hash of the server that answers, and the number of rows of
// the table that have another server's mark or jumped within the last day. The query locks no rows: FOR UPDATE
// makes proxies send it to the primary.
func ForeignMarksQuery(hash, table string) string {
	return "SELECT " + hash + ", (SELECT COUNT(*) FROM " + table + " WHERE LOCATE('" + markBegin + "', description) > 0 AND LOCATE('" + MarkOff + "', description) = 0" +
		" AND (" + locateServer(hash) + " = 0 OR SUBSTRING_INDEX(description, ' ', -1) > UNIX_TIMESTAMP() - 86400)) FOR UPDATE"
}
