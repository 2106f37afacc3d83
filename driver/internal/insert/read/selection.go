package read

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// A selection has the columns that a query (a SELECT or VALUES) lists, and the query's tables. An update
// list may refer to the source of an INSERT … SELECT by these names.
//
//	SELECT k, s.n * 2 FROM shop.s                      s, with the column k
//	SELECT * FROM (SELECT k, SUM(n) AS n FROM …) AS d  d, with the columns k and n
//	SELECT * FROM (VALUES ROW(1, 2)) AS v(k, n)        v, with the columns k and n
//	SELECT a.k, b.n FROM a JOIN b …                    a, with the column k, or b, with the column n
type selection struct {
	columns  []string   // names of the listed columns; "" for an expression
	tables   []string   // the table written in front of each column; "" if there is none
	outputs  []string   // output names: the column's name, or the name after AS
	star     bool       // the query lists *
	alias    string     // alias of the only table, as written; "" if there are several, or if the update list cannot refer to it
	joined   bool       // there are several tables, and the update list can refer to them
	visible  []string   // the tables that the update list can refer to
	openJoin bool       // an ON after the query would be a condition of its last join
	derived  *selection // the query of the only table, if that is a derived table
}

// nameSource sets s.Alias and s.Names, if the update list can refer to the source by exactly one name. The update list
// becomes part of another statement, the copy from the temporary table. If it would have another meaning there,
// nameSource sets s.Clash.
func (w *insertReader) nameSource(s *insert.Staging) {
	r := insertReader{reader: &reader{text: w.text, cursor: w.queryAt, settings: w.settings}}
	sel := r.selection()
	isTarget := func(name string) bool { return strings.EqualFold(name, w.Table.Name.Table) }
	switch {
	case sel == nil:
		return
	case sel.openJoin:
		s.Clash = insert.ClashJoinCondition
		return
	case w.namesTarget && slices.ContainsFunc(sel.visible, isTarget):
		s.Clash = insert.ClashSameName
		return
	case !w.namesSource:
		return
	case sel.joined && !sel.star && len(w.sources) == 1:
		sel.alias = w.sources[0]
		for i, table := range sel.tables {
			if table != lex.Unquote(sel.alias) {
				sel.columns[i] = ""
			}
		}
	}
	names := sel.columns
	for d := sel; d != nil && d.star; { // the columns of a table in the database are not known
		names = nil
		if d = d.derived; d != nil {
			names = d.outputs
		}
	}
	if sel.alias == "" || isTarget(lex.Unquote(sel.alias)) || len(names) != len(s.Columns) {
		return
	}
	s.Alias, s.Names = sel.alias, make([]string, len(names))
	for i, name := range names {
		if indexFold(names, name) == i { // columns of the same name have the same value
			s.Names[i] = name
		}
	}
}

// joinWords are the words that may follow a table and are not its alias.
var joinWords = []string{"join", "inner", "left", "right", "cross", "natural", "straight_join", "using", "partition", "use", "force", "ignore", "on"}

// parenthesized reads the query in parentheses at the cursor. It returns nil if they contain something else.
func (w *insertReader) parenthesized() *selection {
	s := w.innerReader().selection()
	w.skipParens()
	return s
}

// innerReader returns a reader of the text after the current token.
func (w *insertReader) innerReader() *insertReader {
	r := &insertReader{reader: &reader{text: w.text, cursor: w.cursor, settings: w.settings}}
	r.next()
	return r
}

// columnsAfterName reads the column list that may follow a name.
func (w *insertReader) columnsAfterName() (names []string) {
	for w.tok.Kind == '(' || names != nil && w.tok.Kind == ',' {
		if w.next(); !w.atName() {
			return names
		}
		names = append(names, w.name())
		w.next()
	}
	if names != nil {
		w.skip(')')
	}
	return names
}

// selection reads the names in a query. It returns nil if there is no query at the cursor.
func (w *insertReader) selection() (s *selection) {
	if w.accept("with") {
		for !w.atEnd() && !w.isAny("select", "values") {
			if w.tok.Kind != '(' || !w.skipParens() {
				w.next()
			}
		}
	}
	switch s = new(selection); {
	case w.tok.Kind == '(':
		s = w.parenthesized()
	case w.accept("values"):
	case w.accept("select"):
		if w.isAny("all", "distinct") {
			w.next()
		}
		for more := true; more; more = w.skip(',') {
			var tokens [32]lex.Token
			s.addItem(w, tokens[:min(w.skipExpr(w.endsItem, tokens[:]), len(tokens))])
		}
		s.star = s.star && len(s.columns) == 1
		if w.accept("from") {
			w.from(s)
		}
	default:
		return nil
	}
	for s != nil && !w.atEnd() && w.tok.Kind != ')' && !w.endsQuery() {
		if w.isAny("group", "having", "union", "except", "intersect", "minus") { // an update list cannot refer to a column of such a query
			s.alias, s.joined, s.visible = "", false, nil
		}
		if w.accept("from") { // FROM of a later select of a UNION
			var last selection
			w.from(&last)
			s.openJoin = last.openJoin
		} else if w.tok.Kind != '(' || !w.skipParens() {
			w.next()
		}
	}
	return s
}

// from reads the tables after FROM.
func (w *insertReader) from(s *selection) {
	w.joinedTable(s)
	open := 0 // number of joins without a condition so far
	for !w.atEnd() && w.tok.Kind != ')' && !w.endsItem() {
		switch natural := w.is("natural"); {
		case w.skip(','):
			open = 0
		case w.accept("join"), w.accept("straight_join"):
			open++
		default:
			if natural || w.isAny("on", "using") {
				open--
			}
			if w.tok.Kind != '(' || !w.skipParens() {
				w.next()
			}
			continue
		}
		var other selection
		w.joinedTable(&other)
		s.visible = append(s.visible, other.visible...)
		s.joined, s.alias, s.derived = true, "", nil
	}
	s.openJoin = open > 0 && w.endsQuery()
}

// joinedTable reads one table of FROM.
func (w *insertReader) joinedTable(s *selection) {
	switch r := w.innerReader(); {
	case w.tok.Kind == '(':
		if s.derived = w.parenthesized(); s.derived == nil { // a table, or a join
			r.from(s)
		}
	case r.tok.Kind == '(': // JSON_TABLE
		w.next()
		w.skipParens()
		s.derived = new(selection)
	case w.atName():
		if table, _, _ := w.tableName(); table.Table != "" {
			s.alias = quote.Name(table.Table)
		}
		if w.accept("partition") {
			w.skipParens()
		}
	}
	w.accept("as")
	if w.atName() && !w.isAny(clauseWords...) && !w.isAny(joinWords...) {
		s.alias = w.tokenText()
		w.next()
		if columns := w.columnsAfterName(); columns != nil {
			s.derived = &selection{outputs: columns}
		}
	}
	for w.isAny("use", "force", "ignore") { // index hints
		for !w.atEnd() && w.tok.Kind != '(' {
			w.next()
		}
		w.skipParens()
	}
	if s.alias != "" {
		s.visible = append(s.visible, lex.Unquote(s.alias))
	}
}

// addItem records an item of the select list.
func (s *selection) addItem(w *insertReader, t []lex.Token) {
	text := func(i int) string { return w.text[t[i].Pos:t[i].End] }
	name := func(i int) bool { return i >= 0 && i < len(t) && (t[i].Kind == lex.Word || t[i].Kind == lex.Name) }
	column, table, output, n := "", "", "", 0
	for n = 0; name(n); n += 2 { // db.t.column
		table, column = column, lex.Unquote(text(n))
		if n+1 >= len(t) || t[n+1].Kind != '.' {
			n++
			break
		}
	}
	s.star = s.star || len(t) > 0 && n >= len(t)-1 && t[len(t)-1].Kind == '*'
	switch last := len(t) - 1; {
	case n == len(t):
		output = column
	case name(last) && column != "" && (last == n || last == n+1 && lex.Is(text(n), "as")):
		output = lex.Unquote(text(last))
	case name(last) && last > 0 && (t[last-1].Kind == ')' || name(last-1) && lex.Is(text(last-1), "as")):
		column, output = "", lex.Unquote(text(last))
	default:
		column = ""
	}
	s.columns, s.tables, s.outputs = append(s.columns, column), append(s.tables, table), append(s.outputs, output)
}

// endsQuery reports whether the word begins the part of the statement after the query.
func (w *insertReader) endsQuery() bool {
	return w.is("on") && w.peekIs("duplicate") || w.settings.MariaDB && w.is("returning") && endsOperand(w.text[w.prevEnd-1])
}

// endsItem reports whether the word follows an expression of a select.
func (w *insertReader) endsItem() bool { return w.isAny(clauseWords...) || w.endsQuery() }

// clauseWords are the words that follow an expression of a select.
var clauseWords = []string{"from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "into", "for", "lock", "procedure", "union", "except", "intersect", "minus"}
