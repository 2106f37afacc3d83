package lex

import "strings"

// atDashComment reports whether two dashes are at the position and begin a comment.
// Only a blank, a control character or the end of the text may follow: 29--1 is 30.
func (s *Scanner) atDashComment() bool {
	rest := s.Text[s.pos:]
	if len(rest) < 2 || rest[1] != '-' {
		return false
	}
	return len(rest) == 2 || rest[2] <= ' ' || rest[2] == 0x7f
}

// skipLine skips a comment up to the end of its line.
func (s *Scanner) skipLine() {
	s.Seen |= SeenComment
	if n := strings.IndexAny(s.Text[s.pos:], "\n\x00"); n >= 0 { // servers end the comment at a NUL, too
		s.pos += n
	} else {
		s.pos = len(s.Text)
	}
}

// comment skips the comment at the position. Of a version comment that is code, it skips
// only the beginning. It reports whether the comment ends; for a
// version comment that is code it returns true, and Next checks the end.
func (s *Scanner) comment() bool {
	s.Seen |= SeenComment
	rest := s.Text[s.pos+2:]
	mariaOnly := strings.HasPrefix(rest, "M!")
	tidbOnly := s.TiDB && strings.HasPrefix(rest, "T!")
	if !mariaOnly && !tidbOnly && !strings.HasPrefix(rest, "!") {
		return s.skipComment(2)
	}
	begin := len("/*!")
	if mariaOnly || tidbOnly {
		begin++
	}
	if tidbOnly && strings.HasPrefix(rest, "T![") { // names of features
		begin += strings.IndexByte(rest[2:], ']') + 1
	}
	version, digits := 0, 0
	rest = s.Text[s.pos+begin:]
	for digits < len(rest) && digits < 6 && classes[rest[digits]] == digit {
		version = version*10 + int(rest[digits]-'0')
		digits++
	}
	if digits < 5 {
		version, digits = 0, 0
	}
	if !s.isCode(mariaOnly, version, digits) {
		if mariaOnly && !s.MariaDB {
			return s.skipComment(2)
		}
		return s.skipVersionComment(begin)
	}
	s.Seen |= SeenCode
	s.pos += begin + digits
	s.inVersionComment = true
	return true
}

// isCode reports whether the content of a version comment is code.
func (s *Scanner) isCode(mariaOnly bool, version, digits int) bool {
	switch {
	case s.TiDB:
		return !mariaOnly
	case s.MariaDB:
		return version <= s.Version && (mariaOnly || version < 50700 || version > 99999)
	case digits == 6 && !mariaOnly:
		s.Seen |= SeenSixDigits
		return true
	}
	return version <= s.Version && !mariaOnly
}

// skipComment skips a comment that cannot contain other comments. It reports whether the comment ends.
func (s *Scanner) skipComment(begin int) bool {
	end := strings.Index(s.Text[s.pos+begin:], "*/")
	if end < 0 {
		return false
	}
	s.pos += begin + end + 2
	return true
}

// skipVersionComment skips a version comment that is not code. The version comment may contain comments, but these
// cannot contain further comments. skipVersionComment reports whether the version comment ends.
func (s *Scanner) skipVersionComment(begin int) bool {
	text := s.Text
	for i := s.pos + begin; i+1 < len(text); i++ {
		switch {
		case text[i] == '*' && text[i+1] == '/':
			s.pos = i + 2
			return true
		case text[i] == '/' && text[i+1] == '*':
			end := strings.Index(text[i+2:], "*/")
			if end < 0 {
				return false
			}
			i += 2 + end + 1
		}
	}
	return false
}
