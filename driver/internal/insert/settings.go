package insert

import (
	"slices"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Settings are the facts about a session and its server that decide how a query is parsed.
type Settings struct {
	MariaDB bool
	TiDB    bool
	Vitess  bool
	Version int // in the form of version comments: 101119, 90704

	// SessionKnown reports whether the fields from NoBackslashEscapes to Charset were read from the
	// session. They are read only if a query depends on them; the zero values are right for most
	// sessions. BackslashKnown reports whether NoBackslashEscapes is certain to be false even if it was not read.
	SessionKnown       bool
	BackslashKnown     bool
	NoBackslashEscapes bool   // sql_mode: \ is an ordinary character in strings
	ANSIQuotes         bool   // sql_mode: "x" is a name
	KeepsZero          bool   // sql_mode NO_AUTO_VALUE_ON_ZERO: 0 is a key in an AUTO_INCREMENT column
	Charset            string // character_set_client

	// SingleStatement is set if the connection accepts only queries of one statement. Comments after the last
	// semicolon then belong to the statement; on other connections they return a result.
	SingleStatement bool
}

// SetSession sets the fields that depend on the values of sql_mode and character_set_client.
func (s *Settings) SetSession(mode, charset string) {
	modes := strings.Split(mode, ",")
	s.NoBackslashEscapes, s.ANSIQuotes = slices.Contains(modes, "NO_BACKSLASH_ESCAPES"), slices.Contains(modes, "ANSI_QUOTES")
	s.KeepsZero = slices.Contains(modes, "NO_AUTO_VALUE_ON_ZERO")
	s.Charset, s.SessionKnown = charset, true
}

// Scanner returns a scanner that parses a query with the session's settings.
func (s Settings) Scanner(text string) lex.Scanner {
	return lex.Scanner{
		Text: text, NoBackslashEscapes: s.NoBackslashEscapes, ANSIQuotes: s.ANSIQuotes, MariaDB: s.MariaDB, TiDB: s.TiDB, Version: s.Version,
	}
}

// WithSQLMode returns the settings with which the server parses a stored program that was defined under
// an sql_mode.
func (s Settings) WithSQLMode(mode string) Settings {
	s.SetSession(mode, "utf8mb4")
	return s
}
