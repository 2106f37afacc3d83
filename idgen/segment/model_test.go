package segment

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment/internal/tagrow"
)

// The model searches all interleavings of a few processes on one table and one row of
// leaf_alloc. A process is the production code, Generator and AllocStore on database/sql,
// with what a driver does around them; the server behind it reads the texts of their
// statements, and carries them out and answers when the search says so. A schedule is a
// list of actions. Each state is reached by running its schedule anew, and left aside if
// another schedule led there before.

var (
	modelStates = flag.Int("model.states", 2000, "states that the model visits in each of its cases; 0: all")
	modelWalks  = flag.Int("model.walks", 100, "random walks in each case of the model that fails over")
	modelCase   = flag.String("model.case", "", "run this case of the model alone")
)

// model is what a search allows.
type model struct {
	procs    int
	ops      int     // INSERTs, in all
	keys     []int64 // that rows may bring; others get their ids
	cuts     int     // connections that break
	restarts int     // processes that end and are started again
	rolls    int     // times that the row goes back to its beginning
	create   bool    // the row is not there at first, but a row with key 3 is
	looks    bool    // looks at the row take time as well
	opened   int     // INSERTs, of ops, for which a pool looks at the table first
	plain    int     // times that a client without leafsql takes the next keys, and moves the row
	giveBack bool    // a process that ends gives back what it has not used
	failovers
}

// world is the server with its clients.
type world struct {
	model
	mu      sync.Mutex
	servers []*modelServer
	primary int            // of servers, which processes connect to
	jumped  int            // moves by a margin
	allowed int            // and what can have asked for one
	margins int            // that were drawn
	edited  bool           // somebody has deleted a mark
	table   map[int64]bool // its keys
	issued  map[int64]bool // by whichever process
	passed  int64          // the highest key that any process skipped
	foreign map[int64]bool // keys that came from a client without leafsql
	procs   []*process
	pending []*statement
	wrong   string // what must not happen, and did
}

// process is one client.
type process struct {
	w       *world
	n       int
	db      *sqlx.DB
	alloc   *AllocStore
	gen     *Generator
	stage   int           // of seeToTheRow
	flights []*flight     // under way
	turn    chan struct{} // taken by who sees to the row
	ready   bool          // the row was seen to
	ops     []*op         // under way
	own     map[int64]bool
	skipped int64
	dead    bool
	at      int             // the server that it is connected to
	ctx     context.Context // ends with it
	kill    context.CancelFunc
}

// flight is a request to the store.
type flight struct {
	q    Request
	sent int // statements for it
}

type flightKey struct{} // of a context: its *flight

// op is an INSERT.
type op struct {
	key     int64          // that the row brings; 0: it gets one
	above   int64          // skipped before the INSERT began
	opens   bool           // a pool looks at the table
	foreign map[int64]bool // where it does: world.foreign then
	at      string
}

// statement is on its way to the server, or the answer on its way back.
type statement struct {
	p    *process
	text string
	at   int // the server that it was sent to
	ran  bool
	rows [][]driver.Value
	res  result
	done chan error
}

type result struct{ id, n int64 }

func (r result) LastInsertId() (int64, error) { return r.id, nil }
func (r result) RowsAffected() (int64, error) { return r.n, nil }

const modelStep = 2

func newWorld(m model) *world {
	w := &world{model: m, table: map[int64]bool{}, issued: map[int64]bool{}, foreign: map[int64]bool{}}
	w.start0()
	for n := range m.procs {
		w.procs = append(w.procs, w.start(n))
	}
	w.model.procs = 0
	return w
}

func (w *world) start(n int) *process {
	p := &process{w: w, n: n, at: w.primary, turn: make(chan struct{}, 1), own: map[int64]bool{}}
	p.ctx, p.kill = context.WithCancel(context.Background())
	p.db = sqlx.NewDb(sql.OpenDB(p), "mysql")
	p.alloc = NewAllocStore(p.db, "leaf_alloc")
	p.alloc.Logger = slog.New(slog.DiscardHandler)
	p.alloc.random = w.random
	p.gen = New(p, "a", &Options{Timeout: time.Hour, Logger: p.alloc.Logger})
	p.ready = !w.create
	return p
}

// Fetch implements Store.
func (p *process) Fetch(ctx context.Context, q Request) (Range, error) {
	f := &flight{q: q}
	p.w.mu.Lock()
	p.flights = append(p.flights, f)
	p.w.mu.Unlock()
	defer func() {
		p.w.mu.Lock()
		defer p.w.mu.Unlock()
		p.flights = slices.DeleteFunc(p.flights, func(x *flight) bool { return x == f })
	}()
	return p.alloc.Fetch(context.WithValue(ctx, flightKey{}, f), q)
}

func (p *process) end() {
	p.w.mu.Lock()
	p.dead = true
	p.w.mu.Unlock()
	p.kill()
	p.gen.Close()
	p.db.Close()
}

// insert is what a driver does for one row.
func (p *process) insert(o *op) {
	err := p.do(o)
	p.w.mu.Lock()
	defer p.w.mu.Unlock()
	p.ops = slices.DeleteFunc(p.ops, func(x *op) bool { return x == o })
	_ = err // the row is not there, that is all
}

func (p *process) do(o *op) error {
	ctx := p.ctx
	o.at = "turn"
	select {
	case p.turn <- struct{}{}:
	case <-ctx.Done():
		return ctx.Err()
	}
	o.at = "row"
	err := p.seeToTheRow(ctx)
	<-p.turn
	if err != nil {
		return err
	}
	if o.opens {
		o.at = "opens"
		if err := p.open(ctx); err != nil {
			return err
		}
	}
	k := o.key
	if k > 0 {
		o.at = "skip"
		if err := p.gen.Skip(ctx, k); err != nil {
			return err
		}
		p.w.skippedBy(p, k)
	} else {
		o.at = "next"
		if k, err = p.gen.Next(ctx, 1); err != nil {
			return err
		}
		p.w.issuedTo(p, o, k)
	}
	o.at = fmt.Sprint("insert ", k)
	_, err = p.db.ExecContext(ctx, fmt.Sprint("INSERT INTO t VALUES ", k))
	return err
}

// seeToTheRow creates the row and moves it above the keys that are in use.
func (p *process) seeToTheRow(ctx context.Context) error {
	if p.ready {
		return nil
	}
	p.stage = 1
	var highest int64
	if err := p.db.GetContext(ctx, &highest, "SELECT MAX(id) FROM t"); err != nil {
		return err
	}
	p.stage = 2
	if err := p.alloc.Ensure(ctx, "a", highest+1, modelStep); err != nil {
		return err
	}
	p.stage = 3
	if err := p.db.GetContext(ctx, &highest, "SELECT MAX(id) FROM t"); err != nil {
		return err
	}
	p.stage = 4
	switch r, err := p.gen.Look(ctx); {
	case err != nil:
		return err
	case r.Start <= highest && r.Start > 1: // others may hold ranges above the keys
		highest += p.alloc.margin(math.MaxInt64 - highest)
	}
	if err := p.gen.Skip(ctx, highest); err != nil {
		return err
	}
	p.ready = true
	return nil
}

// open is what a driver does when it comes to a table that feeds on the generator already.
func (p *process) open(ctx context.Context) error {
	highest := p.w.highest(math.MaxInt64)
	r, err := p.gen.Look(ctx)
	if err != nil {
		return err
	}
	if r.Start <= highest {
		return p.gen.Skip(ctx, highest)
	}
	return p.gen.DropInUse(highest, func(limit int64) (int64, error) { return p.w.highest(limit), nil })
}

// highest is the highest key below a limit.
func (w *world) highest(limit int64) (highest int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for k := range w.table {
		if k < limit {
			highest = max(highest, k)
		}
	}
	return highest
}

func (w *world) violated(format string, args ...any) {
	if w.wrong == "" {
		w.wrong = fmt.Sprintf(format, args...)
	}
}

func (w *world) skippedBy(p *process, k int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	p.skipped, w.passed = max(p.skipped, k), max(w.passed, k)
	if row := w.servers[p.at].row; w.rolls == 0 && len(w.servers) == 1 && row.MaxID <= k {
		w.violated("process %d has skipped %d, and the row stands at %d", p.n, k, row.MaxID)
	}
}

func (w *world) issuedTo(p *process, o *op, id int64) {
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case p.own[id]:
		w.violated("process %d issues %d twice", p.n, id)
	case w.issued[id] && w.rolls == 0:
		w.violated("process %d issues %d, which another one has issued", p.n, id)
	case o.foreign[id]:
		w.violated("process %d issues %d for a pool that was opened when a row had it", p.n, id)
	case id <= o.above:
		w.violated("process %d issues %d after it has skipped %d", p.n, id, o.above)
	}
	p.own[id], w.issued[id] = true, true
}

// The server's side.

// run carries a statement out.
func (w *world) run(s *statement) {
	s.ran = true
	server := w.servers[s.at]
	text := strings.ReplaceAll(s.text, modelHash, "'"+server.hash()+"'")
	if updated.MatchString(text) {
		w.update(s, server, text)
		return
	}
	if m := ensured.FindStringSubmatch(text); m != nil {
		if server.row == nil {
			server.row = &modelRow{Row: Row{MaxID: number(m[1]), Step: number(m[2])}, description: m[3]}
		}
		return
	}
	switch {
	case strings.HasPrefix(s.text, readsRow):
		if server.row != nil {
			s.rows = [][]driver.Value{{server.row.MaxID, server.row.Step, server.row.description, server.hash(), time.Now().Unix(), int64(1)}}
		}
	case strings.HasPrefix(s.text, "SHOW GLOBAL VARIABLES"):
		for _, name := range []string{"server_uuid", "server_id", "hostname", "port", "innodb_flush_log_at_trx_commit", "sync_binlog", "log_bin"} {
			s.rows = append(s.rows, []driver.Value{name, "1"})
		}
	case text == tagrow.Foreign("'"+server.hash()+"'", "`leaf_alloc`"):
		s.rows = [][]driver.Value{{server.hash(), int64(server.others)}}
	case s.text == "SELECT MAX(id) FROM t":
		s.rows = [][]driver.Value{{slices.Max(append(slices.Collect(maps.Keys(w.table)), 0))}}
	case strings.HasPrefix(s.text, "INSERT INTO t VALUES "):
		w.table[number(strings.TrimPrefix(s.text, "INSERT INTO t VALUES "))] = true // or error 1062
	default:
		panic("the model does not know " + s.text)
	}
}

func number(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// send waits until the search has a statement carried out and answered.
func (p *process) send(ctx context.Context, text string) (*statement, error) {
	s := &statement{p: p, text: text, at: p.at, done: make(chan error, 1)}
	switch text {
	case "START TRANSACTION", tagrow.Commit, tagrow.Rollback:
		return s, ctx.Err()
	}
	p.w.mu.Lock()
	if p.dead {
		p.w.mu.Unlock()
		return nil, errors.New("the process is over")
	}
	if at := strings.HasPrefix(text, readsRow) || strings.HasPrefix(text, "SHOW"); !p.w.create && !p.w.looks && !strings.HasPrefix(text, "UPDATE") || at && !p.w.looks {
		p.w.run(s)
		p.w.mu.Unlock()
		return s, ctx.Err()
	}
	p.w.pending = append(p.w.pending, s)
	if f, ok := ctx.Value(flightKey{}).(*flight); ok {
		f.sent++
	}
	p.w.mu.Unlock()
	select {
	case err := <-s.done:
		return s, err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// process is its own driver.Connector and driver.Conn.

func (p *process) Connect(context.Context) (driver.Conn, error) { return modelConn{p}, nil }
func (p *process) Driver() driver.Driver                        { return nil }

type modelConn struct{ *process }

func (modelConn) Prepare(string) (driver.Stmt, error) { panic("prepared") }
func (modelConn) Begin() (driver.Tx, error)           { panic("begun") }
func (modelConn) Close() error                        { return nil }

func (c modelConn) ExecContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	s, err := c.send(ctx, text)
	if err != nil {
		return nil, err
	}
	return s.res, nil
}

func (c modelConn) QueryContext(ctx context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	s, err := c.send(ctx, text)
	return &modelRows{s}, err
}

// readsRow begins the statement that reads a tag's row.
const readsRow = "SELECT *, "

type modelRows struct{ s *statement }

func (r *modelRows) Columns() []string {
	switch {
	case strings.HasPrefix(r.s.text, readsRow):
		return []string{"max_id", "step", "description", "leafsql@server", "leafsql@now", "@@autocommit"}
	case strings.Contains(r.s.text, "SHOW") || strings.Contains(r.s.text, "SELECT COUNT"):
		return []string{"name", "value"}
	}
	return []string{"highest"}
}
func (r *modelRows) Close() error { return nil }
func (r *modelRows) Next(dest []driver.Value) error {
	if len(r.s.rows) == 0 {
		return io.EOF
	}
	copy(dest, r.s.rows[0])
	r.s.rows = r.s.rows[1:]
	return nil
}

// The search.

// action is one step of a schedule.
type action struct {
	kind string // see apply
	i    int    // a process or a pending statement
	key  int64
}

func (a action) String() string { return strings.TrimSpace(fmt.Sprint(a.kind, " ", a.i, " ", a.key)) }

// actions lists what can happen next.
func (w *world) actions() (all []action) {
	quiet := false // somebody waits, for nothing but time
	for i, s := range w.pending {
		switch {
		case s.p.dead:
			all = append(all, action{kind: "orphan", i: i})
			continue
		case strings.HasPrefix(s.text, "UPDATE") && !s.ran:
			all = append(all, action{kind: "run", i: i})
		}
		all = append(all, action{kind: "answer", i: i})
		if w.cuts > 0 {
			all = append(all, action{kind: "cut", i: i})
		}
	}
	for i, p := range w.procs {
		if w.ops > 0 && len(p.ops) < 2 {
			all = append(all, action{kind: "next", i: i})
			for _, k := range w.keys {
				all = append(all, action{kind: "key", i: i, key: k})
			}
			if w.opened > 0 {
				all = append(all, action{kind: "open", i: i})
			}
		}
		if w.restarts > 0 {
			all = append(all, action{kind: "restart", i: i})
		}
		waits := len(p.ops) > 0 || p.gen.retry != nil
		quiet = quiet || waits && !slices.ContainsFunc(w.pending, func(s *statement) bool { return s.p == p })
	}
	if quiet {
		all = append(all, action{kind: "time"})
	}
	if w.plain > 0 {
		all = append(all, action{kind: "plain"})
	}
	if w.rolls > 1 { // the last one marks that there were any
		all = append(all, action{kind: "roll"})
	}
	return append(all, w.failoverActions()...)
}

func (w *world) apply(a action) {
	switch a.kind {
	case "next", "key", "open": // an INSERT begins
		w.ops--
		p := w.procs[a.i]
		o := &op{key: a.key, above: p.skipped}
		if a.kind == "open" {
			w.opened--
			o.opens, o.foreign = true, maps.Clone(w.foreign)
		}
		p.ops = append(p.ops, o)
		go p.insert(o)
	case "run": // the server carries a statement out
		w.run(w.pending[a.i])
	case "answer": // the answer arrives
		s := w.pending[a.i]
		if !s.ran {
			w.run(s)
		}
		w.pending = slices.Delete(w.pending, a.i, a.i+1)
		s.done <- nil
	case "cut": // the connection breaks
		w.cuts--
		s := w.pending[a.i]
		w.pending = slices.Delete(w.pending, a.i, a.i+1)
		s.done <- errors.New("the connection broke")
	case "orphan": // the server carries out what a process sent before its end
		s := w.pending[a.i]
		w.pending = slices.Delete(w.pending, a.i, a.i+1)
		w.run(s)
	case "restart": // a process is killed, and another one started
		w.restarts--
		p := w.procs[a.i]
		if w.giveBack {
			w.givenBack(p.gen)
		}
		p.end()
		w.pending = slices.DeleteFunc(w.pending, func(s *statement) bool { return s.p == p && s.ran })
		w.procs[a.i] = w.start(a.i)
	case "time": // pauses are over
		time.Sleep(2 * time.Second)
	case "plain": // from AUTO_INCREMENT up to where the row stands, and forward again
		w.plain--
		row := w.servers[w.primary].row
		for k := w.highest(math.MaxInt64) + 1; k <= row.MaxID; k++ {
			w.table[k], w.foreign[k] = true, true
		}
		row.MaxID = w.highest(math.MaxInt64) + 1
	case "roll": // an old backup is restored
		w.rolls--
		w.servers[w.primary].row.MaxID = 1
	default:
		w.applyFailover(a)
	}
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.judge()
	slices.SortStableFunc(w.pending, func(a, b *statement) int {
		return strings.Compare(fmt.Sprint(a.p.n, a.p.dead, a.text), fmt.Sprint(b.p.n, b.p.dead, b.text))
	})
}

// givenBack lowers the row to the first id that a generator has not issued, if the row
// still stands at the end of its last range.
func (w *world) givenBack(g *Generator) {
	s := g.cur.Load()
	if first := s.base + s.taken() + 1; len(g.queue) == 0 && s.size > 0 && w.servers[w.primary].row.MaxID == s.end() {
		w.servers[w.primary].row.MaxID = first
	}
}

// state tells states apart.
func (w *world) state() string {
	var b strings.Builder
	fmt.Fprintln(&b, w.stateOfServers(), slices.Sorted(maps.Keys(w.table)), slices.Sorted(maps.Keys(w.issued)), w.passed, slices.Sorted(maps.Keys(w.foreign)), w.ops, w.opened, w.plain, w.cuts, w.restarts, w.rolls)
	var procs []string // in an order of their own: which is which does not matter
	for _, p := range w.procs {
		procs = append(procs, w.stateOf(p))
	}
	slices.Sort(procs)
	fmt.Fprintln(&b, procs)
	for _, s := range w.pending {
		if s.p.dead {
			fmt.Fprintln(&b, withoutTimes(s.text), s.at)
		}
	}
	return b.String()
}

func (w *world) stateOf(p *process) string {
	var b strings.Builder
	g, s := p.gen, p.gen.cur.Load()
	fmt.Fprintln(&b, p.ready, p.stage, p.skipped, p.at, w.stateOfMark(p), s.base, s.size, s.taken(), s.mark.Load(), g.queue, g.seen, g.top, g.floor, g.least, g.fetching, g.retry != nil, g.failure != nil,
		g.pace.row, g.pace.begun, g.pace.step, g.pace.skipped, g.pace.need(), g.pace.small(time.Now()))
	var flights []string
	for _, f := range p.flights {
		flights = append(flights, fmt.Sprint(*f))
	}
	slices.Sort(flights)
	fmt.Fprintln(&b, flights)
	for _, w := range g.waiters {
		fmt.Fprint(&b, " ", w.n, w.key, w.gone)
	}
	var ops []string
	for _, o := range p.ops {
		ops = append(ops, fmt.Sprint(*o))
	}
	slices.Sort(ops)
	fmt.Fprintln(&b, ops)
	if w.rolls > 0 {
		fmt.Fprintln(&b, slices.Sorted(maps.Keys(p.own)))
	}
	for _, s := range w.pending {
		if s.p == p {
			fmt.Fprintln(&b, withoutTimes(s.text), s.at, s.ran, s.res)
		}
	}
	return b.String()
}

// replay runs a schedule.
func replay(m model, schedule []action) *world {
	w := newWorld(m)
	for _, a := range schedule {
		w.apply(a)
		if w.wrong != "" {
			break
		}
	}
	return w
}

func (w *world) end() {
	for _, p := range w.procs {
		p.end()
	}
	synctest.Wait()
}

// search visits states, the ones with the shortest schedules first, and returns the
// first schedule that leads to a violation. depth is how long the schedules were of which
// all were tried.
func search(m model, states int) (wrong string, schedule []action, depth, visited int) {
	type node struct {
		schedule []action
		next     []action
	}
	w := replay(m, nil)
	frontier := []node{{nil, w.actions()}}
	w.end()
	seen := map[string]bool{}
	for ; len(frontier) > 0; depth++ {
		var next []node
		for _, n := range frontier {
			for _, a := range n.next {
				longer := append(slices.Clip(n.schedule), a)
				w := replay(m, longer)
				state, todo := w.state(), w.actions()
				w.end()
				switch {
				case w.wrong != "":
					return w.wrong, longer, depth, len(seen)
				case !seen[state] && states > 0 && len(seen) == states:
					return "", nil, depth, len(seen)
				case !seen[state]:
					seen[state] = true
					next = append(next, node{longer, todo})
				}
			}
		}
		frontier = next
	}
	return "", nil, depth, len(seen)
}

var modelCases = map[string]model{
	"keys":        {procs: 2, ops: 4, keys: []int64{2, 5}},
	"restarts":    {procs: 2, ops: 4, keys: []int64{4}, restarts: 2},
	"cuts":        {procs: 2, ops: 3, keys: []int64{4}, cuts: 2},
	"looks":       {procs: 2, ops: 3, keys: []int64{4}, looks: true},
	"creation":    {procs: 2, ops: 3, keys: []int64{5}, create: true, restarts: 1},
	"goes back":   {procs: 1, ops: 4, keys: []int64{4}, rolls: 2, restarts: 1},
	"one process": {procs: 1, ops: 5, keys: []int64{3, 6}, cuts: 1},
	"three":       {procs: 3, ops: 4, keys: []int64{3}},
	"opens":       {procs: 2, ops: 4, keys: []int64{4}, looks: true, opened: 2},
	"way back":    {procs: 1, ops: 5, opened: 2, plain: 1},

	"fail-over":             {procs: 2, ops: 4, failovers: failovers{servers: 2, fails: 1, counted: true}},
	"fail-over, cuts":       {procs: 2, ops: 3, cuts: 1, restarts: 1, failovers: failovers{servers: 2, fails: 1}},
	"fail-over, keys":       {procs: 2, ops: 3, keys: []int64{4}, failovers: failovers{servers: 2, fails: 1}},
	"fail-over, three":      {procs: 3, ops: 4, failovers: failovers{servers: 2, fails: 1, counted: true}},
	"A to B to C":           {procs: 2, ops: 4, failovers: failovers{servers: 3, fails: 2}},
	"back to its own state": {procs: 2, ops: 5, failovers: failovers{servers: 2, fails: 2, ownState: true}},
	"back as a copy":        {procs: 2, ops: 5, failovers: failovers{servers: 2, fails: 2, renamed: true}},
	"back as a replica":     {procs: 2, ops: 5, failovers: failovers{servers: 2, fails: 2, sameName: true}},
	"partition":             {procs: 2, ops: 5, failovers: failovers{servers: 2, fails: 1, apart: true}},
	"crash":                 {procs: 2, ops: 4, restarts: 1, failovers: failovers{servers: 1, crashes: 2}},
	"late events":           {procs: 2, ops: 4, failovers: failovers{servers: 2, fails: 1, late: 1}},
	"fail-over, creation":   {procs: 2, ops: 3, create: true, failovers: failovers{servers: 2, fails: 1, othersThere: true}},
	"mark deleted":          {procs: 2, ops: 4, restarts: 1, failovers: failovers{servers: 2, fails: 1, unmarks: 1}},
}

func TestModel(t *testing.T) {
	for name, m := range modelCases {
		if *modelCase != "" && *modelCase != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				states := *modelStates
				if raceEnabled {
					states /= 20 // more are visited beside, without the race detector
				}
				wrong, schedule, depth, visited := search(m, states)
				if wrong != "" {
					t.Fatalf("after %d states: %s\n%v", visited, wrong, schedule)
				}
				t.Logf("%d states, all schedules of %d actions", visited, depth)
			})
		})
	}
}

// What must not be done is found: giving ranges back when a process ends.
func TestModelFinds(t *testing.T) {
	for name, m := range map[string]model{
		"ranges that are given back": {procs: 2, ops: 4, keys: []int64{2}, restarts: 1, giveBack: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrong, schedule, _, visited := search(m, 0)
				if wrong == "" {
					t.Fatal("nothing in", visited, "states")
				}
				t.Logf("after %d states: %s\n%v", visited, wrong, schedule)
			})
		})
	}
}
