package segment

import (
	"errors"
	"fmt"
	"math/bits"
	"regexp"
	"strings"
	"time"

	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/serverid"
)

// failovers configures how the servers of a search fail over.
type failovers struct {
	servers     int  // number of servers; 0 means one
	failOvers   int  // number of changes to another primary, which lacks the events that were not replicated to it
	partitioned bool // the old primary still takes writes, from the processes that stay connected to it
	ownState    bool // a former primary keeps its data
	renamed     bool // a server that gets a copy of the primary's data has a new identity from then on
	sameName    bool // it keeps its identity, and becomes the primary again once a move by a margin was copied to it
	crashes     int  // number of restarts of the primary after which it lacks what it did not flush
	lateEvents  int  // number of times that the primary applies another server's event late
	unmarks     int  // number of times that a mark is removed by hand, after the last change of the primary
	limitMoves  bool // there may be at most as many moves by a margin as fail-overs
	foreignRow  bool // another row of the table shows that a server lacks rows
	lossless    bool // a server becomes the primary only if it has all writes
	unmarked    bool // the row has no mark at first
}

// modelServer is one server.
type modelServer struct {
	index, restarts int
	row             *modelRow // nil if there is none
	flushed         *modelRow // the row after a crash
	foreignRows     int       // number of rows of the table with another server's mark
	wasPrimary      bool      // it was the primary
	hasUnsentEvent  bool      // it has an event that no other server has
	keepsMark       bool      // which has the description
}

type modelRow struct {
	control.Row
	description string
}

func (s *modelServer) hash() string {
	if !strings.Contains(modelHash, "Uptime") {
		return fmt.Sprintf("%016d", s.index)
	}
	return fmt.Sprintf("%08d%08d", s.index, s.restarts)
}

func (r *modelRow) copy() *modelRow {
	if r == nil {
		return nil
	}
	c := *r
	return &c
}

// modelHash is the expression that a server evaluates to its own hash.
var modelHash = serverid.MySQL.Hash

// setUpServers sets up the servers.
func (w *world) setUpServers() {
	for n := range max(w.failovers.servers, 1) {
		s := &modelServer{index: n}
		if !w.create {
			// The row is marked before anything can be lost: see "What a fail-over may still cost".
			s.row = &modelRow{control.Row{MaxID: 1, Step: modelStep}, fmt.Sprintf("leafsql@%s 0 0", (&modelServer{}).hash())}
		}
		if w.foreignRow && n > 0 {
			s.foreignRows = 1
		}
		s.flushed = s.row.copy()
		w.servers = append(w.servers, s)
	}
	if w.create {
		w.table[3] = true
	}
	for _, s := range w.servers {
		if w.unmarked || len(w.servers) == 1 && w.crashes == 0 && !w.create {
			s.row.description = "orders"
		}
	}
}

// random makes each margin end at a different id, even if any number of others are lost. Every second margin is
// smaller than the previous one.
func (w *world) random(int64) int64 {
	w.margins++
	return 1000 << (w.margins ^ 1)
}

var (
	updateText = regexp.MustCompile(`^UPDATE .leaf_alloc. SET max_id = LAST_INSERT_ID\((?:GREATEST\(max_id, (\d+)\)|max_id) \+ (\d+)\)` +
		`(, description = description|, description = CONCAT_WS\(' ', NULLIF\(description, ''\), '(leafsql@[^']*)'\)|, description = REPLACE\(description, '([^']*)', '([^']*)'\))?` +
		` WHERE biz_tag = _utf8mb4 X'61'`)
	conditionText = regexp.MustCompile(` AND (?:(step BETWEEN 1 AND|max_id >=|max_id <=|max_id <) (\d+)` +
		`|(LOCATE)\((?:CONCAT\('leafsql@', '([^']*)'\)|'([^']*)'), (?:description|CONVERT\(SUBSTRING\(description, LOCATE\('leafsql@', description\)\) USING utf8mb4\))\) > 0` +
		`|(COALESCE)\(LOCATE\('leafsql@', description\), 0\) = 0 AND COALESCE\(CHAR_LENGTH\(description\), 0\) <= 200` +
		`|'([0-9a-f]*)' = '([0-9a-f]*)')`)
	ensureText = regexp.MustCompile(`^INSERT INTO .leaf_alloc. .* VALUES \(_utf8mb4 X'61', (\d+), (\d+)(?:, '([^']*)')?\)`)
)

// update executes an UPDATE of the row.
func (w *world) update(s *statement, server *modelServer, text string) {
	row := server.row
	if row == nil {
		return
	}
	m := updateText.FindStringSubmatch(text)
	rest := text[len(m[0]):]
	if left := conditionText.ReplaceAllString(rest, ""); left != "" {
		panic("the model does not know " + left)
	}
	for _, c := range conditionText.FindAllStringSubmatch(rest, -1) {
		v, fits := number(c[2]), true
		switch {
		case c[1] == "step BETWEEN 1 AND":
			fits = row.Step <= v
		case c[1] == "max_id >=":
			fits = row.MaxID >= v
		case c[1] == "max_id <=":
			fits = row.MaxID <= v
		case c[1] == "max_id <":
			fits = row.MaxID < v
		case c[3] != "" && c[4] != "":
			fits = strings.Contains(row.description, "leafsql@"+c[4])
		case c[3] != "":
			fits = strings.Contains(row.description, c[5])
		case c[6] != "":
			fits = !strings.Contains(row.description, "leafsql@")
		default:
			fits = c[7] == c[8]
		}
		if !fits {
			return
		}
	}
	if mark := m[4] + m[6]; mark != "" && !strings.Contains(mark, server.hash()) {
		w.recordViolation("server %d writes the mark %q, so that the next fetch moves the row once more", server.index, mark)
	}
	if m[6] != "" && strings.Contains(row.description, server.hash()) && !strings.Contains(rest, " AND max_id < ") {
		w.recordViolation("server %d moves a row by a margin that has its mark", server.index)
	}
	start := max(row.MaxID, number(m[1]))
	row.MaxID = start + number(m[2])
	s.res = result{row.MaxID, 1}
	switch {
	case m[4] != "":
		row.description = strings.TrimSpace(row.description + " " + m[4])
	case m[5] != "":
		row.description = strings.ReplaceAll(row.description, m[5], m[6])
	}
	server.hasUnsentEvent, server.keepsMark = true, m[3] != ""
	if number(m[2]) > 1<<30 {
		w.jumped++
	}
	if w.rollbacks > 0 || len(w.servers) > 1 || server.restarts > 0 {
		return
	}
	if start <= w.highestSkipped {
		w.recordViolation("the range [%d, %d) is handed out after %d was skipped", start, row.MaxID, w.highestSkipped)
	}
	for k := range w.table {
		if start <= k && k < row.MaxID {
			w.recordViolation("the range [%d, %d) is handed out while a row has the key %d", start, row.MaxID, k)
		}
	}
}

// failoverActions lists the possible actions of the servers.
func (w *world) failoverActions() (all []action) {
	p := w.servers[w.primary]
	for n, s := range w.servers {
		if n == w.primary {
			continue
		}
		if equalRows(p.row, s.row) {
			// nothing to replicate
		} else if w.failOvers > 0 && (!w.ownState || !s.wasPrimary) {
			all = append(all, action{kind: "replicate", i: n})
		}
		if w.failOvers > 0 {
			if w.partitioned {
				for i, c := range w.procs {
					if c.server == w.primary {
						all = append(all, action{kind: "moves", i: i, key: int64(n)})
					}
				}
			} else if w.lossless && !equalRows(p.row, s.row) {
				// waits until all is replicated
			} else if !w.sameName || !s.wasPrimary || !strings.Contains(s.row.description, s.hash()) {
				all = append(all, action{kind: "fails", i: n})
			}
		}
		if w.lateEvents > 0 && p.index != 0 && s.hasUnsentEvent && !equalRows(p.row, s.row) {
			all = append(all, action{kind: "late", i: n})
		}
	}
	if w.crashes > 0 {
		if !equalRows(p.row, p.flushed) {
			all = append(all, action{kind: "flush"})
		}
		all = append(all, action{kind: "crash"})
	}
	if w.unmarks > 0 && w.failOvers == 0 && p.row != nil && strings.Contains(p.row.description, p.hash()) {
		all = append(all, action{kind: "unmark"})
	}
	return all
}

func equalRows(a, b *modelRow) bool { return a == nil && b == nil || a != nil && b != nil && *a == *b }

func (w *world) applyFailover(a action) {
	p := w.servers[w.primary]
	switch a.kind {
	case "replicate":
		s := w.servers[a.i]
		s.row, s.hasUnsentEvent, p.hasUnsentEvent = p.row.copy(), false, false
		if w.renamed && s.wasPrimary {
			s.restarts++
		}
	case "fails":
		w.failOvers--
		w.allowed++
		p.wasPrimary = true
		w.primary = a.i
		w.disconnect(func(c *process) bool { c.server = a.i; return true })
	case "moves": // one process at a time
		w.allowed++
		w.disconnect(func(c *process) bool {
			if c == w.procs[a.i] {
				c.server = int(a.key)
			}
			return c == w.procs[a.i]
		})
	case "late": // values are absolute, and the row is found by its key
		w.lateEvents--
		w.allowed++
		from := w.servers[a.i]
		if p.row = p.row.copy(); from.keepsMark {
			p.row.description = from.row.description
		}
		p.row.MaxID = from.row.MaxID
	case "flush":
		p.flushed = p.row.copy()
	case "crash":
		w.crashes--
		w.allowed++
		p.row, p.restarts = p.flushed.copy(), p.restarts+1
		w.disconnect(func(*process) bool { return true })
	case "unmark":
		w.unmarks--
		w.edited = true
		p.row.description = ""
	}
}

// disconnect breaks the connections of processes. Statements that were sent and not executed are lost.
func (w *world) disconnect(broken func(*process) bool) {
	hit := make(map[*process]bool)
	for _, p := range w.procs {
		hit[p] = broken(p)
	}
	rest := w.pending[:0]
	for _, s := range w.pending {
		switch {
		case s.p.dead && !hit[s.p]:
			// an orphan on a server that is gone
		case hit[s.p]:
			s.done <- errors.New("the connection broke")
		default:
			rest = append(rest, s)
		}
	}
	w.pending = rest
}

// checkInvariants checks for faults other than ids that are issued twice.
func (w *world) checkInvariants() {
	if w.limitMoves && w.jumped > w.allowed {
		w.recordViolation("%d moves by a margin, where %d would do", w.jumped, w.allowed)
	}
	for _, p := range w.procs {
		p.gen.mu.Lock()
		_, back := errors.AsType[*RolledBackError](p.gen.failure)
		p.gen.mu.Unlock()
		if back && len(w.servers) > 1 && !w.edited {
			w.recordViolation("process %d is refused until somebody raises the row", p.index)
		}
	}
}

var (
	times    = regexp.MustCompile(`(leafsql@[0-9a-f]{16} \d+) \d+`)
	markTime = regexp.MustCompile(`leafsql@\w+ [1-9]\d* (\d+)`)
)

// withoutTimes removes times from a state, except for their relevant differences.
func withoutTimes(text string) string { return times.ReplaceAllString(text, "$1") }

func (w *world) serverStates() string {
	var b strings.Builder
	fmt.Fprint(&b, w.primary, w.failOvers, w.crashes, w.lateEvents, w.unmarks, w.margins, w.jumped-w.allowed)
	for _, s := range w.servers {
		fmt.Fprint(&b, " ", s.restarts, s.wasPrimary, s.hasUnsentEvent, s.keepsMark)
		for _, r := range []*modelRow{s.row, s.flushed} {
			if r == nil {
				fmt.Fprint(&b, " -")
				continue
			}
			since := int64(0)
			if m := markTime.FindStringSubmatch(r.description); m != nil {
				since = int64(bits.Len64(uint64(max(time.Now().Unix()-number(m[1]), 0))))
			}
			fmt.Fprint(&b, " ", r.Row, withoutTimes(r.description), since)
		}
	}
	return b.String()
}

func (w *world) markState(p *process) string {
	v, known := p.alloc.knownRows.Load("a")
	if !known {
		return "-"
	}
	r := v.(row)
	met, _ := p.alloc.markedServers.Load("a")
	fetched, ok := p.alloc.fetchedAt.Load("a")
	late := ok && time.Since(fetched.(time.Time)) > 1500*time.Millisecond
	return fmt.Sprint(r.next, withoutTimes(r.mark.String()), r.server, r.behind, met, late)
}
