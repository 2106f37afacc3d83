package read

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// This file reads the sources of an INSERT's rows other than VALUES and SET: a SELECT, or the file of LOAD DATA.

// query reads the source of INSERT … SELECT, … TABLE and similar forms. A select without a table returns
// at most one row, and the key is added to its list. The rows of other sources are written to a temporary table
// first (staged).
func (w *insertReader) query() error {
	start := w.cursor
	w.source.from = w.tok.Pos
	if w.form != listed {
		w.listColumns(w.tok.Pos, false)
		w.listEdits = 1
	}
	names := w.columnNames()
	for i, name := range names {
		if indexFold(names, name) < i {
			return errInvalid
		}
	}
	w.Columns = names
	if w.tablelessSelect() {
		return nil
	}
	w.restartRows(start)
	w.staged, w.selects, w.queryAt = true, false, start
	for w.skipExpr(w.endsQuery, nil); w.tok.Kind == ','; w.skipExpr(w.endsQuery, nil) {
		w.next()
	}
	return nil
}

// tablelessSelect reads SELECT list [FROM DUAL] [WHERE …] [ORDER BY …] [LIMIT …] with a missing key or
// a key of known meaning, and records the key's place. It returns false for any other form, such as
// grouping. Grouping may add a row, or may remove the row after the marker was evaluated.
func (w *insertReader) tablelessSelect() bool {
	if !w.accept("select") {
		return false
	}
	if w.isAny("all", "distinct") {
		w.next()
	}
	var tokens [maxKeyTokens]lex.Token
	columns := 0
	for more := true; more; more = w.skip(',') {
		params := w.paramsBefore()
		n := w.skipExpr(w.endsItem, tokens[:])
		if n == 0 {
			return false
		}
		if columns == w.keyColumn && !w.keyItem(tokens[:], n, params) {
			return false
		}
		columns++
	}
	if columns != w.width { // the server returns an error for it
		return false
	}
	if w.keyColumn < 0 {
		w.addKeyEdit(insert.EditCommaKey, w.prevEnd, w.prevEnd)
		w.separateWord()
	}
	if w.accept("from") && !w.accept("dual") {
		return false
	}
	for _, clause := range []string{"where", "order"} {
		if w.accept(clause) {
			for w.skipExpr(w.endsItem, nil); w.tok.Kind == ','; w.skipExpr(w.endsItem, nil) {
				w.next()
			}
		}
	}
	if w.accept("limit") {
		for w.tok.Kind == lex.Number || w.tok.Kind == lex.Param || w.tok.Kind == ',' || w.is("offset") {
			w.next()
		}
	}
	if !w.atEnd() && !w.endsQuery() || w.tok.Kind == lex.Bad {
		return false
	}
	w.Rows, w.Conditional = 1, true
	return true
}

// keyItem records the key's value in a select and reports whether its meaning is known. In an integer
// column the meaning of an expression is not known; in other columns an expression is a key.
func (w *insertReader) keyItem(tokens []lex.Token, n, params int) bool {
	for _, t := range tokens[:min(n, len(tokens))] {
		if t.Kind == lex.Name || t.Kind == lex.Word && !lex.Is(w.text[t.Pos:t.End], "null") {
			return !w.Table.IntegerKey
		}
	}
	return w.noteKey(tokens, n, params)
}

// loadSource reads the text after LOAD DATA's table: the format of the file, and the columns and variables to
// which its fields are assigned. A statement without a column list gets a list of all columns.
func (w *insertReader) loadSource() error {
	w.source.from = w.targetEnd
	for !w.atEnd() && w.tok.Kind != '(' && !w.is("set") {
		switch {
		case w.accept("partition"):
			if w.tok.Kind != '(' || !w.skipParens() {
				return w.unreadable(w.Table)
			}
			w.source.from, w.targetEnd = w.prevEnd, w.prevEnd
		case w.accept("character"):
			w.accept("set")
		default:
			w.next()
		}
	}
	if w.tok.Kind == '(' {
		for more := true; more; more = w.tok.Kind == ',' {
			w.next()
			switch {
			case w.tok.Kind == lex.Var:
				if w.next(); w.atName() { // @`x`
					w.next()
				}
				continue
			case w.peek().Kind == '.':
				return w.Table.Refuse("LOAD DATA into columns with the table's name", "leave that out")
			case !w.atName():
				return w.unreadable(w.Table)
			}
			w.loadColumns = append(w.loadColumns, w.name())
			w.next()
		}
		switch {
		case !w.skip(')'):
			return w.unreadable(w.Table)
		case w.loadColumns == nil:
			return w.Table.Refuse("LOAD DATA into variables alone", intoOwnTable)
		}
	} else {
		w.allColumns()
		w.loadColumns = w.Table.Columns
		w.insertText(insert.EditAlways, w.prevEnd, " ("+quote.Names(w.loadColumns)+")")
	}
	if w.is("set") {
		return w.Table.Refuse("LOAD DATA with SET", intoOwnTable)
	}
	if !w.atEnd() || w.tok.Kind == lex.Bad {
		return w.unreadable(w.Table)
	}
	return nil
}

const intoOwnTable = "load the file into a separate table, and insert the rows from there"

// stage records the Staging of a statement with rows that only the server has.
func (w *insertReader) stage() error {
	source := w.text[w.source.from:w.source.to]
	verb, into, target := w.text[w.head.from:w.verbEnd], w.text[w.verbEnd:w.head.to], w.text[w.head.to:w.targetEnd]
	s := &insert.Staging{FillArgs: w.sourceInput, Columns: w.loadColumns, Fill: [3]string{verb, into}}
	if w.loadColumns == nil {
		s.Columns = w.Columns
		s.Fill[2] = " (" + quote.Names(s.Columns) + ") " + source
	} else {
		s.Source, s.Fill[2] = insert.FromFile, w.applyEdits(w.source.from, w.source.to, w.Edits[w.firstEdit:w.tailEdit])
		verb, into = "INSERT", " INTO "
		switch w.Duplicates {
		case insert.Replace:
			verb = "REPLACE"
		case insert.Ignore:
			into = " IGNORE INTO "
		}
	}
	s.Head = [2]string{verb, into + target}
	s.Key = indexFold(s.Columns, w.Table.Key)
	if w.namesSource {
		s.Needs = insert.NeedTryNames
	}
	if w.Duplicates >= insert.Update {
		w.nameSource(s)
	}
	if w.prevEnd > w.source.to {
		s.Tail = " " + strings.TrimLeft(w.text[w.source.to:w.prevEnd], " ")
		s.MarkedTail = " " + strings.TrimLeft(w.applyEdits(w.source.to, w.prevEnd, w.Edits[w.tailEdit:]), " ")
	}
	w.discardEdits() // staging writes the rows, so the statement needs no edits
	in := w.Insert   // a copy, so that w is not allocated on the heap
	in.Columns, in.Staging = s.Columns, s
	err := w.schema.Stager.Stage(&in, w.Use, source)
	w.Inserts = append(w.Inserts, in)
	return err
}

// applyEdits returns text[from:to] of the query with the fixed texts of edits inserted.
func (w *insertReader) applyEdits(from, to int, edits []insert.Edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString(w.text[from:e.Pos])
		b.WriteString(w.Texts[e.Ref])
		from = int(e.End)
	}
	b.WriteString(w.text[from:to])
	return b.String()
}
