package insert

import (
	"cmp"
	"slices"
	"strings"
)

// Effects are the ways in which a piece of SQL (an expression, or the text of a stored program)
// interacts with other statements of its session, other tables, and other expressions of its statement.
type Effects struct {
	Kinds        Effect
	PreviousCall string      // a call that returns data about the previous statement or the transaction, such as ROW_COUNT() or @@autocommit; "" if there is none
	Calls        []TableName // routines that are not built-in functions
	Tables       []TableName // names of tables, and perhaps of columns
	Vars         []string    // user variables, with their @, in lower case
	SetColumns   []string    // columns of NEW that a trigger may set, in lower case
}

// An Effect is a set of actions of a piece of SQL. The zero value is the empty set.
type Effect uint8

const (
	ReadsID        Effect = 1 << iota // it reads the session's id
	SetsID                            // it sets the session's id, by a call with an argument
	ReadsClock                        // it reads the statement's time
	Assigns                           // it may set a user variable
	Writes                            // it may write a table
	MakesTemporary                    // it may create or drop a temporary table
	Hidden                            // this user cannot see the whole text
)

// HasAny reports whether e has at least one of the effects in of.
func (e Effect) HasAny(of Effect) bool { return e&of != 0 }

// Add adds the effects of another piece of SQL.
func (e *Effects) Add(o Effects) {
	e.Kinds, e.PreviousCall = e.Kinds|o.Kinds, cmp.Or(e.PreviousCall, o.PreviousCall)
	e.Calls, e.Tables = append(e.Calls, o.Calls...), append(e.Tables, o.Tables...)
	e.Vars, e.SetColumns = append(e.Vars, o.Vars...), append(e.SetColumns, o.SetColumns...)
}

// FindConflict returns a table that e and o both name, if either of them may write a table. Otherwise it returns a
// variable that both name, if either of them may set a variable, or "" if there is no conflict. If two pieces
// conflict, their result depends on their order. Tables are compared without their databases, since the database of
// an unqualified name is not known here.
func (e *Effects) FindConflict(o *Effects) string {
	does := e.Kinds | o.Kinds
	for _, t := range e.Tables {
		if does.HasAny(Writes) && o.NamesTable(t.Table) {
			return t.Table
		}
	}
	for _, v := range e.Vars {
		if does.HasAny(Assigns) && slices.Contains(o.Vars, v) {
			return v
		}
	}
	return ""
}

// SetsKey reports whether a trigger may set a column: by SET, by INTO, or as an argument of CALL.
func (e Effects) SetsKey(column string) bool {
	return slices.Contains(e.SetColumns, strings.ToLower(column))
}

// NamesTable reports whether the piece names a table.
func (e *Effects) NamesTable(table string) bool {
	return slices.ContainsFunc(e.Tables, func(t TableName) bool { return strings.EqualFold(t.Table, table) })
}
