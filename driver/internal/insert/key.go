package insert

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A Meaning is the meaning of a value of the key column.
type Meaning uint8

const (
	BySession Meaning = iota // a 0: a key under NO_AUTO_VALUE_ON_ZERO, otherwise a key must be generated
	Given                    // a key
	Wanted                   // a key must be generated
	Unclear                  // depends on the server's settings and the column: refused
)

// KeyMeaning returns the meaning that a value would have in an AUTO_INCREMENT column: for NULL a key
// must be generated, and a value that is stored as 0 has the meaning t.ZeroKey. All literals and
// arguments are judged here; an uncertain value is Unclear. floor is a given key above 0, rounded up
// and at most math.MaxInt64, or 0 if the counter does not follow the key. exact reports whether floor
// is the key of an integer column.
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
		case t.Unsigned && t.IntegerKey: // may be stored as 0 without an error
			return Unclear, 0, false
		}
		return Given, 0, false
	case uint64:
		if v == 0 {
			return t.zero()
		}
		return Given, int64(min(v, math.MaxInt64)), t.IntegerKey && v <= math.MaxInt64
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 { // larger values are inexact
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
	case interface{ KeyValue() any }: // a value that a client sent in MySQL's protocol
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

// ZeroIn returns the meaning of a 0 in a session. kept reports whether the session's sql_mode has
// NO_AUTO_VALUE_ON_ZERO.
func (t *Table) ZeroIn(kept bool) Meaning {
	if kept {
		return Given
	}
	if t.Zero != nil {
		t.Zero()
	}
	return Wanted
}

// stringMeaning returns the meaning of a string. In a key that is not an integer, "00" is a key.
func (t *Table) stringMeaning(s string) (Meaning, int64, bool) {
	switch {
	case t.IntegerKey:
		return t.numberMeaning(strings.Trim(s, " "))
	case s == "0", t.UUID != NoUUID && strings.Trim(s, "0-") == "": // a UUID of zeros, or an empty string
		return t.zero()
	case t.UUID != NoUUID:
		return Given, 0, false
	}
	s = strings.Trim(s, " ")
	_, floor, _ := t.numberMeaning(s)
	if floor == 0 {
		if f, err := strconv.ParseFloat(s, 64); err == nil { // a DECIMAL stores it as a number
			floor = ceil(f)
		}
	}
	return Given, floor, false
}

// ceil returns f rounded up, at most math.MaxInt64, or 0 if f is not above 0.
func ceil(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(math.Ceil(f))
}

// numberMeaning returns the meaning of digits with an optional sign. A fraction is Unclear, since the
// rounding depends on the server.
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

// LiteralMeaning returns the meaning of a number that is written in the query. The results are those of
// KeyMeaning.
func (t *Table) LiteralMeaning(s string) (m Meaning, floor int64, exact bool) {
	m, floor, exact = t.numberMeaning(s)
	if m == Unclear && !t.IntegerKey {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return t.KeyMeaning(f)
		}
	}
	return m, floor, exact
}
