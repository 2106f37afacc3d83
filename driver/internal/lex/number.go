package lex

import "strings"

// number reads a number, or a name that begins with a digit.
func (s *Scanner) number(start int) Token {
	text := s.Text
	i := start
	digits := func() {
		for i < len(text) && classes[text[i]] == digit {
			i++
		}
	}
	at := func(i int) byte {
		if i < len(text) {
			return text[i]
		}
		return 0
	}
	if text[i] == '0' && (at(i+1) == 'x' || at(i+1) == 'b') {
		j := i + 2
		for j < len(text) && (text[i+1] == 'x' && strings.IndexByte("0123456789abcdefABCDEF", text[j]) >= 0 || text[j] == '0' || text[j] == '1') {
			j++
		}
		if j == i+2 || inName(at(j)) {
			return s.word(start)
		}
		return s.token(Number, start, j)
	}
	digits()
	real := at(i) == '.'
	if real {
		i++
		digits()
	}
	if c := at(i); c == 'e' || c == 'E' {
		exponent := i + 1
		if c := at(exponent); c == '+' || c == '-' {
			exponent++
		}
		if classes[at(exponent)] == digit {
			i = exponent
			digits()
			return s.token(Number, start, i)
		}
	}
	if !real && inName(at(i)) {
		return s.word(start)
	}
	return s.token(Number, start, i)
}
