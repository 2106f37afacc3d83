// Package lex cuts a SQL text of MySQL or MariaDB into tokens, by byte offset.
//
//	s := lex.Scanner{Text: text, Version: 90704}
//	for t := s.Next(); t.Kind != lex.EOF; t = s.Next() {
//		fmt.Println(t.Kind, text[t.Pos:t.End])
//	}
//
// It reads quotes, comments, numbers and placeholders, as far
// as they decide where a token ends. A version comment is /*!80000 … */ or the like: servers of this
// version and later execute its content, which is then code. The package has no grammar and does not validate:
// the tokens of a text that servers reject are unspecified.
package lex

import "strings"

// A Kind is the kind of a token. The kind of punctuation is its character: '(' is the
// kind of an opening parenthesis.
type Kind uint8

const (
	EOF       Kind = 128 + iota
	Word           // an unquoted name or a keyword
	Name           // `x`, or "x" under ANSI_QUOTES
	String         // 'x', "x", n'x'; a charset introducer before it is a Word
	HexString      // x'4F'
	BitString      // b'01'
	Number         // 1, 1.5e3, 0x4F, 0b01
	Param          // ?
	Var            // @x, @@x; in @'x' and @`x` only the @
	Assign         // :=
	NullN          // \N, MariaDB's NULL
	Bad            // the rest of the text: a quote or a comment that does not end
)

// A Token is a piece of the text.
type Token struct {
	Kind     Kind
	Pos, End int // the bytes Text[Pos:End]
}

// A Seen is a set of constructs found in a text: comments, and constructs whose meaning
// depends on the settings of the session or the server.
type Seen uint8

const (
	SeenBackslash   Seen = 1 << iota // a backslash in a string; its meaning depends on NO_BACKSLASH_ESCAPES
	SeenDoubleQuote                  // a double quote; its meaning depends on ANSI_QUOTES
	SeenSixDigits                    // a version comment with six digits, which MySQL servers read in two ways
	SeenComment                      // any comment
	SeenCode                         // a version comment that is code
)

// A Scanner reads the tokens of a text. With only Text and Version set, it reads the text
// under the default sql_mode of MySQL. It is not safe for concurrent use.
type Scanner struct {
	Text string
	Seen Seen // constructs found so far

	NoBackslashEscapes bool // \ is an ordinary character in strings
	ANSIQuotes         bool // "x" is a name

	// The server decides which version comments are code. For MySQL, a version comment with six
	// digits is always read as code, although MySQL servers read it in two ways.
	MariaDB bool
	TiDB    bool // runs version comments of any version, and /*T! … */
	Version int  // in the form of version comments: 101119, 90704

	pos              int
	inVersionComment bool // the position is in a version comment that is code
	dotted           bool // the next token is a dot, and a name follows it
	named            bool // the next token is a name even if it begins with a digit
}

type class uint8

const (
	other class = iota // a token by itself
	space
	ident
	digit
	quote
	backtick
	slash
	dash
	hash
	dot
	param
	at
	colon
	backslash
	star
)

var classes = func() (t [256]class) {
	for _, c := range " \t\n\v\f\r\x00" {
		t[c] = space
	}
	for c := 'a'; c <= 'z'; c++ {
		t[c], t[c-'a'+'A'] = ident, ident
	}
	for c := 0x80; c < 0x100; c++ {
		t[c] = ident
	}
	for c := '0'; c <= '9'; c++ {
		t[c] = digit
	}
	t['_'], t['$'] = ident, ident
	t['\''], t['"'], t['`'] = quote, quote, backtick
	t['/'], t['-'], t['#'], t['*'] = slash, dash, hash, star
	t['.'], t['?'], t['@'], t[':'], t['\\'] = dot, param, at, colon, backslash
	return t
}()

// inName reports whether a byte can be part of an unquoted name.
func inName(c byte) bool { return classes[c]-ident <= digit-ident }

// nameEnd returns the end of the unquoted name that was read up to offset i.
func (s *Scanner) nameEnd(i int) int {
	for text := s.Text; i < len(text) && inName(text[i]); {
		i++
	}
	return i
}

// Next returns the next token. At the end of the text it returns EOF, also when called again.
func (s *Scanner) Next() Token {
	text := s.Text
	for s.pos < len(text) {
		start := s.pos
		c := text[start]
		switch classes[c] {
		case space:
			s.pos++
			continue
		case ident:
			return s.word(start)
		case digit:
			if s.named {
				return s.word(start)
			}
			return s.number(start)
		case quote:
			if c == '"' {
				s.Seen |= SeenDoubleQuote
				if s.ANSIQuotes {
					return s.name(start, c)
				}
			}
			return s.quoted(String, start, start, c)
		case backtick:
			return s.name(start, c)
		case param:
			return s.token(Param, start, start+1)
		case slash:
			if strings.HasPrefix(text[start:], "/*") {
				if !s.comment() {
					return s.bad(start)
				}
				continue
			}
		case star:
			if s.inVersionComment && strings.HasPrefix(text[start:], "*/") {
				s.inVersionComment = false
				s.pos += 2
				continue
			}
		case dash:
			if s.atDashComment() {
				s.skipLine()
				continue
			}
		case hash:
			s.skipLine()
			continue
		case dot:
			if s.dotted {
				s.dotted, s.named = false, true
			} else if start+1 < len(text) && classes[text[start+1]] == digit {
				return s.number(start)
			}
		case at:
			return s.variable(start)
		case colon:
			if strings.HasPrefix(text[start:], ":=") {
				return s.token(Assign, start, start+2)
			}
		case backslash:
			if strings.HasPrefix(text[start:], `\N`) {
				return s.token(NullN, start, start+2)
			}
		}
		return s.token(Kind(c&0x7f), start, start+1)
	}
	if s.inVersionComment {
		s.inVersionComment = false
		return s.bad(len(text))
	}
	return Token{EOF, len(text), len(text)}
}

// token returns the token Text[start:end], and moves the position to its end.
func (s *Scanner) token(kind Kind, start, end int) Token {
	s.pos = end
	return Token{kind, start, end}
}

// bad returns the rest of the text as a Bad token.
func (s *Scanner) bad(start int) Token { return s.token(Bad, start, len(s.Text)) }

// introducers maps a letter in front of a quote to the kind of the string.
var introducers = map[byte]Kind{'n': String, 'x': HexString, 'b': BitString}

// word reads an unquoted name, or a string that begins with a letter of introducers.
func (s *Scanner) word(start int) Token {
	text := s.Text
	i := s.nameEnd(start + 1)
	switch {
	case i == len(text):
	case text[i] == '\'' && i == start+1 && !s.named:
		if kind, ok := introducers[text[start]|0x20]; ok {
			return s.quoted(kind, start, i, '\'')
		}
	case text[i] == '.':
		s.dotted = i+1 < len(text) && inName(text[i+1])
	}
	s.named = false
	return s.token(Word, start, i)
}

// quoted reads a string or a quoted name. The opening quote q is at open.
func (s *Scanner) quoted(kind Kind, start, open int, q byte) Token {
	text := s.Text
	end := open // offset of the first q at or after i
	for i := open + 1; ; {
		if end < i {
			n := strings.IndexByte(text[min(i, len(text)):], q)
			if n < 0 {
				return s.bad(start)
			}
			end = i + n
		}
		if n := strings.IndexByte(text[i:end], '\\'); n >= 0 && kind != Name {
			s.Seen |= SeenBackslash
			if !s.NoBackslashEscapes {
				i += n + 2
				continue
			}
		}
		if end+1 == len(text) || text[end+1] != q {
			return s.token(kind, start, end+1)
		}
		i = end + 2
	}
}

// name reads a quoted name.
func (s *Scanner) name(start int, q byte) Token {
	s.named = false
	return s.quoted(Name, start, start, q)
}

// variable reads @x, @@x, or the @ before a quoted name.
func (s *Scanner) variable(start int) Token {
	text := s.Text
	i := start + 1
	system := i < len(text) && text[i] == '@'
	if system {
		i++
	}
	for i = s.nameEnd(i); !system && i < len(text) && text[i] == '.'; {
		i = s.nameEnd(i + 1)
	}
	return s.token(Var, start, i)
}

// Is reports whether a word equals a lower-case ASCII word, ignoring case.
func Is(word, lower string) bool {
	if len(word) != len(lower) {
		return false
	}
	for i := 0; i < len(word); i++ {
		if word[i]|0x20 != lower[i]|0x20 {
			return false
		}
	}
	return true
}
