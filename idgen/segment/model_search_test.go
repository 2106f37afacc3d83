package segment

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"testing/synctest"
	"time"
)

// action is one step of a schedule.
type action struct {
	kind string // see apply
	i    int    // index of a process or of a pending statement
	key  int64
}

func (a action) String() string { return strings.TrimSpace(fmt.Sprint(a.kind, " ", a.i, " ", a.key)) }

// actions lists the possible next actions.
func (w *world) actions() (all []action) {
	quiet := false // an operation waits only for time to pass
	for i, s := range w.pending {
		switch {
		case s.p.dead:
			all = append(all, action{kind: "orphan", i: i})
			continue
		case strings.HasPrefix(s.text, "UPDATE") && !s.executed:
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
			if w.tableOpens > 0 {
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
	if w.plainWrites > 0 {
		all = append(all, action{kind: "plain"})
	}
	if w.rollbacks > 1 { // the last roll marks that there were any
		all = append(all, action{kind: "roll"})
	}
	return append(all, w.failoverActions()...)
}

func (w *world) apply(a action) {
	switch a.kind {
	case "next", "key", "open": // an INSERT begins
		w.ops--
		p := w.procs[a.i]
		o := &insertOp{key: a.key, skippedBefore: p.skipped}
		if a.kind == "open" {
			w.tableOpens--
			o.opensTable, o.foreign = true, maps.Clone(w.foreign)
		}
		p.ops = append(p.ops, o)
		go p.insert(o)
	case "run": // the server executes a statement
		w.execute(w.pending[a.i])
	case "answer": // the answer arrives
		s := w.pending[a.i]
		if !s.executed {
			w.execute(s)
		}
		w.pending = slices.Delete(w.pending, a.i, a.i+1)
		s.done <- nil
	case "cut": // the connection breaks
		w.cuts--
		s := w.pending[a.i]
		w.pending = slices.Delete(w.pending, a.i, a.i+1)
		s.done <- errors.New("the connection broke")
	case "orphan": // the server executes a statement of a process that has ended
		s := w.pending[a.i]
		w.pending = slices.Delete(w.pending, a.i, a.i+1)
		w.execute(s)
	case "restart": // a process is killed, and another one started
		w.restarts--
		p := w.procs[a.i]
		if w.giveBack {
			w.lowerRow(p.gen)
		}
		p.end()
		w.pending = slices.DeleteFunc(w.pending, func(s *statement) bool { return s.p == p && s.executed })
		w.procs[a.i] = w.start(a.i)
	case "time": // pauses have passed
		time.Sleep(2 * time.Second)
	case "plain": // a client without leafsql inserts from AUTO_INCREMENT up to the row's next id, and moves the row
		w.plainWrites--
		row := w.servers[w.primary].row
		for k := w.highest(math.MaxInt64) + 1; k <= row.MaxID; k++ {
			w.table[k], w.foreign[k] = true, true
		}
		row.MaxID = w.highest(math.MaxInt64) + 1
	case "roll": // an old backup is restored
		w.rollbacks--
		w.servers[w.primary].row.MaxID = 1
	default:
		w.applyFailover(a)
	}
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkInvariants()
	slices.SortStableFunc(w.pending, func(a, b *statement) int {
		return strings.Compare(fmt.Sprint(a.p.index, a.p.dead, a.text), fmt.Sprint(b.p.index, b.p.dead, b.text))
	})
}

// lowerRow lowers the row to the first id that a generator has not issued, if the row is still at the end of
// its last range.
func (w *world) lowerRow(g *Generator) {
	s := g.cur.Load()
	if first := s.base + s.taken() + 1; len(g.queue) == 0 && s.size > 0 && w.servers[w.primary].row.MaxID == s.end() {
		w.servers[w.primary].row.MaxID = first
	}
}

// state returns a text that differs for different states.
func (w *world) state() string {
	var b strings.Builder
	fmt.Fprintln(&b, w.serverStates(), slices.Sorted(maps.Keys(w.table)), slices.Sorted(maps.Keys(w.issued)), w.highestSkipped, slices.Sorted(maps.Keys(w.foreign)), w.ops, w.tableOpens, w.plainWrites, w.cuts, w.restarts, w.rollbacks)
	var procs []string // sorted, since the order of the processes does not matter
	for _, p := range w.procs {
		procs = append(procs, w.processState(p))
	}
	slices.Sort(procs)
	fmt.Fprintln(&b, procs)
	for _, s := range w.pending {
		if s.p.dead {
			fmt.Fprintln(&b, withoutTimes(s.text), s.server)
		}
	}
	return b.String()
}

func (w *world) processState(p *process) string {
	var b strings.Builder
	g, s := p.gen, p.gen.cur.Load()
	fmt.Fprintln(&b, p.rowReady, p.prepareStage, p.skipped, p.server, w.markState(p), s.base, s.size, s.taken(), s.checkAt.Load(), g.queue, g.seen, g.rowNext, g.floor, g.fetchFloor, g.fetching, g.retry != nil, g.failure != nil,
		g.pace.rowStep, g.pace.hasRange, g.pace.step, g.pace.skipped, g.pace.usedDuringFetch(), g.pace.outlivedFirst(time.Now()))
	var flights []string
	for _, f := range p.flights {
		flights = append(flights, fmt.Sprint(*f))
	}
	slices.Sort(flights)
	fmt.Fprintln(&b, flights)
	for _, w := range g.waiters {
		fmt.Fprint(&b, " ", w.n, w.key, w.finished)
	}
	var ops []string
	for _, o := range p.ops {
		ops = append(ops, fmt.Sprint(*o))
	}
	slices.Sort(ops)
	fmt.Fprintln(&b, ops)
	if w.rollbacks > 0 {
		fmt.Fprintln(&b, slices.Sorted(maps.Keys(p.issued)))
	}
	for _, s := range w.pending {
		if s.p == p {
			fmt.Fprintln(&b, withoutTimes(s.text), s.server, s.executed, s.res)
		}
	}
	return b.String()
}

// replay runs a schedule.
func replay(m model, schedule []action) *world {
	w := newWorld(m)
	for _, a := range schedule {
		w.apply(a)
		if w.violation != "" {
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

// search visits states in the order of the lengths of their schedules, and returns the first schedule that
// leads to a violation. depth is the length up to which all schedules were tried.
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
				case w.violation != "":
					return w.violation, longer, depth, len(seen)
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
