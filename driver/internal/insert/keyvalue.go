package insert

import (
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// maxKeyTokens is the most tokens a key's value may have that is looked at
// closely. Longer ones are expressions.
const maxKeyTokens = 12

// keyValue reads the key's value in a row and notes what it needs.
func (w *writer) keyValue(open bool) error {
	var tokens [maxKeyTokens]lex.Token
	n, depth, start := 0, 0, w.tok.Pos
	params := w.params
	if w.tok.Kind == lex.Param {
		params-- // the cursor counted it already
	}
value:
	for ; ; n++ {
		switch w.tok.Kind {
		case '(':
			depth++
		case ')':
			if depth == 0 {
				break value
			}
			depth--
		case ',':
			if depth == 0 {
				break value
			}
		case lex.Word:
			if open && depth == 0 && n > 0 && w.closesList() {
				break value
			}
		case ';', lex.EOF, lex.Bad:
			w.broken = w.broken || depth > 0
			break value
		}
		if n < maxKeyTokens {
			tokens[n] = w.tok
		}
		w.next()
	}
	if n == 0 {
		return w.unread(w.Table)
	}
	end := w.prevEnd
	if n > maxKeyTokens {
		w.guard(start, end)
		return nil
	}
	value := inner(tokens[:n])
	switch w.classify(value) {
	case isHole:
		if n > 1 && straddles(w.text[start:end]) {
			return refuse(w.Table, "the key's value straddles a version comment", "write the value without it")
		}
		w.hole(key, start, end)
	case isArgument:
		t := value[0]
		w.edit(argument, t.Pos, t.End, len(w.ArgKeys))
		w.place(t.Pos)
		w.ArgKeys = append(w.ArgKeys, ArgKey{Row: w.Rows, Arg: params})
	case isExpression:
		w.guard(start, end)
	case isHexString:
		return refuse(w.Table, "the servers disagree on what a hexadecimal string is as a key", "write a number")
	case isMariaDB:
		if !w.mode.VersionKnown {
			w.need |= NeedVersion
		} else if !w.mode.MariaDB {
			return errBroken
		}
		w.hole(key, start, end)
	}
	return nil
}

// inner takes off the parentheses around a value.
func inner(t []lex.Token) []lex.Token {
	for len(t) > 2 && t[0].Kind == '(' && t[len(t)-1].Kind == ')' {
		for _, in := range t[1 : len(t)-1] {
			if in.Kind == ')' && t[1].Kind != '(' {
				return t
			}
		}
		t = t[1 : len(t)-1]
	}
	return t
}

// straddles says whether a version comment begins or ends in a piece of text.
func straddles(s string) bool {
	if strings.Contains(s, "/*!") || strings.Contains(s, "/*M!") {
		return true
	}
	end := strings.Index(s, "*/")
	return end >= 0 && !strings.Contains(s[:end], "/*")
}

type valueKind uint8

const (
	isExplicit   valueKind = iota
	isHole                 // asks for a key
	isArgument             // the argument decides
	isExpression           // known to the server only
	isHexString            // x'…'
	isMariaDB              // asks for a key, on MariaDB only
)

// classify says what a value without outer parentheses is as a key.
func (w *writer) classify(t []lex.Token) valueKind {
	text := w.text
	str := func(i int) string { return text[t[i].Pos:t[i].End] }
	word := func(i int, s string) bool { return t[i].Kind == lex.Word && lex.Is(str(i), s) }

	switch {
	case word(0, "default"):
		if len(t) == 1 {
			return isHole
		}
		if len(t) > 3 && t[1].Kind == '(' && t[len(t)-1].Kind == ')' && w.namesKey(t[2:len(t)-1]) {
			return isHole
		}
		return isExpression
	case t[0].Kind == lex.Word && len(t) == 2 && t[1].Kind == lex.String && str(0)[0] == '_':
		if word(0, "_utf8mb4") || word(0, "_utf8") || word(0, "_latin1") || word(0, "_ascii") {
			return w.stringKey(t[1:])
		}
		return isExpression
	case t[0].Kind == lex.String:
		return w.stringKey(t)
	}
	if w.namesKey(t) {
		return isHole
	}
	signs := 0
	for t[0].Kind == '-' || t[0].Kind == '+' {
		t = t[1:]
		signs++
		if len(t) == 0 {
			return isExpression
		}
	}
	if len(t) > 1 {
		return isExpression
	}
	switch t[0].Kind {
	case lex.Number:
		return w.zeroOr(numberIsZero(str(0), w.Table.IntegerKey))
	case lex.BitString:
		return w.zeroOr(strings.Trim(str(0)[1:], "'0") == "")
	}
	if signs > 0 {
		return isExpression
	}
	switch t[0].Kind {
	case lex.Param:
		return isArgument
	case lex.NullN:
		return isMariaDB
	case lex.HexString:
		if w.Table.IntegerKey {
			return isHexString
		}
		return isExplicit
	case lex.Word:
		switch {
		case word(0, "null"):
			return isHole
		case word(0, "ignore"):
			return isMariaDB
		case word(0, "false"):
			return w.zeroOr(true)
		case word(0, "true"):
			return isExplicit
		}
	}
	return isExpression
}

// zeroOr says what a literal is that may be 0.
func (w *writer) zeroOr(zero bool) valueKind {
	if zero && !w.Table.KeepZero {
		return isHole
	}
	return isExplicit
}

// namesKey says whether tokens are the key column's name, perhaps qualified.
func (w *writer) namesKey(t []lex.Token) bool {
	for i, x := range t {
		if i%2 == 1 && x.Kind != '.' || i%2 == 0 && x.Kind != lex.Word && x.Kind != lex.Name {
			return false
		}
	}
	if len(t)%2 == 0 || len(t) > 5 {
		return false
	}
	last := t[len(t)-1]
	return w.isKey(w.text[last.Pos:last.End])
}

// stringKey says what a string literal, perhaps in several parts, is as a key.
func (w *writer) stringKey(t []lex.Token) valueKind {
	var content string
	for _, x := range t {
		s := w.text[x.Pos:x.End]
		if x.Kind != lex.String {
			return isExpression
		}
		if s[0]|0x20 == 'n' {
			s = s[1:]
		}
		if s = s[1 : len(s)-1]; content == "" {
			content = s
		} else if s != "" {
			content += s
		}
		if len(content) > 64 {
			return isExpression
		}
	}
	if !w.Table.IntegerKey {
		return w.zeroOr(content == "0")
	}
	switch zero, clean := stringIsZero(content); {
	case !clean:
		return isExpression
	default:
		return w.zeroOr(zero)
	}
}
