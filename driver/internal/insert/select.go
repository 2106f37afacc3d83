package insert

import (
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A Select is what an INSERT … SELECT or INSERT … TABLE needs. Its rows are
// numbered by the server: count them, draw a block, run the text with a Fill
// of that block. Where more rows come than the block holds the server answers
// error 1690 and stores none (on a transactional engine: others are for the
// caller to refuse); try again with a larger block, a few times.
//
// Each filled row gets the next id of the block, in the order of the select.
// The text of a Plan with a Select always carries ids as literals, and with a
// Fill of N = 0 it fails if a row turns up that lacks a key.
type Select struct {
	// Bound is the most rows the statement can write, where that can be read
	// from it (a literal LIMIT, no FROM); 0: count them.
	Bound int

	// Count is the text of a query that answers how many ids are needed, and
	// Args the range of the text's placeholders that are its arguments.
	Count string
	Args  [2]int

	open, shut string // what stands before and behind the next id
	row        string // what counts the rows up to this one
	next       string // the same once row was evaluated in an expression
	mark       bool
}

// maxBound is the largest LIMIT that ids are drawn for without a count.
const maxBound = 10000

// A source is the select of an INSERT … SELECT.
type source struct {
	start, end int   // its bytes
	limitAt    int   // where a LIMIT may be put, before a locking clause
	limited    bool  // it has a LIMIT
	offset     bool  // it has an OFFSET, as MariaDB takes it without a LIMIT
	around     []int // the parentheses around all of it: those that open, then those that close
	ordered    bool  // it has an ORDER BY
	bound      int
}

// selected reads the source of an INSERT … SELECT and what follows it.
func (w *writer) selected() error {
	if !w.mode.VersionKnown {
		w.need |= NeedVersion
		return errBroken
	}
	if w.mode.Version < 80000 || w.mode.MariaDB && w.mode.Version < 100200 {
		return refuse(w.Table, "INSERT … SELECT needs MySQL 8.0 or MariaDB 10.2", "select the rows and insert them")
	}
	params := w.params
	if w.form != listed {
		list := w.allColumns()
		if w.list > 0 {
			w.texts[w.firstText] = list
		} else {
			w.insertText(always, w.tok.Pos, "("+list+") ")
		}
	}
	for i := w.firstEdit; i < len(w.made); i++ {
		w.made[i].kind = always
	}
	src, err := w.source()
	if err != nil {
		return err
	}
	s := w.numbering(src)
	s.Args = [2]int{params, w.params}
	before := "WITH " + cte(w.width) + " AS ("
	pairs := len(src.around) / 2
	if w.mode.MariaDB {
		pairs = 0
	}
	if pairs > 0 {
		// MySQL forgets the order of a select in parentheses of its own.
		before = strings.TrimSuffix(before, "(")
		s.open = strings.TrimPrefix(s.open, ")")
	}
	w.insertText(always, src.start, before)
	for i := 1; i < pairs; i++ {
		w.replaceText(always, src.around[i], src.around[i]+1, "")
	}
	if w.mode.MariaDB && !src.limited {
		w.insertText(always, src.limitAt, src.noLimit())
	}
	for i := pairs; i < 2*pairs-1; i++ {
		w.replaceText(always, src.around[i], src.around[i]+1, "")
	}
	w.edit(numbered, src.end, src.end, 0)
	w.Select = s
	after := w.tok.Pos
	if err := w.tail(); err != nil {
		return err
	}
	s.mark = w.Table.Mark && w.lastCall < 0
	if w.Upsert {
		return w.ownColumns(after)
	}
	return nil
}

// source reads the select, of which the first token was read.
func (w *writer) source() (source, error) {
	src := source{start: w.tok.Pos}
	single := w.is("select") // one select without a table, so far
	var opens, closes []int  // parentheses before the first other token, and behind the last
	depth, around := 0, -1   // around: how many pairs no other token is outside of
	for ; !w.atEnd(); w.next() {
		switch w.tok.Kind {
		case '(':
			if around < 0 {
				opens = append(opens, w.tok.Pos)
			}
			depth++
			continue
		case ')':
			depth--
			if depth < 0 {
				return src, w.unread(w.Table)
			}
			if len(opens) > 0 {
				closes = append(closes, w.tok.Pos)
			}
			continue
		}
		if depth == 0 && (w.is("on") && w.peekIs("duplicate") || w.mode.MariaDB && w.is("returning") && operand(w.text[w.prevEnd-1])) {
			break
		}
		if around < 0 || depth < around {
			around = depth
		}
		closes = closes[:0]
		switch w.tok.Kind {
		case lex.Assign:
			return src, w.effects("an assignment to a variable")
		case lex.Word:
		default:
			continue
		}
		if w.sideEffect() {
			return src, w.effects(w.near())
		}
		if depth <= max(1, len(opens)) && w.is("order") {
			src.ordered = true
		}
		if depth > 0 {
			continue
		}
		switch {
		case w.isAny("union", "except", "intersect", "minus"):
			single = false
		case w.is("from"):
			single = single && w.peekIs("dual")
		case w.is("join"):
			single = false
		case w.is("limit"):
			src.limited = true
			src.bound = w.limit()
		case w.is("fetch"):
			src.limited = true
		case w.is("offset"):
			src.offset = w.offset()
		case w.isAny("for", "lock") && src.limitAt == 0 && w.locks():
			src.limitAt = w.prevEnd
		}
	}
	src.end = w.prevEnd
	if src.limitAt == 0 {
		src.limitAt = src.end
	}
	if w.tok.Kind == lex.Bad || depth > 0 || src.end <= src.start {
		w.broken = true
		return src, errBroken
	}
	if single {
		src.bound = 1
	}
	if around > 0 && around <= len(closes) {
		src.around = append(opens[:around], closes[len(closes)-around:]...)
	}
	return src, nil
}

func (p *parser) peekIs(word string) bool {
	t := p.peek()
	return t.Kind == lex.Word && lex.Is(p.text[t.Pos:t.End], word)
}

// noLimit is a LIMIT that lets all rows through, and keeps their order.
func (src *source) noLimit() string {
	if src.offset {
		return " FETCH NEXT 18446744073709551615 ROWS ONLY"
	}
	return " LIMIT 18446744073709551615"
}

// locks says whether a locking clause begins here, not an index hint.
func (p *parser) locks() bool {
	return p.is("lock") && p.peekIs("in") || p.is("for") && (p.peekIs("update") || p.peekIs("share"))
}

// offset says whether MariaDB's OFFSET … ROWS begins here. Without a limit it is
// ignored in a WITH.
func (p *parser) offset() bool {
	s := p.s
	s.Next()
	t := s.Next()
	word := p.text[t.Pos:t.End]
	return t.Kind == lex.Word && (lex.Is(word, "row") || lex.Is(word, "rows"))
}

// limit reads how many rows a LIMIT lets through, 0 if that is no small
// literal.
func (p *parser) limit() int {
	s := p.s
	var n [3]lex.Token
	for i := range n {
		n[i] = s.Next()
	}
	count := n[0]
	if n[1].Kind == ',' {
		count = n[2]
	}
	if count.Kind != lex.Number {
		return 0
	}
	rows, err := strconv.Atoi(p.text[count.Pos:count.End])
	if err != nil || rows > maxBound {
		return 0
	}
	return rows
}

// cte is the name of the select and of its columns, which hides theirs.
func cte(width int) string {
	var b strings.Builder
	b.WriteString("leafsql_s(")
	for i := range width {
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString("leafsql_" + strconv.Itoa(i+1))
	}
	b.WriteByte(')')
	return b.String()
}

// numbering makes the text that gives each row of the source its key.
func (w *writer) numbering(src source) *Select {
	s := &Select{}
	lacks := "" // a row lacks a key
	from := " FROM leafsql_s"
	open := ") SELECT "
	if (src.ordered || w.keyColumn >= 0) && !w.mode.MariaDB {
		// Merged into the outer query the select would lose its ORDER BY, and
		// evaluate its expression for the key more than once.
		open = ") SELECT /*+ NO_MERGE(leafsql_s) */ "
	}
	if w.keyColumn < 0 {
		s.Bound = src.bound
		s.open, s.shut = open+"leafsql_s.*, ", from
	} else {
		column := "leafsql_" + strconv.Itoa(w.keyColumn+1)
		switch {
		case w.Table.KeepZero:
			lacks = column + " IS NULL"
		case w.Table.IntegerKey:
			lacks = "IFNULL(ROUND(" + column + "),0)=0" // as the column would store it
		default:
			lacks = "IFNULL(" + column + ",'0')='0'"
		}
		var before, after strings.Builder
		for i := range w.width {
			name := "leafsql_" + strconv.Itoa(i+1)
			if i < w.keyColumn {
				before.WriteString(name + ", ")
			}
			if i > w.keyColumn {
				after.WriteString(", " + name)
			}
		}
		s.open = open + before.String() + "IF(" + lacks + ", "
		s.shut = ", " + column + ")" + after.String() + from
	}
	count := w.text[src.start:src.end]
	if src.offset && w.mode.MariaDB && !src.limited {
		count = w.text[src.start:src.limitAt] + src.noLimit() + w.text[src.limitAt:src.end]
	}
	s.Count = "WITH " + cte(w.width) + " AS (" + count + ") SELECT COUNT(*)" + from
	if lacks != "" {
		s.Count += " WHERE " + lacks
	}
	switch {
	case w.mode.MariaDB:
		// ROW_NUMBER() would not follow the select's ORDER BY.
		s.row, s.next = "(@leafsql_n:=@leafsql_n+1)", "@leafsql_n"
		s.shut += ", (SELECT @leafsql_n:=0) leafsql_z"
	case lacks == "":
		s.row = "ROW_NUMBER() OVER ()"
		s.next = s.row
	default:
		s.row = "CAST(SUM(" + lacks + ") OVER (ROWS UNBOUNDED PRECEDING) AS UNSIGNED)"
		s.next = s.row
	}
	return s
}

func (s *Select) size() int {
	return len(s.open) + len(s.shut) + len(s.row) + 2*len(s.next) + 5*maxDigits + 120
}

// number writes what ends the select and numbers its rows. The row behind the
// block fails with error 1690 in every sql_mode. UUID_SHORT() is never called:
// it makes a mixed binary log keep rows, since a replica could number them in
// another order.
func (s *Select) number(b []byte, f *Fill) []byte {
	b = append(b, s.open...)
	if s.mark {
		b = append(b, markOpen...)
		b = strconv.AppendInt(b, f.First, 10)
		b = append(b, ")-"...)
		b = strconv.AppendInt(b, f.First, 10)
		b = append(b, '+')
	}
	b = append(b, "IF("...)
	b = append(b, s.row...)
	b = append(b, "<="...)
	b = strconv.AppendInt(b, int64(f.N), 10)
	b = append(b, ", "...)
	b = strconv.AppendInt(b, f.First-1, 10)
	b = append(b, '+')
	b = append(b, s.next...)
	b = append(b, ", 18446744073709551615+"...)
	if strings.HasPrefix(s.next, "@") {
		b = append(b, '1')
	} else {
		b = append(b, s.next...)
	}
	b = append(b, ")+IF(0,UUID_SHORT(),0)"...)
	return append(b, s.shut...)
}

// ownColumns refuses an update list that names a column of the source, which is
// hidden from it now. The list stands in the text from the given place on.
func (w *writer) ownColumns(from int) error {
	list := w.text[from:w.prevEnd]
	s := w.s.Over(list)
	var parts [2]lex.Token // the last two tokens
	for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
		isName := t.Kind == lex.Word || t.Kind == lex.Name
		if isName && parts[1].Kind == '.' && (parts[0].Kind == lex.Word || parts[0].Kind == lex.Name) {
			q := unquote(list[parts[0].Pos:parts[0].End])
			last := s
			if last.Next().Kind != '.' && q != unquote(w.table) {
				return refuse(w.Table, "the update list names a column of the select", "give the value a column in the insert and use VALUES()")
			}
		}
		parts[0], parts[1] = parts[1], t
	}
	return nil
}
