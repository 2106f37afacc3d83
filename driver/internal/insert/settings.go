package insert

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Settings are what of a session and its server decides the meaning of a text.
type Settings struct {
	MariaDB bool
	Version int // as version comments write it: 101119, 90704

	// SessionKnown says that the rest is true: it is asked for where a text depends
	// on it, and the zero value is what most sessions have. BackslashKnown says so of
	// NoBackslashEscapes alone.
	SessionKnown       bool
	BackslashKnown     bool
	NoBackslashEscapes bool   // sql_mode: \ is an ordinary character in strings
	ANSIQuotes         bool   // sql_mode: "x" is a name
	KeepsZero          bool   // sql_mode: 0 is a key in an AUTO_INCREMENT column, NO_AUTO_VALUE_ON_ZERO
	Charset            string // character_set_client

	// Single is set if the connection takes texts of one statement only. Comments after its last
	// semicolon belong to the statement then; on other connections they have an answer of their own.
	Single bool
}

// SetSession takes what matters from the values of sql_mode and character_set_client.
func (s *Settings) SetSession(mode, charset string) {
	modes := strings.Split(mode, ",")
	s.NoBackslashEscapes, s.ANSIQuotes = slices.Contains(modes, "NO_BACKSLASH_ESCAPES"), slices.Contains(modes, "ANSI_QUOTES")
	s.KeepsZero = slices.Contains(modes, "NO_AUTO_VALUE_ON_ZERO")
	s.Charset, s.SessionKnown = charset, true
}

// Scanner returns a scanner that reads a text as the session does.
func (s Settings) Scanner(text string) lex.Scanner {
	return lex.Scanner{
		Text: text, NoBackslashEscapes: s.NoBackslashEscapes, ANSIQuotes: s.ANSIQuotes, MariaDB: s.MariaDB, Version: s.Version,
	}
}

// Under returns how the server reads a stored program that was made under an sql_mode.
func (s Settings) Under(mode string) Settings {
	s.SetSession(mode, "utf8mb4")
	return s
}
