package insert

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// A KeyMeaning is the meaning of a value of the key column.
type KeyMeaning uint8

const (
	KeyBySession KeyMeaning = iota // a 0: a key under NO_AUTO_VALUE_ON_ZERO, otherwise a key must be generated
	KeyGiven                       // a key
	KeyWanted                      // a key must be generated
	KeyUnclear                     // depends on the server's settings and the column; the statement is refused
)

// KeyMeaning returns the meaning that a value would have in an AUTO_INCREMENT column. For NULL a key
// must be generated. A value that is stored as 0 has the meaning t.ZeroKey. An uncertain meaning is
// KeyUnclear. If the value is a key above 0, floor is that key, rounded up and at
// most math.MaxInt64, above which the counter's next id has to be. floor is 0 if the key does not affect the
// counter. exact reports whether floor is exactly the key of an integer column.
func (t *Table) KeyMeaning(v any) (m KeyMeaning, floor int64, exact bool) {
	switch v := v.(type) {
	case nil:
		return KeyWanted, 0, false
	case int64:
		switch {
		case v == 0:
			return t.zeroMeaning()
		case v > 0:
			return KeyGiven, v, t.IntegerKey
		case t.Unsigned && t.IntegerKey: // may be stored as 0 without an error
			return KeyUnclear, 0, false
		}
		return KeyGiven, 0, false
	case uint64:
		if v == 0 {
			return t.zeroMeaning()
		}
		return KeyGiven, int64(min(v, math.MaxInt64)), t.IntegerKey && v <= math.MaxInt64
	case float64:
		if v == math.Trunc(v) && math.Abs(v) < 1<<53 { // larger values are inexact
			return t.KeyMeaning(int64(v))
		}
		if !t.IntegerKey {
			return KeyGiven, ceilToKey(v), false
		}
	case string:
		return t.stringMeaning(v)
	case []byte:
		switch {
		case v == nil:
			return KeyWanted, 0, false
		case t.UUID != NoUUID && len(v) == 16 && strings.Trim(string(v), "\x00") == "":
			return t.zeroMeaning()
		}
		return t.stringMeaning(string(v))
	case interface{ KeyValue() any }: // a value that a client sent in MySQL's protocol
		return t.KeyMeaning(v.KeyValue())
	}
	return KeyUnclear, 0, false
}

func (t *Table) zeroMeaning() (KeyMeaning, int64, bool) {
	if t.ZeroKey == KeyWanted {
		return t.ZeroMeaningIn(false), 0, false
	}
	return t.ZeroKey, 0, false
}

// ZeroMeaningIn returns the meaning of a 0 in a session, and calls OnReplacedZero if a key must be
// generated. kept reports whether the session's sql_mode has NO_AUTO_VALUE_ON_ZERO.
func (t *Table) ZeroMeaningIn(kept bool) KeyMeaning {
	if kept {
		return KeyGiven
	}
	if t.OnReplacedZero != nil {
		t.OnReplacedZero()
	}
	return KeyWanted
}

// stringMeaning returns the meaning of a string. In a column that is not an integer, "00" is a key.
func (t *Table) stringMeaning(s string) (KeyMeaning, int64, bool) {
	switch {
	case t.IntegerKey:
		return t.numberMeaning(strings.Trim(s, " "))
	case s == "0", t.UUID != NoUUID && strings.Trim(s, "0-") == "": // a UUID of zeros, or an empty string
		return t.zeroMeaning()
	case t.UUID != NoUUID:
		return KeyGiven, 0, false
	}
	s = strings.Trim(s, " ")
	_, floor, _ := t.numberMeaning(s)
	if floor == 0 {
		if f, err := strconv.ParseFloat(s, 64); err == nil { // a DECIMAL column stores the string as a number
			floor = ceilToKey(f)
		}
	}
	return KeyGiven, floor, false
}

// ceilToKey returns f rounded up, at most math.MaxInt64, or 0 if f is not above 0.
func ceilToKey(f float64) int64 {
	switch {
	case !(f > 0):
		return 0
	case f >= math.MaxInt64:
		return math.MaxInt64
	}
	return int64(math.Ceil(f))
}

// numberMeaning returns the meaning of digits with an optional sign. For a fraction it returns
// KeyUnclear, since the rounding depends on the server.
func (t *Table) numberMeaning(s string) (m KeyMeaning, floor int64, exact bool) {
	n, err := strconv.ParseInt(s, 10, 64)
	switch {
	case err == nil:
		return t.KeyMeaning(n)
	case errors.Is(err, strconv.ErrRange) && s[0] != '-':
		return KeyGiven, math.MaxInt64, false
	}
	return KeyUnclear, 0, false
}

// LiteralMeaning returns the meaning of a number that is written in the query. See KeyMeaning for the
// results.
func (t *Table) LiteralMeaning(s string) (m KeyMeaning, floor int64, exact bool) {
	m, floor, exact = t.numberMeaning(s)
	if m == KeyUnclear && !t.IntegerKey {
		if f, err := strconv.ParseFloat(s, 64); err == nil {
			return t.KeyMeaning(f)
		}
	}
	return m, floor, exact
}
