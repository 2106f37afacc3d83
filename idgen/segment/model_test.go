package segment

import (
	"flag"
	"testing"
	"testing/synctest"
)

// The model searches all interleavings of a few processes on one table and one row of leaf_alloc. A process
// consists of the production code, Generator and AllocStore on database/sql, and of calls that imitate a
// driver. The server of the model parses their statements, and executes and answers them in the order that the
// search chooses. A schedule is a list of actions. Each state is reached by running its schedule from the
// beginning, and is skipped if another schedule led to it before.

var (
	modelStates = flag.Int("model.states", 1000, "states that the model visits in each of its cases; 0: all")
	modelWalks  = flag.Int("model.walks", 100, "random walks in each case of the model that fails over")
	modelCase   = flag.String("model.case", "", "run this case of the model alone")
)

// model configures a search.
type model struct {
	procs       int
	ops         int     // total number of INSERTs
	keys        []int64 // keys of rows that have one; other rows get ids
	cuts        int     // number of connections that break
	restarts    int     // number of processes that end and are started again
	rollbacks   int     // number of times that the row is reset to its beginning
	create      bool    // the row does not exist at first, but a row with key 3 does
	delayReads  bool    // reads of the row take time as well
	tableOpens  int     // number of INSERTs, of ops, for which a pool opens the table first
	plainWrites int     // number of times that a client without leafsql takes the next keys, and moves the row
	giveBack    bool    // a process that ends gives its unused ids back
	failovers
}

var modelCases = map[string]model{
	"keys":        {procs: 2, ops: 4, keys: []int64{2, 5}},
	"restarts":    {procs: 2, ops: 4, keys: []int64{4}, restarts: 2},
	"cuts":        {procs: 2, ops: 3, keys: []int64{4}, cuts: 2},
	"looks":       {procs: 2, ops: 3, keys: []int64{4}, delayReads: true},
	"creation":    {procs: 2, ops: 3, keys: []int64{5}, create: true, restarts: 1},
	"goes back":   {procs: 1, ops: 4, keys: []int64{4}, rollbacks: 2, restarts: 1},
	"one process": {procs: 1, ops: 5, keys: []int64{3, 6}, cuts: 1},
	"three":       {procs: 3, ops: 4, keys: []int64{3}},
	"opens":       {procs: 2, ops: 4, keys: []int64{4}, delayReads: true, tableOpens: 2},
	"way back":    {procs: 1, ops: 5, tableOpens: 2, plainWrites: 1},

	"fail-over":             {procs: 2, ops: 4, failovers: failovers{servers: 2, failOvers: 1, limitMoves: true}},
	"fail-over, cuts":       {procs: 2, ops: 3, cuts: 1, restarts: 1, failovers: failovers{servers: 2, failOvers: 1}},
	"fail-over, keys":       {procs: 2, ops: 3, keys: []int64{4}, failovers: failovers{servers: 2, failOvers: 1}},
	"fail-over, three":      {procs: 3, ops: 4, failovers: failovers{servers: 2, failOvers: 1, limitMoves: true}},
	"A to B to C":           {procs: 2, ops: 4, failovers: failovers{servers: 3, failOvers: 2}},
	"back to its own state": {procs: 2, ops: 5, failovers: failovers{servers: 2, failOvers: 2, ownState: true}},
	"back as a copy":        {procs: 2, ops: 5, failovers: failovers{servers: 2, failOvers: 2, renamed: true}},
	"back as a replica":     {procs: 2, ops: 5, failovers: failovers{servers: 2, failOvers: 2, sameName: true}},
	"partition":             {procs: 2, ops: 5, failovers: failovers{servers: 2, failOvers: 1, partitioned: true}},
	"crash":                 {procs: 2, ops: 4, restarts: 1, failovers: failovers{servers: 1, crashes: 2}},
	"late events":           {procs: 2, ops: 4, failovers: failovers{servers: 2, failOvers: 1, lateEvents: 1}},
	"fail-over, creation":   {procs: 2, ops: 3, create: true, failovers: failovers{servers: 2, failOvers: 1, foreignRow: true}},
	"first mark":            {procs: 2, ops: 3, failovers: failovers{servers: 2, failOvers: 1, lossless: true, unmarked: true, limitMoves: true}},
	"mark deleted":          {procs: 2, ops: 4, restarts: 1, failovers: failovers{servers: 2, failOvers: 1, unmarks: 1}},
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
					states /= 10 // another search covers more states without the race detector
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

// The model finds a known fault: a process that ends gives ids back.
func TestModelFindsAKnownFault(t *testing.T) {
	for name, m := range map[string]model{
		"ranges that are given back": {procs: 2, ops: 4, keys: []int64{2}, restarts: 1, giveBack: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				wrong, schedule, _, visited := search(m, 0)
				if wrong == "" {
					t.Fatalf("found no fault in %d states, want one", visited)
				}
				t.Logf("after %d states: %s\n%v", visited, wrong, schedule)
			})
		})
	}
}
