package insert

import (
	"cmp"
	"slices"
	"strings"
)

// Effects are the ways in which a piece of SQL, an expression or the text of a stored program,
// interacts with other statements of its session, other tables, and other expressions of its statement.
type Effects struct {
	Does   Effect
	Before string      // a call that reports on the previous statement or on the transaction, such as ROW_COUNT() or @@autocommit; "" if there is none
	Calls  []TableName // routines that are not the server's own functions
	Tables []TableName // names of tables, and perhaps of columns written in the same places
	Vars   []string    // user variables, with their @, in lower case
	Sets   []string    // columns of NEW that a trigger may set, in lower case
}

// An Effect is a set of things that a piece of SQL may do. The zero value is none.
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

// Any reports whether e has at least one effect of a set.
func (e Effect) Any(of Effect) bool { return e&of != 0 }

// Add adds the effects of another piece that runs as well.
func (e *Effects) Add(o Effects) {
	e.Does, e.Before = e.Does|o.Does, cmp.Or(e.Before, o.Before)
	e.Calls, e.Tables = append(e.Calls, o.Calls...), append(e.Tables, o.Tables...)
	e.Vars, e.Sets = append(e.Vars, o.Vars...), append(e.Sets, o.Sets...)
}

// Disturbs returns a table that both name and one writes, or a variable that both name and one sets; ""
// if there is none. If they share such a name, their order changes their effects. Tables
// compare without their databases, since the database of an unqualified name is not known here.
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

// Names reports whether the piece names a table.
func (e *Effects) Names(table string) bool {
	return slices.ContainsFunc(e.Tables, func(t TableName) bool { return strings.EqualFold(t.Table, table) })
}
