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

	// What the texts are made of.
	Table      *Table
	FillText   [3]string // the verb of what fills the stage, up to its name, and what follows that
	CopyHead   [2]string // likewise of the copy: INSERT, … INTO t PARTITION (…)
	Alias      string    // the source's name for an update list
	Names      []string  // its columns' names there, as Columns; "" for one without
	Tail       string    // ON DUPLICATE KEY UPDATE … RETURNING …
	MarkedTail string    // the same with the upsert's marker
	Upsert     bool
	Marker     bool
}

// Fill is the text that puts the rows into a stage, which is named as SQL
// writes it. hint stands behind the verb.
func (s *Staging) Fill(stage, hint string) string {
	return s.FillText[0] + hint + s.FillText[1] + stage + s.FillText[2]
}

// Look returns the query for how many rows lack a key if a 0 is none, the highest key below
// a limit that rows bring along, how many rows have another key than NULL, and whether the
// session keeps a 0.
func (s *Staging) Look(stage string, below int64) string {
	key := quote.Name(s.Columns[s.Key])
	limit := strconv.FormatInt(below, 10)
	highest := "CASE WHEN " + key + " < " + limit + " THEN " + key + " END"
	switch {
	case s.Table.UUID != NoUUID:
		highest = "NULL"
	case !s.Table.IntegerKey:
		highest = "CASE WHEN " + key + " REGEXP '^[0-9]{1,18}$' AND CAST(" + key + " AS UNSIGNED) < " + limit + " THEN CAST(" + key + " AS UNSIGNED) END"
	}
	return "SELECT COALESCE(SUM(" + s.lacks(false) + "), 0), MAX(" + highest + "), COUNT(" + key + "), FIND_IN_SET('NO_AUTO_VALUE_ON_ZERO', @@sql_mode) FROM " + stage + " LIMIT 1 FOR UPDATE"
}

// lacks is the condition of a row without a key. A comparison of a text key
// with a number would compare numbers.
func (s *Staging) lacks(keepZero bool) string {
	key := quote.Name(s.Columns[s.Key])
	switch {
	case keepZero, s.Table.ZeroKey == Given:
		return key + " IS NULL"
	case s.Table.IntegerKey:
		return "(" + key + " IS NULL OR " + key + " = 0)"
	}
	switch s.Table.UUID {
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
	case s.Table.UUID == NoUUID:
		return strconv.FormatInt(b.First, 10) + "+(" + k + ")"
	}
	low := "LPAD(HEX(CAST(" + strconv.FormatUint(binary.BigEndian.Uint64(b.UUID[8:]), 10) + "+(" + k + ") AS UNSIGNED)), 16, '0')"
	if s.Table.UUID == UUIDBytes {
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
		if s.Upsert {
			values[i] = "leafsql_" + strconv.Itoa(i+1)
			if s.Names != nil && s.Names[i] != "" {
				values[i] = quote.Name(s.Names[i])
			}
			inner[i] = quote.Name(c) + " " + values[i]
		}
	}
	marked = s.Marker && b.N > 0
	// count numbers the rows that lack a key. Beside a window in the select
	// itself MySQL takes VALUES() of a view's columns for what is there already.
	count := func(rows string) string {
		switch {
		case b.N == 1: // a window costs half as much as all else of the copy
			return "0"
		case s.Upsert:
			inner = append(inner, rows+" OVER (ORDER BY leafsql_n)-1 leafsql_k")
			return "leafsql_k"
		}
		return rows + " OVER (ORDER BY leafsql_n)-1"
	}
	switch {
	case s.Key < 0:
		columns = quote.Names(append(slices.Clip(s.Columns), s.Table.Key))
		values = append(values, s.id(b, count("ROW_NUMBER()"), marked))
	case b.N > 0:
		lacks := s.lacks(b.KeepZero)
		before := count("SUM(" + lacks + ")")
		if s.Upsert {
			lacks = strings.ReplaceAll(lacks, quote.Name(s.Columns[s.Key]), values[s.Key])
		}
		values[s.Key] = "IF(" + lacks + ", " + s.id(b, before, marked) + ", " + values[s.Key] + ")"
	}
	from, tail := stage, s.Tail
	if s.Upsert {
		from = "(SELECT " + strings.Join(append(inner, "leafsql_n"), ", ") + " FROM " + stage + ") " + cmp.Or(s.Alias, "leafsql_s")
	}
	if marked {
		tail = s.MarkedTail
	}
	return s.CopyHead[0] + hint + s.CopyHead[1] + " (" + columns + ") SELECT " + strings.Join(values, ", ") + " FROM " + from + " ORDER BY leafsql_n" + tail, marked
}
