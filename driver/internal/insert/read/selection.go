package read

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
	"github.com/leafsql/leafsql/internal/quote"
)

// A selection is what a select lists, and from where: the names by which an update
// list may call the source of an INSERT … SELECT.
//
//	SELECT k, s.n * 2 FROM shop.s                      s, with the column k
//	SELECT * FROM (SELECT k, SUM(n) AS n FROM …) AS d  d, with the columns k and n
type selection struct {
	columns []string // the names of columns that it lists as they are, "" for an expression
	outputs []string // likewise, or what follows AS
	star    bool     // it lists *
	alias   string   // of its only table, as written; "" where there are several, or the list does not see it
	table   insert.TableName
	derived *selection // the table, where it is derived
}

// nameSource names the source for the update list, if it has one name.
func (w *insertReader) nameSource(s *insert.Staging) error {
	r := insertReader{reader: &reader{text: w.text, cursor: w.queryAt, settings: w.settings}}
	sel := r.selection()
	if sel == nil || sel.alias == "" || strings.EqualFold(unquote(sel.alias), w.Table.Name) {
		return nil
	}
	names := sel.columns
	if sel.star {
		var err error
		if names, err = w.outputs(sel); err != nil {
			return err
		}
	}
	if len(names) != len(s.Columns) {
		return nil
	}
	s.Alias, s.Names = sel.alias, make([]string, len(names))
	for i, name := range names {
		if !repeats(names, i) { // which has the same value
			s.Names[i] = name
		}
	}
	return nil
}

// outputs are the columns that the * of a select means.
func (w *insertReader) outputs(sel *selection) ([]string, error) {
	switch d := sel.derived; {
	case d == nil && w.schema.Columns == nil:
		return nil, nil
	case d == nil:
		w.Expires = true
		return w.schema.Columns(sel.table)
	case d.star:
		return w.outputs(d)
	default:
		return d.outputs, nil
	}
}

// joins are the words that may follow a table and are no name for it.
var joins = []string{"join", "inner", "left", "right", "cross", "natural", "straight_join", "partition", "use", "force", "ignore", "on"}

// selection reads a select, as far as its names go; nil where it is something else.
func (w *insertReader) selection() *selection {
	if !w.accept("select") {
		return nil
	}
	if w.isAny("all", "distinct") {
		w.next()
	}
	s := &selection{}
	for more := true; more; more = w.skip(',') {
		var tokens [32]lex.Token
		s.list(w, tokens[:min(w.expr(w.endsItem, tokens[:]), len(tokens))])
	}
	s.star = s.star && len(s.columns) == 1
	if !w.accept("from") {
		return s
	}
	switch {
	case w.tok.Kind == '(':
		inner := insertReader{reader: &reader{text: w.text, cursor: w.cursor, settings: w.settings}}
		inner.next()
		if s.derived = inner.selection(); s.derived == nil || !w.parens() {
			return s
		}
	case w.atName():
		if s.table, _, _ = w.tableName(); s.table.Table != "" {
			s.alias = quote.Name(s.table.Table)
		}
	}
	w.accept("as")
	if w.atName() && !w.isAny(clauses...) && !w.isAny(joins...) {
		s.alias = w.str()
		w.next()
	}
	if w.tok.Kind == ',' || w.tok.Kind == '(' || w.isAny(joins...) && !w.endsQuery() {
		s.alias = ""
	}
	for !w.atEnd() && w.tok.Kind != ')' {
		if w.isAny("group", "having", "union", "except", "intersect", "minus") { // an update list sees no column behind these
			s.alias = ""
		}
		if w.tok.Kind != '(' || !w.parens() {
			w.next()
		}
	}
	return s
}

// list notes an entry of the select's list.
func (s *selection) list(w *insertReader, t []lex.Token) {
	text := func(i int) string { return w.text[t[i].Pos:t[i].End] }
	name := func(i int) bool { return i >= 0 && i < len(t) && (t[i].Kind == lex.Word || t[i].Kind == lex.Name) }
	column, output, n := "", "", 0
	for n = 0; name(n); n += 2 { // db.t.column
		column = unquote(text(n))
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
		output = unquote(text(last))
	case name(last) && last > 0 && (t[last-1].Kind == ')' || name(last-1) && lex.Is(text(last-1), "as")):
		column, output = "", unquote(text(last))
	default:
		column = ""
	}
	s.columns, s.outputs = append(s.columns, column), append(s.outputs, output)
}

// endsQuery says whether a word outside parentheses follows the query.
func (w *insertReader) endsQuery() bool {
	return w.is("on") && w.peekIs("duplicate") || w.settings.MariaDB && w.is("returning") && operand(w.text[w.prevEnd-1])
}

// endsItem says whether a word follows an expression of a select.
func (w *insertReader) endsItem() bool { return w.isAny(clauses...) || w.endsQuery() }

// clauses are the words that follow an expression of a select.
var clauses = []string{"from", "where", "group", "having", "window", "order", "limit", "offset", "fetch", "into", "for", "lock", "procedure", "union", "except", "intersect", "minus"}

// repeats says whether a name came before, in any case.
func repeats(names []string, i int) bool {
	return slices.ContainsFunc(names[:i], func(n string) bool { return strings.EqualFold(n, names[i]) })
}
