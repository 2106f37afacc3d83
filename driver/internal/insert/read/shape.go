package read

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Shape returns the parts of a statement that decide which privileges it needs on its table: its verb, the columns
// that it writes and its update list, without comments and values. Statements that differ in their rows
// alone have the same shape.
func Shape(in *insert.Insert, settings insert.Settings) string {
	var b strings.Builder
	for _, text := range []string{in.Written, in.Updates} {
		s := scanner(text, settings)
		for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
			switch t.Kind {
			case lex.Number, lex.String, lex.HexString, lex.BitString, lex.Param:
			default:
				b.WriteString(text[t.Pos:t.End])
				b.WriteByte(' ')
			}
		}
	}
	return b.String()
}
