package insert

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
)

// A Staging is how a statement runs whose rows only the server knows: its source
// puts them, byte for byte as the user wrote it, into the stage: a temporary
// table with the target's own column types. There the rows are counted and
// looked at, and from there they are copied with their keys.
//
//	INSERT INTO stage (a, b) SELECT …                      Fill
//	SELECT …, MAX(id) FROM stage FOR UPDATE                Look, if the key is listed
//	INSERT INTO t (a, b, id) SELECT a, b, … FROM stage     Copy
//
// The stage has a column leafsql_n that numbers its rows in their order.
type Staging struct {
	Columns []string // what the statement writes, as the user spells it
	Key     int      // which of them is the key, -1 where it is not listed

	// FillArgs of the text's placeholders belong to Fill, the rest to Copy.
	FillArgs int

	Clock bool // the source calls the clock, or what may do so, and can be told the time
	Load  bool // it is LOAD DATA

	// Unclear says that the update list has names that may be the source's as well.
	Unclear bool

	// Effects says that the source does more than read tables: it assigns a
	// variable, moves a sequence or calls what is not the server's own function.
	// MariaDB may do so even where it only explains it.
	Effects bool

	// Variables says that the source names a user variable.
	Variables bool

	// ReadsID says that the copy may read LAST_INSERT_ID(), in its update list,
	// in RETURNING or in a trigger. It carries no marker then, and has to find
	// what the application's statement before left.
	ReadsID bool

	table      *Table
	fill       [2]string // around the stage's name
	head       string    // INSERT … INTO t PARTITION (…)
	verb       int       // in head, and in fill[0], behind the INSERT
	priority   int       // in head, behind LOW_PRIORITY and the like
	tail       string    // ON DUPLICATE KEY UPDATE … RETURNING …
	markedTail string    // the same with the upsert's marker
	upsert     bool
	marker     bool
}

func (s *Staging) same(o *Staging) bool {
	return slices.Equal(s.Columns, o.Columns) && s.Key == o.Key && s.FillArgs == o.FillArgs && s.fill == o.fill && s.head == o.head &&
		s.tail == o.tail && s.markedTail == o.markedTail && s.marker == o.marker && s.ReadsID == o.ReadsID &&
		s.Clock == o.Clock && s.Unclear == o.Unclear && s.Effects == o.Effects && s.Variables == o.Variables
}

// endSource notes that the source ends here.
func (w *insertReader) endSource() {
	w.source.to, w.sourceInput, w.tailEdit = w.pieceEnd(), w.params, len(w.edits)
}

// finishStaged notes a statement whose rows are staged.
func (w *insertReader) finishStaged() error {
	if w.rows {
		return refuse(w.Table, "ANALYZE runs a statement whose rows only the server knows", "run it without ANALYZE")
	}
	s := &Staging{table: w.Table, FillArgs: w.sourceInput, Load: w.loaded != nil, Columns: w.loaded, upsert: w.Upsert}
	if !s.Load {
		s.Columns = w.columnNames()
	}
	s.Key = w.Table.keyIn(s.Columns)
	head, source := w.text[w.head.from:w.head.to], w.text[w.source.from:w.source.to]
	s.fill = [2]string{head, " (" + quoteList(s.Columns) + ") " + source}
	s.head, s.verb, s.priority = head+w.text[w.head.to:w.targetEnd], w.verbEnd-w.head.from, w.priority-w.head.from
	if s.Load {
		s.fill[1] = w.edited(w.source.from, w.source.to, w.edits[w.firstEdit:w.tailEdit])
		verb := "INSERT"
		switch {
		case w.Replace:
			verb = "REPLACE"
		case w.Ignore:
			verb = "INSERT IGNORE"
		}
		s.head, s.verb = verb+" INTO "+w.text[w.head.to:w.targetEnd], len(verb)
	}
	end := max(w.prevEnd, w.source.to)
	if end > w.source.to {
		s.tail = " " + strings.TrimLeft(w.edited(w.source.to, end, nil), " ")
		s.markedTail = " " + strings.TrimLeft(w.edited(w.source.to, end, w.edits[w.tailEdit:]), " ")
	}
	for _, piece := range []string{w.text[w.head.from:w.targetEnd], source, s.tail} {
		if !whole(w.s.Over(piece)) {
			return w.straddled()
		}
	}
	if err := w.check(s); err != nil {
		return err
	}
	s.marker = w.Table.Marker && !s.ReadsID
	s.Clock = s.Clock && !s.Load && hasRoom(s.head, s.verb)
	w.edits, w.texts = w.edits[:w.firstEdit], w.texts[:w.firstText]
	w.Insert.editSpan = span{w.firstEdit, w.firstEdit}
	w.Rows, w.Lacking, w.ArgKeys, w.Floor, w.OwnKey, w.Positional, w.Conditional = 0, 0, nil, 0, 0, false, false
	w.Marker, w.Late, w.Staging = s.marker, w.Table.Marker && !s.marker, s
	w.inserts = append(w.inserts, w.Insert)
	return nil
}

// edited is a piece of the text with edits of fixed texts.
func (w *insertReader) edited(from, to int, edits []edit) string {
	var b strings.Builder
	for _, e := range edits {
		b.WriteString(w.text[from:e.pos])
		b.WriteString(w.texts[e.ref])
		from = int(e.end)
	}
	b.WriteString(w.text[from:to])
	return b.String()
}

// check looks at what the source touches, and what follows it. What another
// statement would change before they run is refused.
func (w *insertReader) check(s *Staging) error {
	var source, tail touches
	source.touch(w.s.Over(w.text[w.source.from:w.source.to]))
	tail.touch(w.s.Over(s.tail))
	s.Clock, s.Unclear = source.clock || source.stored != "", w.named
	s.Effects, s.Variables = source.stored != "" || source.assigns || source.sequences, source.variables
	s.ReadsID = tail.readsID || tail.stored != "" || tail.selects && w.settings.ViewsReadID || w.Table.ReadsID
	switch {
	case s.upsert && source.assigns && tail.variables:
		return refuse(w.Table, "the select assigns a variable, and the update list reads one row by row", "give the value a column of the insert and use VALUES()")
	case source.setsID:
		return w.setsIDApart("its source")
	}
	return w.refuseBefore(cmp.Or(source.before, tail.before))
}

// setsIDApart refuses LAST_INSERT_ID(…) in what runs as a statement of its own.
func (w *insertReader) setsIDApart(where string) error {
	return refuse(w.Table, where+" calls LAST_INSERT_ID(…), and is evaluated by a statement of its own", "SELECT LAST_INSERT_ID(…) before, or give the value without it")
}

// quoteList writes names as a list.
func quoteList(names []string) string {
	var b strings.Builder
	for i, n := range names {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(quoteName(n))
	}
	return b.String()
}

// Fill is the text that puts the rows into a stage, which is named as SQL
// writes it. hint stands behind the verb.
func (s *Staging) Fill(stage, hint string) string {
	if s.Load {
		hint = ""
	}
	return s.fill[0][:s.verb] + hint + s.fill[0][s.verb:] + stage + s.fill[1]
}

// Explain is a text by which the server says whether it would run the statement
// as the user wrote it, and to which the key, which has no default, is no error.
func (s *Staging) Explain(ignore bool) string {
	hint := " IGNORE"
	if ignore {
		hint = ""
	}
	verb := s.verb - len("INSERT") // behind a SET STATEMENT … FOR
	return s.head[:verb] + "EXPLAIN " + s.head[verb:s.priority] + hint + s.head[s.priority:] + s.fill[1] + s.tail
}

// Look is the query that says how many rows lack a key, and the highest key
// below a limit that rows bring along.
func (s *Staging) Look(stage string, below int64) string {
	key := quoteName(s.Columns[s.Key])
	limit := strconv.FormatInt(below, 10)
	highest := "CASE WHEN " + key + " < " + limit + " THEN " + key + " END"
	switch {
	case s.table.UUID != NoUUID:
		highest = "NULL"
	case !s.table.IntegerKey:
		highest = "CASE WHEN " + key + " REGEXP '^[0-9]{1,18}$' AND CAST(" + key + " AS UNSIGNED) < " + limit + " THEN CAST(" + key + " AS UNSIGNED) END"
	}
	return "SELECT COALESCE(SUM(" + s.lacks() + "), 0), MAX(" + highest + ") FROM " + stage + " LIMIT 1 FOR UPDATE"
}

// lacks is the condition of a row without a key. A comparison of a text key
// with a number would compare numbers.
func (s *Staging) lacks() string {
	key := quoteName(s.Columns[s.Key])
	switch {
	case s.table.KeepZero:
		return key + " IS NULL"
	case s.table.IntegerKey:
		return "(" + key + " IS NULL OR " + key + " = 0)"
	}
	switch s.table.UUID {
	case UUIDText:
		return "(" + key + " IS NULL OR CAST(" + key + " AS CHAR) IN ('0', '', '00000000-0000-0000-0000-000000000000'))"
	case UUIDBytes:
		return "(" + key + " IS NULL OR " + key + " = UNHEX(REPEAT('00', LENGTH(" + key + "))))"
	}
	return "(" + key + " IS NULL OR " + key + " = '0')"
}

// id is the expression for the id of a row, k of which stand before it.
func (s *Staging) id(b Block, k string, marked bool) string {
	switch {
	case marked:
		return markerOpen + strconv.FormatInt(b.First, 10) + ")+(" + k + ")"
	case s.table.UUID == NoUUID:
		return strconv.FormatInt(b.First, 10) + "+(" + k + ")"
	}
	low := "LPAD(HEX(CAST(" + strconv.FormatUint(binary.BigEndian.Uint64(b.UUID[8:]), 10) + "+(" + k + ") AS UNSIGNED)), 16, '0')"
	if s.table.UUID == UUIDBytes {
		return "UNHEX(CONCAT('" + hex.EncodeToString(b.UUID[:8]) + "', " + low + "))"
	}
	text := string(appendUUID(nil, b.UUID))
	return "LOWER(CONCAT('" + text[:len("00000000-0000-0000-")] + "', LEFT(" + low + ", 4), '-', RIGHT(" + low + ", 12)))"
}

// Copy is the text that writes the rows of a stage to the table, with the ids
// of a block for those that lack a key, in the stage's order. hint stands
// behind the verb. marked says whether it carries the marker.
func (s *Staging) Copy(stage, hint string, b Block) (text string, marked bool) {
	columns := quoteList(s.Columns)
	values := make([]string, len(s.Columns))
	inner := make([]string, len(s.Columns)) // of the derived table that hides the stage's names from an update list
	for i, c := range s.Columns {
		values[i] = quoteName(c)
		if s.upsert {
			values[i] = "leafsql_" + strconv.Itoa(i+1)
			inner[i] = quoteName(c) + " " + values[i]
		}
	}
	marked = s.marker && b.N > 0
	// count numbers the rows that lack a key. Beside a window in the select
	// itself MySQL takes VALUES() of a view's columns for what is there already.
	count := func(rows string) string {
		switch {
		case b.N == 1: // a window costs half as much as all else of the copy
			return "0"
		case s.upsert:
			inner = append(inner, rows+" OVER (ORDER BY leafsql_n)-1 leafsql_k")
			return "leafsql_k"
		}
		return rows + " OVER (ORDER BY leafsql_n)-1"
	}
	switch {
	case s.Key < 0:
		columns = quoteList(append(slices.Clip(s.Columns), s.table.Key))
		values = append(values, s.id(b, count("ROW_NUMBER()"), marked))
	case b.N > 0:
		lacks := s.lacks()
		before := count("SUM(" + lacks + ")")
		if s.upsert {
			lacks = strings.ReplaceAll(lacks, quoteName(s.Columns[s.Key]), values[s.Key])
		}
		values[s.Key] = "IF(" + lacks + ", " + s.id(b, before, marked) + ", " + values[s.Key] + ")"
	}
	from, tail := stage, s.tail
	if s.upsert {
		from = "(SELECT " + strings.Join(append(inner, "leafsql_n"), ", ") + " FROM " + stage + ") leafsql_s"
	}
	if marked {
		tail = s.markedTail
	}
	return s.head[:s.verb] + hint + s.head[s.verb:] + " (" + columns + ") SELECT " + strings.Join(values, ", ") + " FROM " + from + " ORDER BY leafsql_n" + tail, marked
}
