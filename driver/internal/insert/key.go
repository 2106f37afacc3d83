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
	Unclear                // what the server makes of it depends on its settings and the column: it is refused
)

// KeyMeaning judges a value in the key column as an AUTO_INCREMENT column
// would: NULL wants a key and so does, unless zeros are values, what is stored
// as 0. It is the only judge, of literals and of arguments alike; what is not
// certain is refused. floor is the lowest whole number that is not
// below a given key; 0: the counter need not pass it. exact says that the key of an
// integer column is floor itself.
func (t *Table) KeyMeaning(v any) (m Meaning, floor int64, exact bool) {
	if b, ok := v.([]byte); ok && t.UUID != NoUUID && len(b) == 16 && strings.Trim(string(b), "\x00") == "" {
		return t.zero()
	}
	switch v := v.(type) {
	case nil:
		return Wanted, 0, false
	case int64:
		switch {
		case v == 0:
			return t.zero()
		case v < 0:
			return t.negative()
		}
		return Given, v, t.IntegerKey
	case uint64:
		if v == 0 {
			return t.zero()
		}
		return Given, int64(min(v, math.MaxInt64)), t.IntegerKey && v <= math.MaxInt64
	case bool:
		if !v {
			return t.zero()
		}
		return Given, 1, false
	case float64:
		switch {
		case v == 0:
			return t.zero()
		case !(math.Abs(v) >= 1) && t.IntegerKey: // it rounds, in more than one way
			return Unclear, 0, false
		case v < 0:
			return t.negative()
		}
		return Given, ceil(v), false
	case string:
		return t.stringMeaning(v)
	case []byte:
		if v == nil {
			return Wanted, 0, false
		}
		return t.stringMeaning(string(v))
	case json.RawMessage:
		if v == nil {
			return Wanted, 0, false
		}
		return t.stringMeaning(string(v))
	case time.Time:
		if !t.IntegerKey {
			return Given, 0, false
		}
	}
	return Unclear, 0, false
}

func (t *Table) zero() (Meaning, int64, bool) {
	if t.KeepZero {
		return Given, 0, false
	}
	if t.Zero != nil {
		t.Zero()
	}
	return Wanted, 0, false
}

// negative judges a number below 0. A column without such values may make 0 of
// it, where that is no error.
func (t *Table) negative() (Meaning, int64, bool) {
	if t.Unsigned && t.IntegerKey {
		return Unclear, 0, false
	}
	return Given, 0, false
}

func ceil(f float64) int64 {
	if f = math.Ceil(f); f >= math.MaxInt64 {
		return math.MaxInt64
	}
	return int64(f)
}

// stringMeaning judges a string. In a key of another type than an integer "00"
// and "0.1" are keys of their own.
func (t *Table) stringMeaning(s string) (Meaning, int64, bool) {
	m, floor, exact := t.decimalMeaning(strings.Trim(s, " "))
	switch {
	case t.IntegerKey:
		return m, floor, exact
	case s == "0", t.UUID != NoUUID && strings.Trim(s, "0-") == "": // a UUID of zeros, or no text
		return t.zero()
	}
	return Given, floor, false
}

// decimalMeaning judges digits, perhaps with a sign and a fraction.
func (t *Table) decimalMeaning(s string) (m Meaning, floor int64, exact bool) {
	negative := false
	if s != "" && (s[0] == '-' || s[0] == '+') {
		negative = s[0] == '-'
		s = s[1:]
	}
	whole, fraction, _ := strings.Cut(s, ".")
	if strings.Trim(whole+fraction, "0123456789") != "" || whole+fraction == "" {
		return Unclear, 0, false
	}
	whole, fraction = strings.TrimLeft(whole, "0"), strings.TrimRight(fraction, "0")
	switch {
	case whole == "" && fraction == "":
		return t.zero()
	case whole == "" && t.IntegerKey:
		return Unclear, 0, false // it rounds, in more than one way
	case negative:
		return t.negative()
	}
	floor, err := strconv.ParseInt("0"+whole, 10, 64)
	if err != nil {
		return Given, math.MaxInt64, false
	}
	if fraction != "" && floor < math.MaxInt64 {
		return Given, floor + 1, false
	}
	return Given, floor, t.IntegerKey && fraction == ""
}

// maxKeyTokens is the most tokens a key's value may have that is looked at
// closely. Longer ones are expressions.
const maxKeyTokens = 12

// keyValue reads the key's value in a row and notes what it needs.
func (w *insertReader) keyValue(follows func() bool) error {
	var tokens [maxKeyTokens]lex.Token
	params := w.paramsBefore()
	n := w.expr(follows, tokens[:])
	switch {
	case n == 0:
		return w.unreadable(w.Table)
	case !w.noteKey(tokens[:], n, params) && w.Table.IntegerKey:
		return refuse(w.Table, "only the server could tell what its key is", "write a whole number or DEFAULT, or SELECT the value before and pass it as an argument; or, where the table always gets its key from another one, leave it out of leafTables (!table)")
	case w.invalid:
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
	m, floor, exact := w.tokensMeaning(value)
	switch m {
	case Unclear:
		return false
	case Wanted:
		w.gap(key, start, w.prevEnd)
		return true
	}
	if exact {
		w.OwnKey = floor
	}
	if w.Table.Floors {
		w.Floor = max(w.Floor, floor)
	}
	return true
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

// tokensMeaning judges a value without outer parentheses.
func (w *insertReader) tokensMeaning(t []lex.Token) (m Meaning, floor int64, exact bool) {
	str := func(i int) string { return w.text[t[i].Pos:t[i].End] }
	word := func(s string) bool { return t[0].Kind == lex.Word && lex.Is(str(0), s) }

	if w.namesKey(t) || word("null") && len(t) == 1 {
		return Wanted, 0, false
	}
	if word("default") {
		if len(t) == 1 || len(t) > 3 && t[1].Kind == '(' && t[len(t)-1].Kind == ')' && w.namesKey(t[2:len(t)-1]) {
			return Wanted, 0, false
		}
		return Unclear, 0, false
	}
	if t[0].Kind == lex.String {
		return w.literalString(t)
	}
	sign := ""
	for ; len(t) > 1 && (t[0].Kind == '-' || t[0].Kind == '+'); t = t[1:] {
		if t[0].Kind == '-' {
			if sign == "-" {
				return Unclear, 0, false
			}
			sign = "-"
		}
	}
	if len(t) > 1 {
		return Unclear, 0, false
	}
	switch t[0].Kind {
	case lex.Number:
		if s := str(0); len(s) > 1 && (s[1] == 'x' || s[1] == 'b') {
			return Unclear, 0, false
		}
		return w.Table.decimalMeaning(sign + str(0))
	case lex.NullN:
		return w.mariaDBNull()
	case lex.Word:
		switch {
		case word("false"):
			return w.Table.zero()
		case word("true") && sign == "":
			return Given, 1, false
		case word("ignore"):
			return w.mariaDBNull()
		}
	}
	return Unclear, 0, false
}

// mariaDBNull is what \N and IGNORE mean, which are MariaDB's.
func (w *insertReader) mariaDBNull() (m Meaning, floor int64, exact bool) {
	w.invalid = w.invalid || !w.settings.MariaDB
	return Wanted, 0, false
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
func (w *insertReader) literalString(t []lex.Token) (m Meaning, floor int64, exact bool) {
	var content string
	for _, x := range t {
		s := w.text[x.Pos:x.End]
		if x.Kind != lex.String {
			return Unclear, 0, false
		}
		if s = stringContent(s); content == "" {
			content = s
		} else if s != "" {
			content += s
		}
		if len(content) > 64 {
			return Unclear, 0, false
		}
	}
	return w.Table.stringMeaning(content)
}
