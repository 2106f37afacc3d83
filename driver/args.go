package driver

import (
	"database/sql/driver"
	"encoding/json"
	"strconv"
	"strings"
)

// generates reports whether an argument in the key column means "please
// generate", as an AUTO_INCREMENT column takes it: NULL always, and unless
// zeros are values, whatever the server rounds to 0. Arguments are as
// database/sql hands them over, already one of driver.Value's types.
func generates(v driver.Value, keepZero bool) bool {
	switch v := v.(type) {
	case nil:
		return true
	case int64:
		return v == 0 && !keepZero
	case string:
		return !keepZero && roundsToZero(v)
	case []byte:
		return v == nil || !keepZero && roundsToZero(string(v))
	case json.RawMessage:
		return v == nil || !keepZero && roundsToZero(string(v))
	case uint64:
		return v == 0 && !keepZero
	case bool:
		return !v && !keepZero
	case float64:
		return !keepZero && v > -0.5 && v < 0.5
	}
	return false
}

// roundsToZero reports whether the server reads s as a number and rounds it
// to 0 ("0", " 0.0", "-0", "0e5", "0.4"). What it would not read as a number
// goes to the server, which has its own error for it.
func roundsToZero(s string) bool {
	if s == "0" {
		return true
	}
	s = strings.Trim(s, " \t\n\v\f\r")
	for i := range len(s) {
		switch c := s[i]; {
		case c >= '0' && c <= '9', c == '.', c == '+', c == '-', c == 'e', c == 'E':
		default:
			return false
		}
	}
	f, err := strconv.ParseFloat(s, 64)
	return err == nil && f > -0.5 && f < 0.5
}
