package insert

import (
	"cmp"
	"slices"
	"strings"
)

// Effects are what a piece of SQL, an expression or a stored program's text, has to do
// with what is around it: with other statements of the session, other tables, and
// other expressions of its statement.
type Effects struct {
	Before    string // what it calls that tells of the statement before or of the transaction, such as ROW_COUNT() and @@autocommit; "" nothing
	ReadsID   bool   // it reads LAST_INSERT_ID()
	SetsID    bool   // it calls LAST_INSERT_ID(…)
	Clock     bool   // it says the statement's time
	Assigns   bool   // it may set a user variable
	Writes    bool   // it may write a table
	Temporary bool   // it may make or drop a temporary table
	Hidden    bool   // this user may not see it

	Calls  []TableName // routines that are not the server's own functions
	Tables []TableName // what may be tables; a column may stand there, too
	Vars   []string    // user variables, with their @, in lower case
}

// Add notes that something else runs as well.
func (e *Effects) Add(o Effects) {
	e.Before = cmp.Or(e.Before, o.Before)
	e.ReadsID, e.SetsID, e.Clock = e.ReadsID || o.ReadsID, e.SetsID || o.SetsID, e.Clock || o.Clock
	e.Assigns, e.Writes, e.Temporary, e.Hidden = e.Assigns || o.Assigns, e.Writes || o.Writes, e.Temporary || o.Temporary, e.Hidden || o.Hidden
	e.Calls, e.Tables, e.Vars = append(e.Calls, o.Calls...), append(e.Tables, o.Tables...), append(e.Vars, o.Vars...)
}

// Disturbs names a table that one of two writes and both name, or a variable that one
// sets and both name; "" for none: what one does the other does not see. Tables compare
// by their own names, since what a bare one means is not known here.
func (e *Effects) Disturbs(o *Effects) string {
	for _, t := range e.Tables {
		if (e.Writes || o.Writes) && o.Names(t.Table) {
			return t.Table
		}
	}
	for _, v := range e.Vars {
		if (e.Assigns || o.Assigns) && slices.Contains(o.Vars, v) {
			return v
		}
	}
	return ""
}

// Names says whether it names a table.
func (e *Effects) Names(table string) bool {
	return slices.ContainsFunc(e.Tables, func(t TableName) bool { return strings.EqualFold(t.Table, table) })
}
