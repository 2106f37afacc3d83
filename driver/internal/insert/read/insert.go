package read

import (
	"cmp"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// An insertReader reads one statement that writes a configured table, the target. The source of a statement is the text
// with its rows: VALUES …, SET …, a SELECT, or a file. The tail is the text after the source. The marker is a
// call that stores an id and makes it the session's id; package insert defines both.
type insertReader struct {
	*reader
	insert.Insert
	head      span   // the bytes in front of the target
	target    string // the table as written in the statement
	lastName  string // the last part of the target
	rowName   string // the row's alias as written, if it lists no columns
	verbEnd   int    // end of INSERT or REPLACE
	targetEnd int    // end of the target and PARTITION (…)
	listEnd   int    // end of the column list, or of the last assignment of SET

	form      form
	columns   cursor // the token in front of the first listed column
	width     int    // number of columns listed or, without a list, of the table's columns
	keyColumn int    // index of the key among the columns; -1 if it is not listed and has to be appended

	queryAt     cursor // the first token of the SELECT
	source      span   // the bytes of VALUES …, SET …, the SELECT, or the text after LOAD DATA's table
	sourceInput int    // placeholders up to the end of the source
	firstEdit   int    // index of the statement's first edit
	firstText   int    // index of the statement's first text
	listEdits   int    // edits made in the column list
	tailEdit    int    // index of the first edit after the source

	rowCalls idCalls // calls in the rows; once the rows are read, cursor.calls has the calls in the tail

	nameErr     error    // set if a column name of the table cannot be written in the query's character set
	staged      bool     // only the server can see the rows
	namesSource bool     // the update list may use columns of the source's tables by their names, without VALUES()
	sources     []string // the table qualifiers of such columns, as written
	namesTarget bool     // the update list has the target's name in front of a column
	loadColumns []string // columns that LOAD DATA writes
}

type span struct{ from, to int }

func (r *reader) newInsert() insertReader {
	r.calls, r.functions, r.selects, r.diagnostics = noIDCalls, false, false, false
	return insertReader{reader: r, keyColumn: -1, firstEdit: len(r.Edits), firstText: len(r.Texts), rowCalls: noIDCalls}
}

// insert reads INSERT or REPLACE, up to the end of the statement.
func (r *reader) insert() error {
	w := r.newInsert()
	if r.is("replace") {
		w.Duplicates = insert.Replace
	}
	r.next()
	w.verbEnd = r.prevEnd
	for r.isAny("low_priority", "delayed", "high_priority", "ignore") {
		if r.is("ignore") {
			w.Duplicates = insert.Ignore
		}
		r.next()
	}
	r.accept("into")
	if configured, err := w.readTarget(); err != nil || !configured {
		return err
	}
	return w.complete(w.statement())
}

// load reads LOAD DATA. Only the server can see its rows.
func (r *reader) load() error {
	w := r.newInsert()
	w.staged = true
	w.next()
	w.verbEnd = w.prevEnd
	xml := w.is("xml")
	if !xml && !w.is("data") {
		return nil
	}
	for !w.is("into") || !w.peekIs("table") {
		if w.atEnd() {
			return nil
		}
		switch {
		case w.is("replace"):
			w.Duplicates = insert.Replace
		case w.isAny("ignore", "local") && w.Duplicates == insert.Fail: // with LOCAL, the server reads the whole file and turns errors into warnings
			w.Duplicates = insert.Ignore
		}
		w.next()
	}
	w.next()
	w.next()
	if configured, err := w.readTarget(); err != nil || !configured {
		return err
	}
	if xml {
		return w.Table.Refuse("LOAD XML", intoOwnTable)
	}
	err := w.loadSource()
	w.listEnd = w.prevEnd
	w.endSource()
	return w.complete(err)
}

// readTarget reads the name of the table and reports whether it is configured. If it is not, the
// caller skips the statement.
func (w *insertReader) readTarget() (bool, error) {
	if !w.atName() && w.tok.Kind != '.' {
		return false, w.refuseNamed("a table named in an unknown form", plainForm)
	}
	w.head = span{w.statementStart.tok.Pos, w.tok.Pos}
	headParams, runs := w.params, w.RunsPrograms
	n, written, ok := w.tableName()
	w.RunsPrograms = runs // in t (a, b) the column list looks like the arguments of a function, but nothing is called
	if !ok {
		return false, nil
	}
	if w.hasChanged(n) {
		return false, errCut
	}
	t, err := w.schema.Table(n.DB, n.Table)
	if err != nil {
		return false, err
	}
	if t == nil {
		w.harmlessUpTo = w.prevEnd
		w.RunsPrograms = w.RunsPrograms || w.schema.Temporary != nil && !w.schema.Temporary(n)
		return false, nil
	}
	switch {
	case w.compound:
		return false, t.Refuse("it is written in a compound statement", "send the statement by itself")
	case w.Results > 0 && (w.Opaque || w.program):
		return false, errCut
	}
	if headParams != w.statementStart.params {
		return false, t.Refuse("it has a placeholder before the table", "write the value into the text")
	}
	w.RunsPrograms = w.RunsPrograms || t.Triggers.Kinds.HasAny(insert.MakesTemporary|insert.Hidden)
	w.preallocate()
	w.Table, w.target, w.targetEnd = t, written, w.prevEnd
	w.functions, w.selects = t.IDWay != insert.NoID, t.IDWay != insert.NoID
	w.nameErr = w.needUTF8(t.Key)
	w.lastName = written[strings.LastIndexByte(written, '.')+1:]
	return true, nil
}

// complete completes the statement after its parts were read. err is the error of reading them.
func (w *insertReader) complete(err error) error {
	w.selects = false
	err = cmp.Or(err, w.nameErr)
	switch {
	case err != nil && err != errInvalid:
		return err
	case err != nil || w.invalid:
		w.discardEdits()
		return nil
	case w.s.Seen&lex.SeenCode != 0: // a clause may begin in a version comment and end after it
		return w.Table.Refuse("part of it is in a version comment", "write it without that comment")
	}
	return w.finish()
}

// statement reads the text after the target, up to the end.
func (w *insertReader) statement() error {
	if w.accept("partition") {
		if w.tok.Kind != '(' || !w.skipParens() {
			return w.unreadable(w.Table)
		}
		w.targetEnd = w.prevEnd
	}
	w.form, w.listEnd = positional, w.prevEnd
	if w.tok.Kind == '(' {
		w.columns = w.cursor
		w.next()
		if w.tok.Kind == '(' || w.isAny("select", "with", "values", "table") {
			w.cursor = w.columns
			return w.rows()
		}
		if err := w.columnList(); err != nil {
			return err
		}
		w.listEnd = w.prevEnd
	}
	return w.rows()
}

// rows reads the rows and the text after them.
func (w *insertReader) rows() (err error) {
	switch isQuery := w.tok.Kind == '(' || w.isAny("select", "with", "table"); {
	case w.isAny("values", "value"):
		start := w.cursor
		if isQuery, err = w.values(); isQuery {
			w.restartRows(start)
			err = w.query()
		}
	case w.is("set") && w.form == positional:
		err = w.assignments()
	case isQuery:
		err = w.query()
	default:
		err = w.unreadable(w.Table)
	}
	if err != nil {
		return err
	}
	return w.tail()
}

// tail reads the text after the rows.
func (w *insertReader) tail() error {
	w.endSource()
	w.rowCalls, w.calls = w.calls, noIDCalls
	w.selects = w.Table.IDWay != insert.NoID
	if w.accept("as") {
		if err := w.rowAlias(); err != nil {
			return err
		}
		w.calls = noIDCalls // an alias with columns is not a call
	}
	if w.is("on") {
		if err := w.onDuplicate(); err != nil {
			return err
		}
	}
	if w.accept("returning") {
		w.Returning = true
		w.skipToEnd()
	}
	if w.tok.Kind == lex.Bad || !w.atEnd() {
		return w.unreadable(w.Table)
	}
	return nil
}

// rowAlias reads MySQL's row alias, which lists either no columns or all of them.
func (w *insertReader) rowAlias() error {
	if !w.atName() || w.form == empty { // the alias of a row without values has to list all columns of the table, which are not known here
		return w.unreadable(w.Table)
	}
	name := w.tokenText()
	w.next()
	columns := w.tok.Kind == '('
	if columns && !w.skipParens() {
		return w.unreadable(w.Table)
	}
	if !columns {
		w.rowName = name
	}
	switch {
	case w.keyColumn >= 0:
	case columns:
		w.insertText(insert.EditFilled, w.prevEnd-len(")"), ", "+w.newName())
	default:
		// Without a list of columns, the row's alias would have a column with the key's name. The unqualified
		// name of the key in the update list would then be ambiguous.
		w.insertText(insert.EditFilled, w.prevEnd, "("+quote.Names(w.columnNames())+", "+w.newName()+")")
	}
	return nil
}

// finish records the statement in the plan.
func (w *insertReader) finish() error {
	if w.Update == insert.NoUpdate && w.calls.sets >= 0 {
		w.Update = insert.UserUpdate
	}
	w.Written, w.Diagnostics = w.text[w.head.from:w.listEnd], w.diagnostics
	if w.Duplicates >= insert.Update {
		w.Updates = w.text[w.source.to:w.prevEnd]
	}
	if err := w.checkZeroMode(); err != nil {
		return err
	}
	if w.staged {
		return w.stage()
	}
	if w.Rows != 1 {
		w.ExplicitKey = 0
	}
	if w.Update == insert.RowUpdate && !w.Returning && w.Table.HasOtherUnique && w.Rows == 1 && w.RowsWithoutKey == 0 && (w.ExplicitKey > 0 || len(w.ArgKeys) > 0) {
		w.Update = insert.AlwaysUpdate
	}
	if w.RowsWithoutKey == 0 && len(w.ArgKeys) == 0 && !w.Positional && w.Floor == 0 && w.ExplicitKey == 0 && !w.WritesZero {
		w.discardEdits()
		return nil
	}
	w.Statement = w.Results
	if err := w.planID(); err != nil {
		return err
	}
	w.EditFrom, w.EditTo = w.firstEdit, len(w.Edits)
	w.Inserts = append(w.Inserts, w.Insert)
	return nil
}

// planID decides how the statement's id becomes the session's id.
func (w *insertReader) planID() error {
	fits, err := w.Table.IDWay == insert.IDInText && !(w.settings.TiDB && w.Conditional), error(nil) // TiDB evaluates the marker even if the WHERE clause is false
	if fits {
		fits, err = w.markerFits()
	}
	switch {
	case !fits && w.Table.IDWay != insert.NoID && w.RowsWithoutKey+len(w.ArgKeys) > 0:
		w.Way, w.InBulk = insert.IDSetAfter, insert.IDSetAfter
	case fits && (max(w.rowCalls.reads, w.rowCalls.stored, w.calls.reads, w.calls.stored) >= 0 || w.RunsPrograms):
		w.Way, w.InBulk = insert.IDInText, insert.IDSetAfter // a call may read the id or ROW_COUNT() of the previous statement
	case fits:
		w.Way, w.InBulk = insert.IDInText, insert.IDSetBefore
	}
	return err
}

// markerFits reports whether the marker can be written into the statement. It cannot if a later
// call in the statement would read the marker's id, or set another id. If the rows come from a SELECT without FROM, a
// call without an argument does no harm, unless it is in a stored program.
func (w *insertReader) markerFits() (bool, error) {
	place := w.markerPlace()
	called := w.rowCalls.sets
	if !w.Conditional {
		called = max(called, w.rowCalls.reads, w.calls.reads)
	}
	if called >= place || max(w.rowCalls.stored, w.calls.stored) < place {
		return called < place, nil
	}
	reads, err := w.schema.Stager.ReadsID(w.Use, w.text[w.statementStart.tok.Pos:])
	return !reads, err
}

// markerPlace returns the first possible offset of the marker. The marker belongs in the last row that gets an
// id. The arguments may decide which row this is, so the marker may also be written at a later offset.
func (w *insertReader) markerPlace() int {
	place := -1
	for _, e := range w.Edits[w.firstEdit:] {
		if e.Kind == insert.EditArgument && place < 0 || (e.Kind == insert.EditKey || e.Kind == insert.EditCommaKey) && (place < 0 || w.Duplicates < insert.Update) {
			place = int(e.Pos)
		}
	}
	return place
}
