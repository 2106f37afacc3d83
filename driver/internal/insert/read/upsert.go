package read

import (
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// This file reads the update list of an upsert (INSERT … ON DUPLICATE KEY UPDATE): its effect on the key, and the
// place of the marker. The upsert's marker is an assignment of the key to itself inside the marker's call, which makes
// the key of an updated row the session's id.

// onDuplicate reads ON DUPLICATE KEY UPDATE and its list.
func (w *insertReader) onDuplicate() error {
	w.next()
	for _, word := range []string{"duplicate", "key", "update"} {
		if !w.accept(word) {
			return w.unreadable(w.Table)
		}
	}
	if w.Duplicates == insert.Ignore {
		w.Duplicates = insert.UpdateOrIgnore
	} else {
		w.Duplicates = insert.Update
	}
	sets, brought := false, false // sets: the list sets the key; brought: its last assignment may set the key to the row's explicit key
	var itself lex.Token          // the value in the assignment key = key
	for more := true; more; more = w.skip(',') {
		name, ok := w.column()
		if !ok || w.tok.Kind != '=' && w.tok.Kind != lex.Assign {
			return w.unreadable(w.Table)
		}
		w.next()
		value, params := w.cursor, w.paramsBefore()
		w.skipExpr(w.closesList, nil)
		if w.staged {
			w.noteSourceColumns(value)
		}
		if w.isKey(name) {
			if !sets && w.isExistingKey(value) {
				itself = lex.Token{Pos: value.tok.Pos, End: w.prevEnd}
			} else {
				itself = lex.Token{}
			}
			sets, brought, w.KeyArg = true, w.isRowKey(value), 0
			if value.tok.Kind == lex.Param && value.tok.End == w.prevEnd {
				brought, w.KeyArg = true, params+1
			}
		}
	}
	if w.tok.Kind == ')' || w.tok.Kind == lex.Bad {
		return w.unreadable(w.Table)
	}
	keeps := !sets || itself.End > 0
	w.KeepsKey = brought || keeps && !w.Table.HasOtherUnique
	if !w.Table.UpdatesID || w.Table.Triggers.Kinds.HasAny(insert.ReadsID) && w.Rows != 1 {
		return nil
	}
	if calls, err := w.hasUpsertMarkerConflict(); calls || err != nil {
		return err
	}
	column := w.target + "." + quote.Name(w.Table.Key)
	marker := insert.UpsertMarker(column)
	if w.keyColumn >= 0 && (w.staged || w.Rows > 1 && w.RowsWithoutKey < w.Rows) {
		// If the explicit key of a row is in use, the row must not set the session's id, since the row was
		// not filled.
		brought := "VALUES(" + quote.Name(w.Table.Key) + ")"
		if w.rowName != "" { // MySQL warns about VALUES()
			brought = w.rowName + "." + quote.Name(w.Table.Key)
		}
		marker = "IF(" + brought + " = " + column + ", " + column + ", " + marker + ")"
	}
	switch {
	case !sets:
		w.Update = insert.RowUpdate
		w.insertText(insert.EditUpdated, w.prevEnd, ", "+quote.Name(w.Table.Key)+" = "+marker)
	case itself.End > 0:
		w.Update = insert.RowUpdate
		w.replaceText(insert.EditUpdated, itself.Pos, itself.End, marker)
	}
	return nil
}

// isRowKey reports whether the value of an assignment, up to the current token, is the row's key:
// VALUES() of the key column, the key column of the row's alias, or the row's explicit key again.
func (w *insertReader) isRowKey(value cursor) bool {
	v := reader{cursor: value, text: w.text}
	if v.tok.Kind == lex.Number {
		return w.ExplicitKey > 0 && v.tokenText() == strconv.FormatInt(w.ExplicitKey, 10) && v.tok.End == w.prevEnd
	}
	call := v.accept("values")
	switch {
	case call && v.tok.Kind == '(':
		v.next()
	case call, w.rowName == "", v.tokenText() != w.rowName:
		return false
	}
	name, ok := v.column()
	if call && v.tok.Kind == ')' {
		v.next()
	}
	return ok && w.isKey(name) && v.prevEnd == w.prevEnd
}

// hasUpsertMarkerConflict reports whether a call would read the id of the upsert's marker, or set another id. Calls that
// read the id in a source's select, or in the only row, do not count: they are evaluated before the update list.
func (w *insertReader) hasUpsertMarkerConflict() (bool, error) {
	if w.calls.reads >= 0 || w.calls.sets >= 0 || w.rowCalls.sets >= 0 || w.Rows > 1 && w.rowCalls.reads >= 0 {
		return true, nil
	}
	if w.calls.stored >= 0 || w.Rows > 1 && w.rowCalls.stored >= 0 {
		return w.schema.Stager.ReadsID(w.Use, w.text[w.statementStart.tok.Pos:])
	}
	return false, nil
}

// noteSourceColumns records whether the value of an assignment, up to the current token, names columns outside of
// VALUES() that may belong to other tables than the target. It also records the table names in front of these columns.
func (w *insertReader) noteSourceColumns(value cursor) {
	v := reader{cursor: value, text: w.text}
	for v.tok.Pos < w.tok.Pos && !v.atQueryEnd() {
		first, call := v.tok, v.peek().Kind == '('
		switch {
		case call && v.isAny("values", "value"):
			v.next()
			v.skipParens()
			continue
		case v.atName() && !call:
			name, ok := v.column()
			bare := v.prevEnd-first.Pos == len(name)
			own := bare || w.isTarget(w.text[first.Pos:first.End])
			w.namesTarget = w.namesTarget || ok && own && !bare
			if ok && (!own || indexFold(w.Table.Columns, lex.Unquote(name)) < 0) {
				w.namesSource = true
				if table := w.text[first.Pos:first.End]; !bare && !slices.Contains(w.sources, table) {
					w.sources = append(w.sources, table)
				}
			}
			continue
		}
		v.next()
	}
}

// isExistingKey reports whether the value of an assignment, up to the current token, is the key of
// the existing row, and not the key of the row's alias.
func (w *insertReader) isExistingKey(value cursor) bool {
	v := reader{cursor: value, text: w.text}
	if !v.atName() {
		return false
	}
	first := v.tokenText()
	name, ok := v.column()
	if !ok || v.prevEnd != w.prevEnd || !w.isKey(name) {
		return false
	}
	return v.prevEnd-value.tok.Pos == len(name) || w.isTarget(first)
}

// isTarget reports whether the first part of a column's qualifier, as written, is the target or its database.
func (w *insertReader) isTarget(first string) bool {
	return first == w.lastName || strings.HasPrefix(w.target+".", first+".")
}
