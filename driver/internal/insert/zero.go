package insert

import (
	"strconv"
	"strings"
)

// numberIsZero says whether a number is 0 once it is stored in an integer
// column, or simply 0.
func numberIsZero(s string, integer bool) bool {
	if len(s) > 1 && s[0] == '0' && (s[1] == 'x' || s[1] == 'b') {
		return strings.Trim(s[2:], "0") == ""
	}
	if strings.ContainsAny(s, "eE") {
		f, err := strconv.ParseFloat(s, 64)
		if err != nil {
			return false // out of range
		}
		return f == 0 || integer && f <= 0.5 // a double rounds to even
	}
	return decimalIsZero(s, integer)
}

// decimalIsZero decides it on the digits: a float64 of 0.49999999999999999999
// is a half.
func decimalIsZero(s string, integer bool) bool {
	whole, fraction, _ := strings.Cut(s, ".")
	if strings.Trim(whole, "0") != "" {
		return false
	}
	if integer {
		return fraction == "" || fraction[0] < '5'
	}
	return strings.Trim(fraction, "0") == ""
}

// stringIsZero says whether a string is 0 once it is stored in an integer
// column, and whether it is a number at all that every server reads alike.
func stringIsZero(s string) (zero, clean bool) {
	s = strings.Trim(s, " \t\n\v\f\r")
	if s != "" && (s[0] == '+' || s[0] == '-') {
		s = s[1:]
	}
	digits := 0
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case '0' <= c && c <= '9':
			digits++
		case c == '.' || c == 'e' || c == 'E' || (c == '+' || c == '-') && i > 0 && s[i-1]|0x20 == 'e':
		default:
			return false, false
		}
	}
	if digits == 0 || strings.Count(s, ".") > 1 {
		return false, false
	}
	if !strings.ContainsAny(s, "eE") {
		return decimalIsZero(s, true), true
	}
	f, err := strconv.ParseFloat(s, 64)
	if err != nil || f != 0 && f < 1 {
		return false, false
	}
	return f == 0, true
}
