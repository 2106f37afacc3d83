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
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/serverid"
)

// After a fail-over the new primary may lack the last fetches, so that the ids above the row may be in use.
// Each row has a mark of the server on which ids were last drawn from it. A fetch changes the row only if the
// mark names the server that executes the fetch: no process has to remember or detect where its statements go.
// A row with another mark jumps: the next fetch moves it up by a random margin and replaces the mark, in one
// statement.

// guards has a store's state for marks.
type guards struct {
	log      func() *slog.Logger
	identity atomic.Pointer[serverid.Server] // how servers are identified; nil: not queried yet
	met      sync.Map                        // tag -> the server in the row's mark, as last read
	unmarked atomic.Bool                     // rows cannot be marked: a right is missing
	warn     sync.Once
	newRows  atomic.Pointer[newRows]
	random   func(int64) int64 // for margins, in tests
}

// marked is a row's mark as it was read, with the server that answered.
type marked struct {
	mark   tagtable.Mark
	server string // hash of the identity of the server that answered; "" if ids are drawn without a mark
	hash   string // expression for the server's hash
	now    int64  // the server's time, in seconds since 1970
	fresh  bool   // the way to identify servers was queried in the same call
	read   time.Time
	behind bool // the row is below the ids that this process fetched, though its mark is right
}

// state determines how the next fetch treats a row's mark.
type state int

const (
	unguarded state = iota // ignores the mark
	released               // ignores the server, as the mark requests
	guarded                // compares the mark
	adopts                 // writes the first mark
	jumps                  // moves the row up by a margin, and replaces the mark
)

func (t *counter) stateOf(tag string, r row) state {
	met, known := t.met.Load(tag)
	switch {
	case r.behind:
		return jumps
	case r.server == "":
		return unguarded
	case r.mark.Off:
		return released
	case r.mark.Server == r.server:
		return guarded
	case r.mark.Server == "" && (!known || met == r.server): // the row was never marked, or its mark was removed by hand
		return adopts
	}
	return jumps
}

// meets records the mark of a row.
func (t *counter) meets(tag string, m tagtable.Mark) {
	if m.Server != "" {
		t.met.Store(tag, m.Server)
	}
}

// A row that has jumped waits before it jumps again: 2 s the first time, and twice as long each further time within an hour.
const jumpsCountFor = 3600

// guard extends m as the row's mark requires, and returns the mark that the row has afterwards.
func (t *counter) guard(q Request, r row, m *tagtable.Move) (tagtable.Mark, error) {
	var set, where string
	mark := tagtable.Mark{Server: r.server}
	switch t.stateOf(q.Tag, r) {
	case unguarded:
		mark = r.mark
	case released:
		mark, where = r.mark, tagtable.GuardOff()
	case guarded:
		mark = r.mark
		set, where = tagtable.Guard(r.hash)
	case adopts:
		set, where = mark.Mark(r.hash)
	case jumps:
		mark.Jumps, mark.At = 1, r.now
		if ago := r.now - r.mark.At; r.mark.Jumps > 0 && ago < jumpsCountFor {
			if mark.Jumps = r.mark.Jumps + 1; ago >= 0 && ago < 1<<min(r.mark.Jumps, 12) {
				return mark, t.braked(q.Tag, r)
			}
		}
		m.From, m.Floor = 0, max(m.Floor, q.Seen)
		at := max(m.Floor, r.next)
		left := r.end - at
		if q.Highest > 0 {
			left = min(left, q.Highest-at+1)
		}
		if at > r.end-q.N {
			return mark, t.exhausted(q, r, at)
		}
		m.N += min(t.margin(left), r.end-q.N-at)
		m.To = r.end - m.N
		switch {
		case r.server == "": // the table has no column for marks
		case r.mark.Server == "":
			set, where = mark.Mark(r.hash)
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
		return margin(left, t.random)
	}
	return Margin(left)
}

// braked returns the error of a row that jumps repeatedly: two servers take writes, or the same server looks
// like several.
func (t *counter) braked(tag string, r row) error {
	return tagtable.Answer{Soon: true, Err: &tagtable.Error{
		Reason: fmt.Sprintf("ids were last drawn on another server (%s; this one is %s), and the row has been moved up by a margin %d times in a row already", r.mark, r.server, r.mark.Jumps),
		Fix: fmt.Sprintf("stop the writes to one of the servers; if both share their storage, turn this off for the tag: UPDATE %s SET description = '%s' WHERE %s = %s",
			t.rows.Table, tagtable.MarkOff, t.rows.Tag, quote.String(tag)),
	}}
}

// moved records the effect of a fetch, which took ids from start on, on the mark of a row.
func (t *counter) moved(q Request, r row, m tagtable.Mark, start, gap int64) {
	if m == r.mark && !r.behind {
		return
	}
	if m.Jumps > 0 {
		t.log().Warn("leafsql: ids of a tag continue above a margin, since the server may lack the last ranges that were fetched",
			"tag", q.Tag, "table", t.rows.Table, "row", r.next, "start", start, "margin", gap, "mark", r.mark.String(), "server", r.server)
	}
	r.mark, r.behind = m, false
	t.meets(q.Tag, m)
	t.known.Store(q.Tag, r)
}

// identify returns the columns that identify the server of a query, and whether the way to do so was queried
// just now.
func (t *counter) identify(ctx context.Context, c *sql.Conn) (columns string, fresh bool, err error) {
	server := t.identity.Load()
	if fresh = server == nil; fresh {
		asked, err := serverid.Of(ctx, c)
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

// markAgain is the time after which a store tries again to mark a row that it could not mark: a right may have
// been granted.
const markAgain = 10 * time.Minute

// triesMark reports whether a row has to be read again for such an attempt.
func (t *counter) triesMark(r row) bool {
	again := t.rows.Marked && r.server == "" && time.Since(r.read) > markAgain
	if again {
		t.unmarked.Store(false)
		t.identity.Store(nil)
	}
	return again
}

// readMark parses the mark in the cells of a row.
func (t *counter) readMark(tag string, cells tagtable.Cells) (m marked, err error) {
	m.read = time.Now()
	server := t.identity.Load()
	description, exists := cells["description"]
	text, mark, ok := tagtable.ParseMark(description.String)
	switch {
	case !ok:
		return m, t.unreadable(tag, text, description.String)
	case server == nil || server.Hash == "":
	case server.Statements:
		t.warnUnmarked("the server replicates statements as text", "SET GLOBAL binlog_format = 'ROW'")
	case !exists:
		t.warnUnmarked("the table has no column description, or this user may not read it", "ALTER TABLE "+t.rows.Table+" ADD COLUMN description varchar(256), and GRANT SELECT, UPDATE on the table")
	case mark.Server == "" && utf8.RuneCountInString(text) > tagtable.MaxText:
		t.warnUnmarked(fmt.Sprintf("the description of tag %q leaves no room for a mark", tag), fmt.Sprintf("shorten it to %d characters", tagtable.MaxText))
	case !t.unmarked.Load():
		m.server, m.hash = cells["leafsql@server"].String, server.Hash
		fmt.Sscan(cells["leafsql@now"].String, &m.now)
	}
	m.mark = mark
	return m, nil
}

// unreadable returns the error of a row with an unreadable mark: ids may have been drawn from the row on any
// server.
func (t *counter) unreadable(tag, text, description string) *tagtable.Error {
	return &tagtable.Error{
		Reason: fmt.Sprintf("the mark at the end of its description, %q, cannot be read", description),
		Fix: fmt.Sprintf("write one that has the next fetch move the row up by a margin: UPDATE %s SET description = %s WHERE %s = %s",
			t.rows.Table, quote.String(strings.TrimSpace(text+" "+tagtable.Unmatched)), t.rows.Tag, quote.String(tag)),
	}
}

// warnUnmarked logs once why rows have no mark. After a fail-over that loses writes, ids may be issued twice
// without it.
func (t *counter) warnUnmarked(why, fix string) {
	t.warn.Do(func() {
		t.log().Warn("leafsql: ids may come twice after a fail-over that loses writes, since rows cannot be marked", "table", t.rows.Table, "why", why, "fix", fix)
	})
}

// deniesMark reports whether a statement failed because it reads or writes the column description.
func deniesMark(err error) bool {
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

// cannotMark reports whether err of a Move is caused by its mark. The store then draws without marks.
func (t *counter) cannotMark(tag string, r row, m tagtable.Move, err error) bool {
	if m.Set == "" || !deniesMark(err) {
		return false
	}
	t.unmarked.Store(true)
	t.warnUnmarked("description cannot be written: "+err.Error(), "GRANT SELECT, UPDATE on the table, and make description a varchar(256)")
	r.server = ""
	t.known.Store(tag, r)
	return true
}

// newMark returns the mark for a row that is to be added, or "" if it gets none. lossy reports that another row
// shows that the server may lack rows: the new row may be one of them, and has to begin a margin higher.
func (t *counter) newMark(ctx context.Context, c *sql.Conn) (mark string, lossy bool, err error) {
	if !t.rows.Marked || t.unmarked.Load() {
		return "", false, nil
	}
	at := t.newRows.Load()
	if at == nil || time.Since(at.asked) > newRowsFor {
		columns, _, err := t.identify(ctx, c)
		if err != nil || columns == "" {
			return "", false, err
		}
		at = &newRows{asked: time.Now()}
		err = c.QueryRowContext(ctx, tagtable.Foreign(t.identity.Load().Hash, t.rows.Table)).Scan(&at.server, &at.foreign)
		if n, _ := tagtable.ServerError(err); n == tagtable.ErrNoTable { // no row can be foreign
			err = c.QueryRowContext(ctx, "SELECT "+t.identity.Load().Hash).Scan(&at.server)
		}
		switch {
		case deniesMark(err) || err == nil && !at.server.Valid:
			return "", false, nil
		case err != nil:
			return "", false, err
		}
		t.newRows.Store(at)
	}
	return tagtable.Mark{Server: at.server.String}.String(), at.foreign > 0, nil
}

// newRows has the facts about the server that rows to be added depend on. If a row is added on another server,
// its mark does not name that server, so that the row jumps before it gives an id.
type newRows struct {
	asked   time.Time
	server  sql.NullString
	foreign int64 // number of rows that show that the server may lack rows
}

const newRowsFor = 5 * time.Second // rows are often added one after the other

const unknownVariable = 1193 // error for a system variable of another kind of server

// forget makes the store identify servers again, after an error which shows that the server has changed.
func (t *counter) forget(err error) error {
	if n, _ := tagtable.ServerError(err); n == unknownVariable && t.identity.Swap(nil) != nil {
		t.known.Clear()
		return tagtable.Answer{Err: err, Soon: true}
	}
	return err
}
