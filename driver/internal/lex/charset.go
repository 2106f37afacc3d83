package lex

// A Charset is a kind of character_set_client, by what its bytes from 0x80 on
// mean to a server that looks for the end of a token.
type Charset uint8

const (
	UTF8 Charset = iota // no byte of a longer character is below 0x80 and matters; ASCII, binary, euckr and ujis are like it
	NBSP                // a single byte, of which 0xA0 is white space: latin1
	FFSP                // a single byte, of which 0xFF is white space: cp866
	GBK                 // two bytes, of which the second may be a backslash
	Big5
	SJIS
)

// CharsetOf returns the kind of a character set that a server knows by name.
func CharsetOf(name string) Charset {
	switch name {
	case "armscii8", "cp1250", "dec8", "geostd8", "greek", "hebrew", "latin1", "latin2", "latin5", "latin7":
		return NBSP
	case "cp852", "cp866", "keybcs2":
		return FFSP
	case "gbk", "gb18030":
		return GBK
	case "big5":
		return Big5
	case "sjis", "cp932":
		return SJIS
	}
	return UTF8
}

// spaces is the byte from 0x80 on that is white space, 0 for none.
var spaces = [...]byte{NBSP: 0xa0, FFSP: 0xff, SJIS: 0}

// double says whether characters of two bytes can hide an ASCII byte.
func (c Charset) double() bool { return c >= GBK }

// pair says whether a character of two bytes begins at a place in the text.
func (c Charset) pair(text string, i int) bool {
	if text[i] <= 0x80 || text[i] == 0xff || i+1 == len(text) {
		return false
	}
	lead, trail := text[i], text[i+1]
	if trail < 0x40 || trail == 0x7f || trail == 0xff {
		return false
	}
	switch c {
	case GBK:
		return true
	case Big5:
		return 0xa1 <= lead && lead <= 0xf9 && (trail < 0x7f || trail >= 0xa1)
	case SJIS:
		return (lead <= 0x9f || 0xe0 <= lead && lead <= 0xfc) && trail <= 0xfc
	}
	return false
}

// inName says whether a byte can be part of an unquoted name.
func (s *Scanner) inName(c byte) bool {
	return inName(c) && (c < 0x80 || c != spaces[s.Charset])
}

// nameEnd returns the end of the unquoted name of which text[:i] was read.
func (s *Scanner) nameEnd(i int) int {
	text := s.Text
	if s.Charset.double() {
		for i < len(text) && inName(text[i]) {
			if s.Charset.pair(text, i) {
				i++
			}
			i++
		}
		return i
	}
	for i < len(text) && s.inName(text[i]) {
		i++
	}
	return i
}

// quotedPairs is quoted for character sets of two bytes.
func (s *Scanner) quotedPairs(kind Kind, start, open int, q byte) Token {
	text := s.Text
	for i := open + 1; i < len(text); i++ {
		switch c := text[i]; {
		case c >= 0x80:
			if s.Charset.pair(text, i) {
				i++
			}
		case c == q:
			if i+1 < len(text) && text[i+1] == q {
				i++
				continue
			}
			s.pos = i + 1
			return Token{kind, start, i + 1}
		case c == '\\':
			s.Seen |= SeenBackslash
			if !s.NoBackslashEscapes {
				i++
			}
		}
	}
	return s.bad(start)
}

// namePairs is name for character sets of two bytes.
func (s *Scanner) namePairs(start int, q byte) Token {
	text := s.Text
	for i := start + 1; i < len(text); i++ {
		switch {
		case s.Charset.pair(text, i):
			i++
		case text[i] != q:
		case i+1 < len(text) && text[i+1] == q:
			i++
		default:
			return s.nameToken(start, i)
		}
	}
	return s.bad(start)
}
