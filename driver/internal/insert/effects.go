package insert

import (
	"cmp"
	"slices"
	"strings"
)

// Effects are what a piece of SQL, an expression or a stored program's text, has to do
// with the rest of its session: other statements, other tables, and other expressions of
// its statement.
type Effects struct {
	Does   Effect
	Before string      // what it calls that reports on the statement before or on the transaction, such as ROW_COUNT() and @@autocommit; "" if nothing
	Calls  []TableName // routines that are not the server's own functions
	Tables []TableName // names of tables, and perhaps of columns in their places
	Vars   []string    // user variables, with their @, in lower case
	Sets   []string    // columns of NEW that a trigger may set, in lower case
}

// An Effect is a set of things that a piece of SQL may do.
type Effect uint8

const (
	ReadsID        Effect = 1 << iota // it reads the session's id
	SetsID                            // it sets the session's id, by a call with an argument
	ReadsClock                        // it returns the statement's time
	Assigns                           // it may set a user variable
	Writes                            // it may write a table
	MakesTemporary                    // it may create or drop a temporary table
	Hidden                            // this user may not see all of it
)

// Any reports whether it does one of some things.
func (e Effect) Any(of Effect) bool { return e&of != 0 }

// Add adds the effects of something else that runs as well.
func (e *Effects) Add(o Effects) {
	e.Does, e.Before = e.Does|o.Does, cmp.Or(e.Before, o.Before)
	e.Calls, e.Tables = append(e.Calls, o.Calls...), append(e.Tables, o.Tables...)
	e.Vars, e.Sets = append(e.Vars, o.Vars...), append(e.Sets, o.Sets...)
}

// Disturbs returns a table that one of two writes and both name, or a variable that one
// sets and both name; "" for none. If they share such a name, the order in which they run
// changes what they do. Tables compare by their own names, since the database of a bare one is not known here.
func (e *Effects) Disturbs(o *Effects) string {
	does := e.Does | o.Does
	for _, t := range e.Tables {
		if does.Any(Writes) && o.Names(t.Table) {
			return t.Table
		}
	}
	for _, v := range e.Vars {
		if does.Any(Assigns) && slices.Contains(o.Vars, v) {
			return v
		}
	}
	return ""
}

// SetsKey reports whether a trigger may set a column: by SET, by INTO, or by a CALL with it.
func (e Effects) SetsKey(column string) bool {
	return slices.Contains(e.Sets, strings.ToLower(column))
}

// Names reports whether a table is among those named.
func (e *Effects) Names(table string) bool {
	return slices.ContainsFunc(e.Tables, func(t TableName) bool { return strings.EqualFold(t.Table, table) })
}
