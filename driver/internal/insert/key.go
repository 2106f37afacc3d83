package insert

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A Meaning is what a value in the key column says.
type Meaning uint8

const (
	BySession Meaning = iota // it is a 0: a key under NO_AUTO_VALUE_ON_ZERO, otherwise generate one
	Given                    // it is a key
	Wanted                   // generate one
	Unclear                  // what the server makes of it depends on its settings and the column: it is refused
)

// KeyMeaning judges a value in the key column as an AUTO_INCREMENT column
// would: NULL wants a key, and what is stored as 0 has the meaning t.ZeroKey. It is the only judge, of literals and of arguments alike; what is not certain
// is refused. floor is a given key above 0, rounded up, as far as an int64
// goes; 0: the counter does not follow it. exact says that it is the key of an integer
// column.
func (t *Table) KeyMeaning(v any) (m Meaning, floor int64, exact bool) {
	switch v := v.(type) {
	case nil:
		return Wanted, 0, false
	case int64:
		switch {
		case v == 0:
			return t.zero()
		case v > 0:
			return Given, v, t.IntegerKey
		case t.Unsigned && t.IntegerKey: // it may be stored as 0, where it is no error
			return Unclear, 0, false
		}
		return Given, 0, false
	case uint64:
		if v == 0 {
			return t.zero()
		}
		return Given, int64(min(v, math.MaxInt64)), t.IntegerKey && v <= math.MaxInt64
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 { // larger ones stand for several numbers
			return t.KeyMeaning(int64(v))
		}
		if !t.IntegerKey {
			return Given, ceil(v), false
		}
	case string:
		return t.stringMeaning(v)
	case []byte:
		switch {
		case v == nil:
			return Wanted, 0, false
		case t.UUID != NoUUID && len(v) == 16 && strings.Trim(string(v), "\x00") == "":
			return t.zero()
		}
		return t.stringMeaning(string(v))
	case interface{ KeyValue() any }: // as a client of MySQL's protocol sent it
		return t.KeyMeaning(v.KeyValue())
	}
	return Unclear, 0, false
}

func (t *Table) zero() (Meaning, int64, bool) {
	if t.ZeroKey == Wanted {
		return t.ZeroIn(false), 0, false
	}
	return t.ZeroKey, 0, false
}

// ZeroIn returns what a 0 means in a session that decides it: kept says that its sql_mode
// has NO_AUTO_VALUE_ON_ZERO.
func (t *Table) ZeroIn(kept bool) Meaning {
	if kept {
		return Given
	}
	if t.Zero != nil {
		t.Zero()
	}
	return Wanted
}

// stringMeaning judges a string. In a key of another type than an integer "00" is
// a key of its own.
func (t *Table) stringMeaning(s string) (Meaning, int64, bool) {
	switch {
	case t.IntegerKey:
		return t.numberMeaning(strings.Trim(s, " "))
	case s == "0", t.UUID != NoUUID && strings.Trim(s, "0-") == "": // a UUID of zeros, or no text
		return t.zero()
	case t.UUID != NoUUID:
		return Given, 0, false
	}
	s = strings.Trim(s, " ")
	_, floor, _ := t.numberMeaning(s)
	if floor == 0 {
		if f, err := strconv.ParseFloat(s, 64); err == nil { // in a DECIMAL it is a number
			floor = ceil(f)
		}
	}
	return Given, floor, false
}

// ceil is the lowest whole number above 0 that is not below f, as far as an int64 goes; 0
// where f is not above 0.
func ceil(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(math.Ceil(f))
}

// numberMeaning judges digits, perhaps with a sign. What a fraction is rounded to the
// server alone knows.
func (t *Table) numberMeaning(s string) (m Meaning, floor int64, exact bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil:
		return t.KeyMeaning(n)
	case errors.Is(err, strconv.ErrRange) && s[0] != '-':
		return Given, math.MaxInt64, false
	}
	return Unclear, 0, false
}

// LiteralMeaning judges a number in the text.
func (t *Table) LiteralMeaning(s string) (m Meaning, floor int64, exact bool) {
	m, floor, exact = t.numberMeaning(s)
	if m == Unclear && !t.IntegerKey {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return t.KeyMeaning(f)
		}
	}
	return m, floor, exact
}
