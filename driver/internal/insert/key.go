package insert

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// A Meaning is what a value in the key column says.
type Meaning uint8

const (
	Given   Meaning = iota // it is a key
	Wanted                 // please generate one
	Unclear                // what the server makes of it depends on its settings and the column: ask it
)

// KeyMeaning judges a value in the key column as an AUTO_INCREMENT column
// would: NULL wants a key and so does, unless zeros are values, what is stored
// as 0. It is the only judge, of literals and of arguments alike; what is not
// certain is left to the server. floor is the lowest whole number that is not
// below a given key; 0: the counter need not pass it.
func (t *Table) KeyMeaning(v any) (m Meaning, floor int64) {
	if b, ok := v.([]byte); ok && t.UUID != NoUUID && len(b) == 16 && strings.Trim(string(b), "\x00") == "" {
		return t.zero()
	}
	switch v := v.(type) {
	case nil:
		return Wanted, 0
	case int64:
		switch {
		case v == 0:
			return t.zero()
		case v < 0:
			return t.negative()
		}
		return Given, v
	case uint64:
		if v == 0 {
			return t.zero()
		}
		return Given, int64(min(v, math.MaxInt64))
	case bool:
		if !v {
			return t.zero()
		}
		return Given, 1
	case float64:
		switch {
		case v == 0:
			return t.zero()
		case !(math.Abs(v) >= 1) && t.IntegerKey: // it rounds, in more than one way
			return Unclear, 0
		case v < 0:
			return t.negative()
		}
		return Given, ceil(v)
	case string:
		return t.stringMeaning(v)
	case []byte:
		if v == nil {
			return Wanted, 0
		}
		return t.stringMeaning(string(v))
	case json.RawMessage:
		if v == nil {
			return Wanted, 0
		}
		return t.stringMeaning(string(v))
	case time.Time:
		if !t.IntegerKey {
			return Given, 0
		}
	}
	return Unclear, 0
}

func (t *Table) zero() (Meaning, int64) {
	if t.KeepZero {
		return Given, 0
	}
	return Wanted, 0
}

// negative judges a number below 0. A column without such values may make 0 of
// it, where that is no error.
func (t *Table) negative() (Meaning, int64) {
	if t.Unsigned && t.IntegerKey {
		return Unclear, 0
	}
	return Given, 0
}

func ceil(f float64) int64 {
	if f = math.Ceil(f); f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// stringMeaning judges a string. In a key of another type than an integer "00"
// and "0.1" are keys of their own.
func (t *Table) stringMeaning(s string) (Meaning, int64) {
	m, floor := t.decimalMeaning(strings.Trim(s, " "))
	switch {
	case t.IntegerKey:
		return m, floor
	case s == "0", t.UUID != NoUUID && strings.Trim(s, "0-") == "": // a UUID of zeros, or no text
		return t.zero()
	}
	return Given, floor
}

// decimalMeaning judges digits, perhaps with a sign and a fraction.
func (t *Table) decimalMeaning(s string) (Meaning, int64) {
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if strings.Trim(whole+fraction, "0123456789") != "" || whole+fraction == "" {
		return Unclear, 0
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	switch {
	case whole == "" && fraction == "":
		return t.zero()
	case whole == "" && t.IntegerKey:
		return Unclear, 0 // it rounds, in more than one way
	case negative:
		return t.negative()
	}
	floor, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil {
		return Given, math.MaxInt64
	}
	if fraction != "" && floor < math.MaxInt64 {
		floor++
	}
	return Given, floor
}

// maxKeyTokens is the most tokens a key's value may have that is looked at
// closely. Longer ones are expressions.
const maxKeyTokens = 12

// keyValue reads the key's value in a row and notes what it needs.
func (w *insertReader) keyValue(open bool) error {
	var tokens [maxKeyTokens]lex.Token
	start, params := w.tok.Pos, w.paramsBefore()
	n := w.expr(open, tokens[:])
	switch {
	case n == 0:
		return w.unreadable(w.Table)
	case !w.noteKey(tokens[:], n, params) && w.Table.IntegerKey:
		w.exprs = append(w.exprs, keyExpr{span{start, w.pieceEnd()}, span{params, w.params}})
	}
	if w.invalid {
		return errInvalid
	}
	return nil
}

// paramsBefore is how many placeholders stand before this token.
func (w *insertReader) paramsBefore() int {
	if w.tok.Kind == lex.Param {
		return w.params - 1
	}
	return w.params
}

// noteKey notes what a key's value of n tokens, which was read, means for its
// row, and says whether it is known.
func (w *insertReader) noteKey(tokens []lex.Token, n, params int) bool {
	w.OwnKey = 0
	if n > len(tokens) {
		return false
	}
	value := withoutParens(tokens[:n])
	if t := value[0]; len(value) == 1 && t.Kind == lex.Param {
		w.edit(argument, t.Pos, t.End, len(w.ArgKeys))
		w.keyPlace(t.Pos)
		w.ArgKeys = append(w.ArgKeys, ArgKey{Row: w.Rows, Arg: params})
		return true
	}
	start := tokens[0].Pos
	m, floor := w.tokensMeaning(value)
	if len(value) == 1 && w.Table.IntegerKey {
		w.OwnKey = wholeLiteral(value[0].Kind, w.text[value[0].Pos:value[0].End])
	}
	switch {
	case m == Unclear || n > 1 && straddles(w.text[start:w.prevEnd]):
		return false
	case m == Wanted:
		w.gap(key, start, w.prevEnd)
	case w.Table.Floors:
		w.Floor = max(w.Floor, floor)
	}
	return true
}

// WholeKey is the key that an argument is, where it is a whole number above 0
// and so stored as it is; else 0.
func (t *Table) WholeKey(v any) int64 {
	if !t.IntegerKey {
		return 0
	}
	switch v := v.(type) {
	case int64:
		return max(v, 0)
	case uint64:
		if v <= math.MaxInt64 {
			return int64(v)
		}
	case string:
		return wholeNumber(v)
	case []byte:
		return wholeNumber(string(v))
	}
	return 0
}

// wholeLiteral is WholeKey for a literal.
func wholeLiteral(kind lex.Kind, text string) int64 {
	switch kind {
	case lex.Number:
		return wholeNumber(text)
	case lex.String:
		return wholeNumber(stringContent(text))
	}
	return 0
}

func wholeNumber(s string) int64 {
	n, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0
	}
	return max(n, 0)
}

// withoutParens takes off the parentheses around a value.
func withoutParens(t []lex.Token) []lex.Token {
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
	if len(s) < len("*/") {
		return false
	}
	if strings.Contains(s, "/*!") || strings.Contains(s, "/*M!") {
		return true
	}
	end := strings.Index(s, "*/")
	return end >= 0 && !strings.Contains(s[:end], "/*")
}

// tokensMeaning judges a value without outer parentheses.
func (w *insertReader) tokensMeaning(t []lex.Token) (Meaning, int64) {
	str := func(i int) string { return w.text[t[i].Pos:t[i].End] }
	word := func(s string) bool { return t[0].Kind == lex.Word && lex.Is(str(0), s) }

	if w.namesKey(t) || word("null") && len(t) == 1 {
		return Wanted, 0
	}
	if word("default") {
		if len(t) == 1 || len(t) > 3 && t[1].Kind == '(' && t[len(t)-1].Kind == ')' && w.namesKey(t[2:len(t)-1]) {
			return Wanted, 0
		}
		return Unclear, 0
	}
	if t[0].Kind == lex.String {
		return w.literalString(t)
	}
	sign := ""
	for ; len(t) > 1 && (t[0].Kind == '-' || t[0].Kind == '+'); t = t[1:] {
		if t[0].Kind == '-' {
			if sign == "-" {
				return Unclear, 0
			}
			sign = "-"
		}
	}
	if len(t) > 1 {
		return Unclear, 0
	}
	switch t[0].Kind {
	case lex.Number:
		if s := str(0); len(s) > 1 && (s[1] == 'x' || s[1] == 'b') {
			return Unclear, 0
		}
		return w.Table.decimalMeaning(sign + str(0))
	case lex.NullN:
		return w.mariaDBNull()
	case lex.Word:
		switch {
		case word("false"):
			return w.Table.zero()
		case word("true") && sign == "":
			return Given, 1
		case word("ignore"):
			return w.mariaDBNull()
		}
	}
	return Unclear, 0
}

// mariaDBNull is what \N and IGNORE mean, which are MariaDB's.
func (w *insertReader) mariaDBNull() (Meaning, int64) {
	switch {
	case !w.settings.VersionKnown:
		w.missing |= MissingVersion
	case !w.settings.MariaDB:
		w.invalid = true
	}
	return Wanted, 0
}

// namesKey says whether tokens are the key column's name, perhaps qualified.
func (w *insertReader) namesKey(t []lex.Token) bool {
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

// literalString judges a string literal, perhaps in several parts.
func (w *insertReader) literalString(t []lex.Token) (Meaning, int64) {
	var content string
	for _, x := range t {
		s := w.text[x.Pos:x.End]
		if x.Kind != lex.String {
			return Unclear, 0
		}
		if s = stringContent(s); content == "" {
			content = s
		} else if s != "" {
			content += s
		}
		if len(content) > 64 {
			return Unclear, 0
		}
	}
	return w.Table.stringMeaning(content)
}
