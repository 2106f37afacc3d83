package insert

import "github.com/leafsql/leafsql/driver/internal/lex"

func refuse(t *Table, reason, way string) error {
	return &Refusal{DB: t.DB, Table: t.Name, Reason: reason, Way: way}
}

// unread ends the reading of a statement that goes on in a way not known. Where
// the text ends in the middle of a statement no server runs it, and its own
// error says most; all else is refused.
func (p *parser) unread(t *Table) error {
	if p.atEnd() {
		p.broken = true
		return errBroken
	}
	return refuse(t, "the statement cannot be read at "+p.near(), "write it in a simpler form, or with an explicit "+quoteName(t.Key))
}

// near quotes the token at the place for a message, no string or number, which
// may be private.
func (p *parser) near() string {
	switch p.tok.Kind {
	case lex.String, lex.HexString, lex.BitString, lex.Number:
		return "a literal"
	}
	s := p.str()
	if len(s) > 40 {
		s = s[:40] + "…"
	}
	return "`" + s + "`"
}

// errBroken marks a statement that no server runs.
var errBroken = brokenError{}

type brokenError struct{}

func (brokenError) Error() string { return "broken statement" }
