package staged

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"

	"github.com/google/uuid"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/quote"
)

// These statements run in place of a staged statement. stage is the name of the stage, the temporary table, quoted as
// in SQL. hint follows the verb. The stage's column leafsql_n numbers its rows in their order.
//
//	INSERT INTO stage (a, b) SELECT …                      FillQuery
//	SELECT …, MAX(id) FROM stage FOR UPDATE                CountQuery, if the key is listed
//	SELECT leafsql_n FROM stage … LIMIT 1 FOR UPDATE       LastQuery, if there are many rows
//	INSERT INTO t (a, b, id) SELECT a, b, … FROM stage     CopyQuery

// FillQuery returns the statement that writes the rows to a stage. The user's source is in it byte for byte.
func FillQuery(s *insert.Staging, stage, hint string) string {
	return s.Fill[0] + hint + s.Fill[1] + stage + s.Fill[2]
}

// CountQuery returns the query for four values: the number of rows without a key if a 0 is not a key, the
// highest explicit key below a limit, the number of rows with a key other than NULL, and whether a 0 is a key in this
// session.
func CountQuery(in *insert.Insert, stage string, below int64) string {
	key := quote.Name(in.Staging.Columns[in.Staging.Key])
	limit := strconv.FormatInt(below, 10)
	highest := "CASE WHEN " + key + " < " + limit + " THEN " + key + " END"
	switch {
	case in.Table.UUID != insert.NoUUID:
		highest = "NULL"
	case !in.Table.IntegerKey:
		highest = "CASE WHEN " + key + " REGEXP '^[0-9]{1,18}$' AND CAST(" + key + " AS UNSIGNED) < " + limit + " THEN CAST(" + key + " AS UNSIGNED) END"
	}
	return "SELECT COALESCE(SUM(" + lacksKey(in.Table, key, false) + "), 0), MAX(" + highest + "), COUNT(" + key + "), FIND_IN_SET('NO_AUTO_VALUE_ON_ZERO', @@sql_mode) FROM " + stage + " LIMIT 1 FOR UPDATE"
}

// LastQuery returns the query for the number of the last row of a stage.
func LastQuery(stage string) string {
	return "SELECT leafsql_n FROM " + stage + " ORDER BY leafsql_n DESC LIMIT 1 FOR UPDATE"
}

// lacksKey returns the condition that a row has no key. key is the expression for the row's key. A text key is
// not compared with a number, since that would be a numeric comparison.
func lacksKey(t *insert.Table, key string, keepZero bool) string {
	switch {
	case keepZero, t.ZeroKey == insert.KeyGiven:
		return key + " IS NULL"
	case t.IntegerKey:
		return "(" + key + " IS NULL OR " + key + " = 0)"
	}
	switch t.UUID {
	case insert.UUIDText:
		return "(" + key + " IS NULL OR CAST(" + key + " AS CHAR) IN ('0', '', '00000000-0000-0000-0000-000000000000'))"
	case insert.UUIDBytes:
		return "(" + key + " IS NULL OR " + key + " = UNHEX(REPEAT('00', LENGTH(" + key + "))))"
	}
	return "(" + key + " IS NULL OR " + key + " = '0')"
}

// idExpression returns the expression for the id of a row. k is the expression for the number of earlier rows
// that get ids.
func idExpression(form insert.UUIDForm, b insert.Block, k string, marked bool) string {
	switch {
	case marked:
		return insert.Marker(b.First) + "+(" + k + ")"
	case form == insert.NoUUID:
		return strconv.FormatInt(b.First, 10) + "+(" + k + ")"
	}
	low := "LPAD(HEX(CAST(" + strconv.FormatUint(binary.BigEndian.Uint64(b.UUID[8:]), 10) + "+(" + k + ") AS UNSIGNED)), 16, '0')"
	if form == insert.UUIDBytes {
		return "UNHEX(CONCAT('" + hex.EncodeToString(b.UUID[:8]) + "', " + low + "))"
	}
	text := uuid.UUID(b.UUID).String()
	return "LOWER(CONCAT('" + text[:len("00000000-0000-0000-")] + "', LEFT(" + low + ", 4), '-', RIGHT(" + low + ", 12)))"
}

// CopyQuery returns the statement that copies the rows of a stage to the table, in the stage's order, with
// the ids of a block for rows without a key. marked reports whether the statement contains the marker.
func CopyQuery(in *insert.Insert, stage, hint string, b insert.Block) (text string, marked bool) {
	s := in.Staging
	columns := quote.Names(s.Columns)
	values := make([]string, len(s.Columns))
	inner := make([]string, len(s.Columns)) // the columns of the derived table that hides the stage's names from an update list
	for i, c := range s.Columns {
		values[i] = quote.Name(c)
		if in.Duplicates >= insert.Update {
			values[i] = "leafsql_" + strconv.Itoa(i+1)
			if s.Names != nil && s.Names[i] != "" {
				values[i] = quote.Name(s.Names[i])
			}
			inner[i] = quote.Name(c) + " " + values[i]
		}
	}
	marked = in.Way == insert.IDInText && b.N > 0
	// count returns an expression for the number of earlier rows without a key. The window is in the inner select: in
	// the outer select, it would make MySQL treat VALUES() of a view's columns as the stored values.
	count := func(rows string) string {
		number := rows + " OVER (ORDER BY leafsql_n)-1"
		if b.Numbered {
			number = "leafsql_n-1"
		}
		switch {
		case b.N == 1: // without a window, which would take as long as the rest of the copy
			return "0"
		case in.Duplicates >= insert.Update:
			inner = append(inner, number+" leafsql_k")
			return "leafsql_k"
		}
		return number
	}
	switch {
	case s.Key < 0:
		columns = quote.Names(append(slices.Clip(s.Columns), in.Table.Key))
		values = append(values, idExpression(in.Table.UUID, b, count("ROW_NUMBER()"), marked))
	case b.N > 0:
		before := count("SUM(" + lacksKey(in.Table, quote.Name(s.Columns[s.Key]), b.KeepZero) + ")")
		key := values[s.Key]
		values[s.Key] = "IF(" + lacksKey(in.Table, key, b.KeepZero) + ", " + idExpression(in.Table.UUID, b, before, marked) + ", " + key + ")"
	}
	from, tail := stage, s.Tail
	if in.Duplicates >= insert.Update {
		from = "(SELECT " + strings.Join(append(inner, "leafsql_n"), ", ") + " FROM " + stage + ") " + cmp.Or(s.Alias, "leafsql_s")
	}
	if marked {
		tail = s.MarkedTail
	}
	return s.Head[0] + hint + s.Head[1] + " (" + columns + ") SELECT " + strings.Join(values, ", ") + " FROM " + from + " ORDER BY leafsql_n" + tail, marked
}
