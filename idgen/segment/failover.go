package segment

import (
	"context"
	"database/sql"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagtable"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/serverid"
)

// After a fail-over the new primary may lack the last fetches. Then the ids from the row's next id on may be in use.
// So each row has a mark, which names the server on which ids were last fetched from the row. A fetch changes the row
// only if the mark names the server that executes the fetch: processes need not detect which server that is.
// If the mark names another server, the row jumps: the next fetch raises the row's next id by a random margin and
// replaces the mark, in one statement.

// guards is the part of a store that handles marks.
type guards struct {
	log           func() *slog.Logger
	identity      atomic.Pointer[serverid.Server] // how servers are identified; nil: not queried yet
	markedServers sync.Map                        // tag -> the server in the row's mark, as last read
	marksDenied   atomic.Bool                     // rows cannot be marked: see isMarkDenied
	warnOnce      sync.Once
	newRows       atomic.Pointer[newRowFacts]
	random        func(int64) int64 // for margins, in tests
}

// rowMark is a row's mark as it was read, with the server that answered.
type rowMark struct {
	mark   tagtable.Mark
	server string // hash of the identity of the server that answered; "" if marks are not used
	hash   string // SQL expression for the server's hash
	now    int64  // the server's time, in seconds since 1970
	fresh  bool   // the way to identify servers was queried in the same call
	read   time.Time
	behind bool // the row's next id is below the ids that this process fetched, although the mark names this server
}

// markAction determines how the next fetch treats a row's mark.
type markAction int

const (
	ignoreMark     markAction = iota // ignores the mark
	allowAnyServer                   // ignores the server, because the mark allows all servers
	compareMark                      // succeeds only if the mark is unchanged and names the executing server
	writeMark                        // writes the first mark
	jump                             // raises the row's next id by a margin, and replaces the mark
)

func (t *counter) actionFor(tag string, r row) markAction {
	last, known := t.markedServers.Load(tag)
	switch {
	case r.behind:
		return jump
	case r.server == "":
		return ignoreMark
	case r.mark.Off:
		return allowAnyServer
	case r.mark.Server == r.server:
		return compareMark
	case r.mark.Server == "" && (!known || last == r.server): // the row was never marked, or its mark was removed by hand
		return writeMark
	}
	return jump
}

// recordMark records the mark of a row.
func (t *counter) recordMark(tag string, m tagtable.Mark) {
	if m.Server != "" {
		t.markedServers.Store(tag, m.Server)
	}
}

// jumpWindowSeconds is an hour. A row that jumped within this time has to wait before it jumps again: 2 s after the
// first jump, and twice as long after each further jump.
const jumpWindowSeconds = 3600

// guardMove extends m as the row's mark requires, and returns the mark that the row has afterwards.
func (t *counter) guardMove(q Request, r row, m *tagtable.Move) (tagtable.Mark, error) {
	var set, where string
	mark := tagtable.Mark{Server: r.server}
	switch t.actionFor(q.Tag, r) {
	case ignoreMark:
		mark = r.mark
	case allowAnyServer:
		mark, where = r.mark, tagtable.GuardOff()
	case compareMark:
		mark = r.mark
		set, where = tagtable.Guard(r.hash)
	case writeMark:
		set, where = mark.WriteFirst(r.hash)
	case jump:
		mark.Jumps, mark.At = 1, r.now
		if ago := r.now - r.mark.At; r.mark.Jumps > 0 && ago < jumpWindowSeconds {
			pause := min(int64(1)<<min(r.mark.Jumps, 12), jumpWindowSeconds)
			if mark.Jumps = r.mark.Jumps + 1; ago >= 0 && ago < pause {
				return mark, t.repeatedJumpError(q.Tag, r, pause-ago)
			}
		}
		m.From, m.Floor = 0, max(m.Floor, q.Seen)
		at := max(m.Floor, r.next)
		left := r.end - at
		if q.Highest > 0 {
			left = min(left, q.Highest-at+1)
		}
		if at > r.end-q.N {
			return mark, t.exhaustedError(q, r, at)
		}
		m.N += min(t.margin(left), r.end-q.N-at)
		m.To = r.end - m.N
		switch {
		case r.server == "": // the table has no column for marks
		case r.mark.Server == "":
			set, where = mark.WriteFirst(r.hash)
		default:
			set, where = mark.Replace(r.mark, r.hash)
		}
		if r.behind {
			where += fmt.Sprintf(" AND %s < %d", t.rows.Next, q.Seen-t.rows.Last)
		}
	}
	m.Set += set
	m.Where += where
	return mark, nil
}

func (t *counter) margin(left int64) int64 {
	if t.random != nil {
		return control.MarginBy(left, t.random)
	}
	return control.Margin(left)
}

// repeatedJumpError returns the error of a row that cannot jump for wait seconds, because it jumps repeatedly: fail-overs
// follow each other, two servers accept writes, or one server has several identities.
func (t *counter) repeatedJumpError(tag string, r row, wait int64) error {
	return tagtable.Answer{RetryBriefly: true, Err: &tagtable.Error{
		Reason: fmt.Sprintf("ids were last fetched on another server (mark %s, this server is %s), and the row was moved up by a margin %d times within an hour, so it cannot be moved again for %d s", r.mark, r.server, r.mark.Jumps, wait),
		Fix: fmt.Sprintf("wait after a fail-over; if two servers accept writes, stop writing to one of them; if both share their storage, turn the margin off for this tag: UPDATE %s SET description = '%s' WHERE %s = %s",
			t.rows.Table, tagtable.MarkOff, t.rows.Tag, quote.String(tag)),
	}}
}

// recordMove records m, the mark that a row has after a fetch. The fetch raised the row's next id by the margin gap, and
// took ids from start on.
func (t *counter) recordMove(q Request, r row, m tagtable.Mark, start, gap int64) {
	if m == r.mark && !r.behind {
		return
	}
	if m.Jumps > 0 {
		t.log().Warn("leafsql: a tag's row was moved up by a margin, because this server may have lost the last fetched ranges",
			"tag", q.Tag, "table", t.rows.Table, "max_id", r.next, "start", start, "margin", gap, "mark", r.mark.String(), "server", r.server)
	}
	r.mark, r.behind = m, false
	t.recordMark(q.Tag, m)
	t.knownRows.Store(q.Tag, r)
}

// identityColumns returns the columns of a query that identify the server that answers. fresh reports whether this
// call had to query how servers are identified.
func (t *counter) identityColumns(ctx context.Context, c *sql.Conn) (columns string, fresh bool, err error) {
	server := t.identity.Load()
	if fresh = server == nil; fresh {
		asked, err := serverid.Query(ctx, c)
		if err != nil {
			return "", false, err
		}
		server = &asked
		t.identity.Store(server)
	}
	if server.Hash == "" || server.Statements {
		return "", fresh, nil
	}
	return ", " + server.Hash + " AS `leafsql@server`, UNIX_TIMESTAMP() AS `leafsql@now`", fresh, nil
}

// markRetryInterval is the time after which a store tries again to mark a row that it could not mark: a right
// may have been granted.
const markRetryInterval = 10 * time.Minute

// retryMark reports whether a row has to be read again, so that the next fetch tries to mark it.
func (t *counter) retryMark(r row) bool {
	again := t.rows.HasMarks && r.server == "" && time.Since(r.read) > markRetryInterval
	if again {
		t.marksDenied.Store(false)
		t.identity.Store(nil)
	}
	return again
}

// readMark parses the mark in the cells of a row.
func (t *counter) readMark(tag string, cells tagtable.Cells) (m rowMark, err error) {
	m.read = time.Now()
	server := t.identity.Load()
	description, exists := cells["description"]
	text, mark, ok := tagtable.ParseMark(description.String)
	switch {
	case !ok:
		return m, t.unreadableMarkError(tag, text, description.String)
	case server == nil || server.Hash == "":
	case server.Statements:
		t.warnUnmarked("binlog_format is STATEMENT", "SET GLOBAL binlog_format = 'ROW'")
	case !exists:
		t.warnUnmarked("the table has no column description, or this user has no right to read it", "ALTER TABLE "+t.rows.Table+" ADD COLUMN description varchar(256), and GRANT SELECT, UPDATE on the table")
	case mark.Server == "" && utf8.RuneCountInString(text) > tagtable.MaxTextLength:
		t.warnUnmarked(fmt.Sprintf("the description of tag %q is too long to append a mark", tag), fmt.Sprintf("shorten it to %d characters", tagtable.MaxTextLength))
	case !t.marksDenied.Load():
		m.server, m.hash = cells["leafsql@server"].String, server.Hash
		fmt.Sscan(cells["leafsql@now"].String, &m.now)
	}
	m.mark = mark
	return m, nil
}

// unreadableMarkError returns the error of a row with an unreadable mark: ids may have been drawn from the row
// on any server.
func (t *counter) unreadableMarkError(tag, text, description string) *tagtable.Error {
	return &tagtable.Error{
		Reason: fmt.Sprintf("the mark at the end of its description %q cannot be parsed", description),
		Fix: fmt.Sprintf("replace it, so that the next fetch moves the row up by a margin: UPDATE %s SET description = %s WHERE %s = %s",
			t.rows.Table, quote.String(strings.TrimSpace(text+" "+tagtable.UnmatchedMark)), t.rows.Tag, quote.String(tag)),
	}
}

// warnUnmarked logs once why rows have no marks. Without marks, ids may be issued twice after a fail-over that
// loses writes.
func (t *counter) warnUnmarked(why, fix string) {
	t.warnOnce.Do(func() {
		t.log().Warn("leafsql: ids may be issued twice after a fail-over that loses writes, because rows cannot be marked", "table", t.rows.Table, "reason", why, "hint", fix)
	})
}

// isMarkDenied reports whether a statement failed because it reads or writes the column description.
func isMarkDenied(err error) bool {
	n, _ := tagtable.ServerError(err)
	return slices.Contains([]uint16{
		1054, // no such column
		1143, // no right on the column
		1267, // the column's collation cannot be compared with the mark's
		1348, // the column of a view cannot be updated
		1406, // the mark is too long for the column
		1906, // the column is generated (MariaDB)
		3105, // the column is generated (MySQL)
	}, n)
}

// giveUpMark reports whether a Move failed with err because of its mark. If so, the store then draws without marks,
// also from r.
func (t *counter) giveUpMark(tag string, r *row, m tagtable.Move, err error) bool {
	if m.Set == "" || !isMarkDenied(err) {
		return false
	}
	t.marksDenied.Store(true)
	t.warnUnmarked("the column description cannot be written: "+err.Error(), "GRANT SELECT, UPDATE on the table, and make description a varchar(256)")
	r.server = ""
	t.knownRows.Store(tag, *r)
	return true
}

// newMark returns the mark for a row that is to be added, or "" if the row gets no mark. lossy reports whether other
// rows show that the server may lack rows. The row that is added may then be a lost row, and has to begin a margin
// higher.
func (t *counter) newMark(ctx context.Context, c *sql.Conn) (mark string, lossy bool, err error) {
	if !t.rows.HasMarks || t.marksDenied.Load() {
		return "", false, nil
	}
	at := t.newRows.Load()
	if at == nil || time.Since(at.readAt) > newRowFactsTTL {
		columns, _, err := t.identityColumns(ctx, c)
		if err != nil || columns == "" {
			return "", false, err
		}
		at = &newRowFacts{readAt: time.Now()}
		err = c.QueryRowContext(ctx, tagtable.ForeignMarksQuery(t.identity.Load().Hash, t.rows.Table)).Scan(&at.server, &at.foreign)
		if n, _ := tagtable.ServerError(err); n == tagtable.NoSuchTableNumber { // there are no rows with another server's mark
			err = c.QueryRowContext(ctx, "SELECT "+t.identity.Load().Hash).Scan(&at.server)
		}
		switch {
		case isMarkDenied(err) || err == nil && !at.server.Valid:
			return "", false, nil
		case err != nil:
			return "", false, err
		}
		t.newRows.Store(at)
	}
	return tagtable.Mark{Server: at.server.String}.String(), at.foreign > 0, nil
}

// newRowFacts has facts about a server for the rows that are added there. If such a row is added on another server
// instead, its mark names the wrong server, so the row jumps before any id is fetched from it.
type newRowFacts struct {
	readAt  time.Time
	server  sql.NullString
	foreign int64 // number of rows that show that the server may lack rows
}

const newRowFactsTTL = 5 * time.Second // often several rows are added in succession

const unknownVariable = 1193 // number of the error for a system variable that the server does not have

// forgetServer makes the store identify servers again if err shows that the server has changed. It returns err.
func (t *counter) forgetServer(err error) error {
	if n, _ := tagtable.ServerError(err); n == unknownVariable && t.identity.Swap(nil) != nil {
		t.knownRows.Clear()
		return tagtable.Answer{Err: err, RetryBriefly: true}
	}
	return err
}
