package insert

import "github.com/leafsql/leafsql/driver/internal/lex"

// values reads the rows of VALUES and what follows them.
func (w *writer) values() error {
	start := w.cursor
	w.next()
	for {
		w.accept("row")
		if w.tok.Kind != '(' {
			return w.unread(w.Table)
		}
		w.next()
		if w.Rows == 0 && w.form != listed {
			w.firstRow(start.tok.Pos)
		}
		if err := w.row(); err != nil {
			return err
		}
		w.Rows++
		if w.tok.Kind != ',' {
			break
		}
		w.next()
	}
	if w.isAny("union", "except", "intersect") { // a select, to MariaDB
		w.restart(start)
		return w.selected()
	}
	return w.tail()
}

// restart forgets the rows, to read them in another way.
func (w *writer) restart(at cursor) {
	w.cursor = at
	w.made, w.texts = w.made[:w.firstEdit+w.list], w.texts[:w.firstText+w.list]
	w.Rows, w.Holes, w.ArgKeys, w.Wraps = 0, 0, nil, false
	w.firstPlace, w.lastHole = -1, -1
}

// firstRow decides what a statement without columns means: rows without values
// name none, others name all. All are written out even where every row has its
// key: after an ALTER TABLE that moved the columns another value would be the
// key, perhaps one that asks the server for its own. verb is where
// VALUES stands.
func (w *writer) firstRow(verb int) {
	list, kind := quoteName(w.Table.Key), filled
	if w.tok.Kind != ')' {
		list, kind = w.allColumns(), always
		w.Wraps = true
	}
	if w.form == empty {
		w.texts[w.firstText] = list
		w.made[w.firstEdit].kind = kind
		if w.tok.Kind != ')' {
			w.form = positional
		}
		return
	}
	w.insertText(kind, verb, "("+list+") ")
	if w.tok.Kind == ')' {
		w.form = empty
	}
}

// row reads a row, whose first parenthesis was read.
func (w *writer) row() error {
	if w.tok.Kind == ')' {
		if w.form != empty {
			return errBroken // a row of another length
		}
		w.hole(key, w.tok.Pos, w.tok.Pos)
		w.next()
		return nil
	}
	if w.form == empty {
		return errBroken
	}
	if w.keyColumn < 0 && w.form == listed {
		if !w.closing() {
			return w.unread(w.Table)
		}
		w.hole(keyComma, w.tok.Pos, w.tok.Pos)
		w.next()
		return nil
	}
	n := 0
	for ; ; n++ {
		if n == w.keyColumn {
			if err := w.keyValue(false); err != nil {
				return err
			}
		} else {
			w.expr(false)
		}
		if w.tok.Kind != ',' {
			n++
			break
		}
		w.next()
	}
	if w.tok.Kind != ')' {
		return w.unread(w.Table)
	}
	if n != w.width && w.form != positional {
		return errBroken // positional: the server tells (1136)
	}
	if w.keyColumn < 0 {
		w.hole(keyComma, w.tok.Pos, w.tok.Pos)
	}
	w.next()
	return nil
}

// closing goes to the parenthesis that closes a row.
func (w *writer) closing() bool {
	depth := 0
	value := false // since the last comma
	for {
		switch w.tok.Kind {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				w.broken = w.broken || !value
				return true
			}
			depth--
		case ',':
			if depth == 0 {
				w.broken = w.broken || !value
				value = false
				w.next()
				continue
			}
		case ';', lex.EOF, lex.Bad:
			return false
		}
		value = true
		w.next()
	}
}

// hole notes a row without a key, which goes to text[pos:end].
func (w *writer) hole(kind editKind, pos, end int) {
	if kind == key && pos > 0 {
		if c := w.text[pos-1]; c == '!' || '0' <= c && c <= '9' {
			kind = keySpace // it would read as the version of a version comment
		}
	}
	w.edit(kind, pos, end, w.params)
	w.place(pos)
	w.lastHole = pos
	w.Holes++
}

// place notes where a key may be filled in.
func (w *writer) place(pos int) {
	if w.firstPlace < 0 {
		w.firstPlace = pos
	}
}

// guard writes the key's expression so that it fails for what would ask the
// server to generate: error 1690.
func (w *writer) guard(pos, end int) {
	open, shut := w.guards()
	w.insertText(always, pos, open)
	w.insertText(always, end, shut)
	w.Wraps = true
}

// guards is what stands before and behind a guarded expression, which may have
// side effects and is evaluated once. What it is compared as is what is stored:
// an integer column would round 0.4 to 0. Every integer is exact as a DECIMAL.
func (w *writer) guards() (open, shut string) {
	if w.Table.KeepZero || !w.Table.IntegerKey {
		return "IFNULL(", ",18446744073709551615+1)"
	}
	return "IF((" + keyVariable + ":=ROUND(CAST(", " AS DECIMAL(60,30))))<>0,CAST(" + keyVariable + " AS DECIMAL(30)),18446744073709551615+1)"
}

// keyVariable holds a key while it is looked at.
const keyVariable = "@leafsql_key"
