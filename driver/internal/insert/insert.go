package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A writer reads one statement that writes a configured table.
type writer struct {
	*parser
	Insert
	target string // the table as the statement names it
	table  string // its last part

	columns   cursor // the first token of the column list
	width     int    // columns listed or, without a list, the table's
	keyColumn int    // which of them is the key, -1: none, it is appended
	form      form
	firstEdit int // index of its first edit
	firstText int // index of its first text
	list      int // edits made in the column list

	firstPlace, lastHole int // where the first key to fill stands, and the last that no argument decides
}

type form uint8

const (
	listed     form = iota // (a, b) VALUES …
	positional             // VALUES …
	empty                  // () VALUES …
)

// insert reads INSERT or REPLACE, up to the end of the statement.
func (p *parser) insert() error {
	w := writer{parser: p, keyColumn: -1, firstEdit: len(p.made), firstText: len(p.texts)}
	p.lastCall, p.userMark, p.call = -1, false, 0
	w.Replace = p.is("replace")
	p.next()
modifiers:
	for {
		switch {
		case p.accept("ignore"):
			w.Ignore = true
		case p.isAny("low_priority", "delayed", "high_priority"):
			p.next()
		default:
			break modifiers
		}
	}
	p.accept("into")
	if !p.atName() && p.tok.Kind != '.' {
		return p.odd("a table named in an unknown form", plainForm)
	}
	t, name, err := p.target()
	if err != nil {
		return err
	}
	if t == nil {
		return p.pass()
	}
	p.room()
	w.Table, w.target = t, name
	w.table = name[strings.LastIndexByte(name, '.')+1:]
	w.firstPlace, w.lastHole = -1, -1
	err = w.statement()
	if err != nil && err != errBroken {
		return err
	}
	if err != nil || w.broken {
		w.forget()
		return nil
	}
	return w.finish()
}

// target reads the name of a table. It returns the table if it is configured,
// and the name as written.
func (p *parser) target() (*Table, string, error) {
	db := p.db
	if p.tok.Kind == '.' { // MariaDB's way to say: in this database
		p.next()
		if !p.atName() {
			return nil, "", nil
		}
	}
	name, written := p.name(), p.str()
	p.next()
	if p.tok.Kind == '.' {
		p.next()
		if !p.atName() {
			return nil, "", nil
		}
		db, name, written = name, p.name(), written+"."+p.str()
		p.next()
	}
	t, err := p.lookup(db, name)
	return t, written, err
}

// statement reads from behind the target to the end.
func (w *writer) statement() error {
	if w.accept("partition") {
		if w.tok.Kind != '(' || !w.parens() {
			return w.unread(w.Table)
		}
	}
	before := w.cursor
	w.form = positional
	if w.tok.Kind == '(' {
		w.next()
		if w.tok.Kind == '(' || w.isAny("select", "with", "values", "table") {
			w.cursor = before
			return w.selected()
		}
		if err := w.columnList(); err != nil {
			return err
		}
	}
	switch {
	case w.isAny("values", "value"):
		return w.values()
	case w.is("set") && w.form == positional:
		return w.set()
	case w.tok.Kind == '(' || w.isAny("select", "with", "table"):
		return w.selected()
	}
	return w.unread(w.Table)
}

// columnList reads the column list, whose first parenthesis was read.
func (w *writer) columnList() error {
	w.columns = w.cursor
	w.form = empty
	for more := w.tok.Kind != ')'; more; {
		w.form = listed
		name, ok := w.column()
		if !ok {
			return w.unread(w.Table)
		}
		if w.isKey(name) {
			w.keyColumn = w.width
		}
		w.width++
		if more = w.tok.Kind == ','; more {
			w.next()
		}
	}
	if w.tok.Kind != ')' {
		return w.unread(w.Table)
	}
	if w.keyColumn < 0 {
		column := "" // known when the first row is
		if w.form == listed {
			column = quotedAfter(", ", w.Table.Key)
		}
		w.insertText(filled, w.tok.Pos, column)
		w.list = 1
	}
	w.next()
	return nil
}

// column reads the name of a column, which may be qualified, and returns its
// last part as written.
func (w *writer) column() (string, bool) {
	if w.tok.Kind == '.' {
		w.next()
	}
	for {
		if !w.atName() {
			return "", false
		}
		name := w.str()
		w.next()
		if w.tok.Kind != '.' {
			return name, true
		}
		w.next()
	}
}

// isKey says whether a name as written is the key's.
func (w *writer) isKey(name string) bool {
	if len(name) == len(w.Table.Key) && name == w.Table.Key {
		return true
	}
	if c := name[0]; c == '`' || c == '"' {
		name = unquote(name)
	}
	return strings.EqualFold(name, w.Table.Key)
}

// allColumns makes the statement one that lists the table's columns. It says
// what to insert between parentheses.
func (w *writer) allColumns() string {
	var b strings.Builder
	w.width = len(w.Table.Columns)
	w.keyColumn = -1
	for i, c := range w.Table.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		if strings.EqualFold(c, w.Table.Key) {
			w.keyColumn = i
		}
		b.WriteString(quoteName(c))
	}
	if w.keyColumn < 0 { // an invisible column
		if w.width > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteName(w.Table.Key))
	}
	return b.String()
}

// tail reads what follows the rows.
func (w *writer) tail() error {
	if w.accept("as") {
		if err := w.alias(); err != nil {
			return err
		}
	}
	if w.is("on") {
		if err := w.duplicate(); err != nil {
			return err
		}
	}
	if w.accept("returning") {
		w.Returning = true
		for !w.atEnd() {
			w.next()
		}
	}
	if w.tok.Kind == lex.Bad || !w.atEnd() {
		return w.unread(w.Table)
	}
	return nil
}

// alias reads MySQL's row alias, which names either no column or all of them.
func (w *writer) alias() error {
	if !w.atName() {
		return w.unread(w.Table)
	}
	w.next()
	if w.keyColumn >= 0 || w.form == empty {
		if w.tok.Kind == '(' && !w.parens() {
			return w.unread(w.Table)
		}
		return nil
	}
	if w.tok.Kind == '(' {
		if !w.parens() {
			return w.unread(w.Table)
		}
		w.insertText(filled, w.prevEnd-len(")"), ", "+w.ownAlias())
		return nil
	}
	// The alias would get a column named as the key, and a bare mention of the
	// key in the update list a second meaning.
	w.insertText(filled, w.prevEnd, "("+w.columnNames()+w.ownAlias()+")")
	return nil
}

// columnNames is the names of the columns, each with a comma.
func (w *writer) columnNames() string {
	var b strings.Builder
	if w.form == positional {
		for _, c := range w.Table.Columns {
			b.WriteString(quoteName(c) + ", ")
		}
		return b.String()
	}
	list := writer{parser: &parser{cursor: w.columns, text: w.text}}
	for range w.width {
		name, _ := list.column()
		b.WriteString(name + ", ")
		if list.tok.Kind != ',' {
			list.expr(true) // the value, in SET
		}
		list.next()
	}
	return b.String()
}

// ownAlias is a name that the text does not hold.
func (p *parser) ownAlias() string {
	if p.own == "" {
		p.own = "leafsql_key"
		for strings.Contains(p.text, p.own) {
			p.own += "_"
		}
	}
	return p.own
}

// forget undoes what was noted of a statement.
func (w *writer) forget() {
	w.made = w.made[:w.firstEdit]
	w.texts = w.texts[:w.firstText]
	for !w.atEnd() {
		w.next()
	}
}

// finish notes the statement in the plan.
func (w *writer) finish() error {
	if w.Holes == 0 && len(w.ArgKeys) == 0 && !w.Wraps && w.Select == nil {
		w.forget()
		return nil
	}
	if w.block {
		return refuse(w.Table, "it is written in a compound statement", "send the statement by itself, or give "+quoteName(w.Table.Key)+" explicitly")
	}
	if w.program {
		return refuse(w.Table, "it follows a stored program in the same text", "send it in a text of its own")
	}
	w.Statement = w.results
	if w.unknown {
		w.Statement = -1
	}
	w.FromEnd = w.results // until all statements are counted
	w.UserMark = w.userMark
	w.Returning = w.Returning || w.rows
	w.Mark = w.Table.Mark && w.lastCall < w.markPlace()
	if w.Select != nil {
		w.Mark = w.Select.mark
	}
	w.Insert.edits = span{w.firstEdit, len(w.made)}
	w.inserts = append(w.inserts, w.Insert)
	return nil
}

// markPlace is the first place in the text at which the mark may come to
// stand. Which row is the last one filled may depend on arguments.
func (w *writer) markPlace() int {
	if !w.Upsert && w.lastHole >= 0 {
		return w.lastHole
	}
	return w.firstPlace
}
