package read

import (
	"hash/maphash"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// WriteShape writes the parts of a statement that decide which privileges it needs on its table: its verb, the columns
// that it writes and its update list, without comments and literals. Statements that differ in their values
// alone have the same shape.
func WriteShape(h *maphash.Hash, in *insert.Insert, settings insert.Settings) {
	for _, text := range []string{in.Written, in.Updates} {
		s := settings.Scanner(text)
		for t := s.Next(); t.Kind != lex.EOF && t.Kind != lex.Bad; t = s.Next() {
			switch word := text[t.Pos:t.End]; {
			case t.Kind == lex.Number, t.Kind == lex.String, t.Kind == lex.HexString, t.Kind == lex.BitString, t.Kind == lex.Param:
			case t.Kind == '-', t.Kind == '+':
			case t.Kind == lex.Word && (lex.Is(word, "null") || lex.Is(word, "true") || lex.Is(word, "false") || lex.Is(word, "default")):
			default:
				h.WriteString(word)
				h.WriteByte(0)
			}
		}
	}
}
