package insert

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/internal/quote"
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

	// Named says that the update list names columns that are none of the table's, but
	// perhaps the source's. The copy is to run once while there are no rows, to learn
	// whether the server finds them.
	Named bool

	// ReadsID says that the copy may read LAST_INSERT_ID(), in its update list,
	// in RETURNING or in a trigger. It carries no marker then, and has to find
	// what the application's statement before left.
	ReadsID bool

	table      *Table
	fill       [3]string // the verb of what fills the stage, up to its name, and what follows that
	head       [2]string // likewise of the copy: INSERT, … INTO t PARTITION (…)
	alias      string    // the source's name for an update list
	names      []string  // its columns' names there, as Columns; "" for one without
	tail       string    // ON DUPLICATE KEY UPDATE … RETURNING …
	markedTail string    // the same with the upsert's marker
	upsert     bool
	marker     bool
}

// endSource notes that the source ends here.
func (w *insertReader) endSource() {
	w.source.to, w.sourceInput, w.tailEdit = w.prevEnd, w.params, len(w.edits)
}

// finishStaged notes a statement whose rows are staged.
func (w *insertReader) finishStaged() error {
	if w.Returning {
		return refuse(w.Table, "RETURNING beside rows that only the server knows", "read the rows and insert them with VALUES, or SELECT them afterwards")
	}
	if v := w.settings.Version; v < 80000 && !w.settings.MariaDB || v < 100200 && w.settings.MariaDB {
		return refuse(w.Table, "a statement whose rows only the server knows needs MySQL 8.0 or MariaDB 10.2", "read the rows and insert them with VALUES")
	}
	s := &Staging{table: w.Table, FillArgs: w.sourceInput, Load: w.loaded != nil, Columns: w.loaded, upsert: w.Upsert, Named: w.named}
	if !s.Load {
		s.Columns = w.columnNames()
	}
	if s.Named {
		if err := w.nameSource(s); err != nil {
			return err
		}
	}
	s.Key = w.Table.keyIn(s.Columns)
	verb, into, target := w.text[w.head.from:w.verbEnd], w.text[w.verbEnd:w.head.to], w.text[w.head.to:w.targetEnd]
	s.fill = [3]string{verb, into, " (" + quote.Names(s.Columns) + ") " + w.text[w.source.from:w.source.to]}
	if s.Load {
		s.fill = [3]string{verb, into, w.edited(w.source.from, w.source.to, w.edits[w.firstEdit:w.tailEdit])}
		verb, into = "INSERT", " INTO "
		switch {
		case w.Replace:
			verb = "REPLACE"
		case w.Ignore:
			into = " IGNORE INTO "
		}
	}
	s.head = [2]string{verb, into + target}
	if w.prevEnd > w.source.to {
		s.tail = " " + strings.TrimLeft(w.text[w.source.to:w.prevEnd], " ")
		s.markedTail = " " + strings.TrimLeft(w.edited(w.source.to, w.prevEnd, w.edits[w.tailEdit:]), " ")
	}
	if err := w.check(s); err != nil {
		return err
	}
	s.marker = w.Table.Marker && !s.ReadsID
	s.Clock = s.Clock && !s.Load && mayHint(s.head)
	w.forgetRows()
	w.Marker, w.SetIDAfter, w.Staging = s.marker, w.Table.Marker && !s.marker, s
	w.Inserts = append(w.Inserts, w.Insert)
	return nil
}

// forgetRows undoes what was noted of the rows: they go another way than by edits.
func (w *insertReader) forgetRows() {
	w.edits, w.texts = w.edits[:w.firstEdit], w.texts[:w.firstText]
	w.Insert.editSpan = span{w.firstEdit, w.firstEdit}
	w.Rows, w.Lacking, w.ArgKeys, w.Floor, w.OwnKey, w.Positional, w.Conditional = 0, 0, nil, 0, 0, false, false
}

// mayHint says whether a statement can be told its time: nothing such as SET
// STATEMENT … FOR stands before its verb, and no hint behind that.
func mayHint(head [2]string) bool {
	return len(head[0]) <= len("REPLACE") && !strings.Contains(head[1], "/*+")
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

// check looks at what the source does and depends on, and at what runs with each row.
// The source runs to its end before the first row is stored: where one could tell, the
// statement is refused. Of what it calls that is judged coarsely. Triggers alone, which
// are not refused for what they call, may tell: that is documented.
func (w *insertReader) check(s *Staging) error {
	var source, tail Effects
	source.scan(w.s.Over(w.text[w.source.from:w.source.to]))
	tail.scan(w.s.Over(s.tail))
	called, err := w.programs(&source)
	if err != nil {
		return err
	}
	byRow, err := w.programs(&tail)
	if err != nil {
		return err
	}
	s.Clock = source.Clock || len(source.Calls) > 0
	s.ReadsID = tail.ReadsID || byRow.ReadsID || byRow.Hidden || w.Table.ReadsID
	hidden, before := called.Hidden || byRow.Hidden, called.Before+byRow.Before
	byRow.Add(w.Table.Triggers)
	byRow.Add(tail)
	shared := called
	shared.Assigns, shared.Vars = called.Assigns || source.Assigns, slices.Concat(called.Vars, source.Vars)
	const early = ", and the source runs to its end before the first row is stored"
	const instead = "insert the rows with VALUES"
	switch {
	case source.SetsID:
		return w.setsIDApart("its source")
	case hidden:
		return refuse(w.Table, "it calls a stored function whose text this user may not see, and runs as several statements, which the function could notice",
			"GRANT SHOW_ROUTINE (on MariaDB SELECT ON mysql.proc) to this user, or "+instead)
	case called.SetsID:
		return w.setsIDApart("a stored function that its source calls")
	case called.names(w.Table.Name):
		return refuse(w.Table, "a stored function that its source calls uses the table"+early, instead)
	}
	if name := shared.disturbs(&byRow); name != "" {
		return refuse(w.Table, "its source, or a function that it calls, and what runs with each row use "+name+early, instead)
	}
	if call := cmp.Or(source.Before, tail.Before, before); call != "" {
		return refuse(w.Table, call+" would tell of leafsql's own statements, since this one runs as several", "put it into a user variable first")
	}
	return nil
}

// programs are the effects of what a piece of the statement runs without showing it:
// stored functions, and views with their functions. That is looked up only if it may
// run any.
func (w *insertReader) programs(e *Effects) (Effects, error) {
	if len(e.Calls) == 0 && len(e.Tables) == 0 || w.schema.Programs == nil {
		return Effects{}, nil
	}
	w.Expires = true
	return w.schema.Programs(w.Use, e.Calls, e.Tables)
}

// setsIDApart refuses LAST_INSERT_ID(…) in what runs as a statement of its own.
func (w *insertReader) setsIDApart(where string) error {
	return refuse(w.Table, where+" calls LAST_INSERT_ID(…), and is evaluated by a statement of its own", "SELECT LAST_INSERT_ID(…) before, or give the value without it")
}

// Fill is the text that puts the rows into a stage, which is named as SQL
// writes it. hint stands behind the verb.
func (s *Staging) Fill(stage, hint string) string {
	return s.fill[0] + hint + s.fill[1] + stage + s.fill[2]
}

// Look is the query that says how many rows lack a key, the highest key below
// a limit that rows bring along, and how many rows have another key than NULL.
func (s *Staging) Look(stage string, below int64) string {
	key := quote.Name(s.Columns[s.Key])
	limit := strconv.FormatInt(below, 10)
	highest := "CASE WHEN " + key + " < " + limit + " THEN " + key + " END"
	switch {
	case s.table.UUID != NoUUID:
		highest = "NULL"
	case !s.table.IntegerKey:
		highest = "CASE WHEN " + key + " REGEXP '^[0-9]{1,18}$' AND CAST(" + key + " AS UNSIGNED) < " + limit + " THEN CAST(" + key + " AS UNSIGNED) END"
	}
	return "SELECT COALESCE(SUM(" + s.lacks() + "), 0), MAX(" + highest + "), COUNT(" + key + ") FROM " + stage + " LIMIT 1 FOR UPDATE"
}

// lacks is the condition of a row without a key. A comparison of a text key
// with a number would compare numbers.
func (s *Staging) lacks() string {
	key := quote.Name(s.Columns[s.Key])
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
	columns := quote.Names(s.Columns)
	values := make([]string, len(s.Columns))
	inner := make([]string, len(s.Columns)) // of the derived table that hides the stage's names from an update list
	for i, c := range s.Columns {
		values[i] = quote.Name(c)
		if s.upsert {
			values[i] = "leafsql_" + strconv.Itoa(i+1)
			if s.names != nil && s.names[i] != "" {
				values[i] = quote.Name(s.names[i])
			}
			inner[i] = quote.Name(c) + " " + values[i]
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
		columns = quote.Names(append(slices.Clip(s.Columns), s.table.Key))
		values = append(values, s.id(b, count("ROW_NUMBER()"), marked))
	case b.N > 0:
		lacks := s.lacks()
		before := count("SUM(" + lacks + ")")
		if s.upsert {
			lacks = strings.ReplaceAll(lacks, quote.Name(s.Columns[s.Key]), values[s.Key])
		}
		values[s.Key] = "IF(" + lacks + ", " + s.id(b, before, marked) + ", " + values[s.Key] + ")"
	}
	from, tail := stage, s.tail
	if s.upsert {
		from = "(SELECT " + strings.Join(append(inner, "leafsql_n"), ", ") + " FROM " + stage + ") " + cmp.Or(s.alias, "leafsql_s")
	}
	if marked {
		tail = s.markedTail
	}
	return s.head[0] + hint + s.head[1] + " (" + columns + ") SELECT " + strings.Join(values, ", ") + " FROM " + from + " ORDER BY leafsql_n" + tail, marked
}
