// Package session queries the state of a session on one of the application's connections, such
// as the database in use or sql_mode, and caches it until a statement may have changed it.
//
//	s := session.New(conn, "shop", settings)
//	…
//	if err := s.LoadDatabase(ctx, text); err != nil { … } // s.DB is the database in use
//
// It queries as little as possible, since each query is a statement on the application's own
// connection. It plans no statements and does not depend on tables.
package session

import (
	"cmp"
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"

	"github.com/go-sql-driver/mysql"
	"github.com/samber/lo"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/pool"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Session is the known state of the session of one connection. Like the connection, it is
// not safe for concurrent use. Its methods return the inner driver's errors. Some of them also
// return an *insert.Refusal, as their comments state.
type Session struct {
	pool.Conn // connection of the inner driver

	DB        string // the database in use; the pool's reset does not change it
	DBUnknown bool   // a statement may have changed DB; LoadDatabase queries it

	// Settings are the server's version and, after LoadSettings, the settings that decide how the session parses
	// SQL. SettingsText is the server's answer to LoadSettings, and "" before.
	Settings     insert.Settings
	SettingsText string

	Revision int  // number of changes of DB and Settings, on which plans depend
	Broken   bool // the session could not be restored, or lacks a right

	baseSettings                          insert.Settings // Settings without the values from LoadSettings
	multiStatements, multiStatementsKnown bool            // whether the connection accepts several statements in a text
}

// New returns the session of a new connection with its database in use and the server's
// version.
func New(conn pool.Conn, db string, server insert.Settings) Session {
	return Session{Conn: conn, DB: db, Settings: server, baseSettings: server}
}

// SetBackslashEscapes records whether it is certain that sql_mode does not have NO_BACKSLASH_ESCAPES, for callers that
// read the mode from the status in the server's last response.
func (s *Session) SetBackslashEscapes(certain bool) {
	if certain != s.baseSettings.BackslashKnown {
		s.baseSettings.BackslashKnown = certain
		s.Settings = s.baseSettings
		s.Revision++
	}
}

// SetMultiStatements records whether the connection accepts texts of several statements.
func (s *Session) SetMultiStatements(several bool) {
	s.multiStatements, s.multiStatementsKnown = several, true
	if s.baseSettings.SingleStatement == several {
		s.baseSettings.SingleStatement, s.Settings.SingleStatement = !several, !several
		s.Revision++
	}
}

// AllowsMultiStatements reports whether the connection accepts texts of several statements. text is the text
// to be run. If the answer is not known yet, AllowsMultiStatements sends a text of two statements, which fails on a
// connection that accepts only one statement, and caches the result. The error is an *insert.Refusal if
// CheckQueryAllowed refuses text, or if the server's error does not show the answer. Other errors are the connection's.
func (s *Session) AllowsMultiStatements(ctx context.Context, text string) (bool, error) {
	if s.multiStatementsKnown {
		return s.multiStatements, nil
	}
	if err := CheckQueryAllowed(text, "capability for several statements in a text", "send its statements one by one"); err != nil {
		return false, err
	}
	_, err := s.Conn.ExecContext(ctx, "DO 0; DO 0", nil)
	switch answer, ok := errors.AsType[*mysql.MySQLError](err); {
	case err == nil, servererr.Is(err, servererr.Parse):
		s.SetMultiStatements(err == nil)
		return s.multiStatements, nil
	case ok:
		return false, refuse("it has to be sent in parts, and the server did not report whether the connection allows several statements ("+answer.Message+")", "send its statements one by one")
	}
	return false, err
}

// LoadSettings queries the settings that decide how the session parses SQL, unless they are known.
// text is the text to be parsed. The error is an *insert.Refusal if CheckQueryAllowed refuses text.
func (s *Session) LoadSettings(ctx context.Context, text string) error {
	if s.Settings.SessionKnown {
		return nil
	}
	if err := CheckQueryAllowed(text, "sql_mode or character set", "pass strings as arguments"); err != nil {
		return err
	}
	answer, err := QueryValue(ctx, s.Conn, "CONCAT(@@sql_mode, ' ', @@character_set_client, ' ', @@collation_connection)")
	if err != nil {
		return err
	}
	mode, charset, _ := strings.Cut(answer, " ")
	charset, _, _ = strings.Cut(charset, " ")
	s.Settings.SetSession(mode, charset)
	s.SettingsText = zeroModeRemover.Replace(answer)
	s.Revision++
	return nil
}

// zeroModeRemover removes NO_AUTO_VALUE_ON_ZERO from an answer, since the mode affects the execution of a prepared
// statement and not the parsing of its text.
var zeroModeRemover = strings.NewReplacer("NO_AUTO_VALUE_ON_ZERO,", "", ",NO_AUTO_VALUE_ON_ZERO", "", "NO_AUTO_VALUE_ON_ZERO", "")

// ForgetSettings discards the settings of LoadSettings, since a text may have changed them.
func (s *Session) ForgetSettings() {
	if s.Settings.SessionKnown {
		s.Settings = s.baseSettings
		s.Revision++
	}
}

// LoadDatabase queries the database in use if DBUnknown is set. text is the text to be parsed. The error
// is an *insert.Refusal if CheckQueryAllowed refuses text.
func (s *Session) LoadDatabase(ctx context.Context, text string) error {
	if !s.DBUnknown {
		return nil
	}
	if err := CheckQueryAllowed(text, "database in use", "write db.table"); err != nil {
		return err
	}
	db, err := QueryValue(ctx, s.Conn, "DATABASE()")
	if err == nil {
		s.Use(db)
	}
	return err
}

// Use sets the database in use.
func (s *Session) Use(db string) {
	s.DB, s.DBUnknown = db, false
	s.Revision++
}

// VisibleColumns queries the columns of a table as this connection sees it. It reads no
// row, so it does not begin a snapshot of a transaction. During the query it changes
// character_set_results and sql_select_limit, so that names are in UTF-8 and no name is
// missing. If it cannot restore them, it returns driver.ErrBadConn. text is the text to be
// parsed. The error is an *insert.Refusal if CheckQueryAllowed refuses text.
func (s *Session) VisibleColumns(ctx context.Context, text string, table insert.TableName) ([]string, error) {
	if err := CheckQueryAllowed(text, "columns", "list them"); err != nil {
		return nil, err
	}
	if err := s.LoadDatabase(ctx, text); err != nil {
		return nil, err
	}
	if _, err := s.Conn.ExecContext(ctx, "SET @leafsql_r = @@character_set_results, @leafsql_o = @@sql_select_limit,"+
		" character_set_results = utf8mb4, sql_select_limit = "+pool.NoSelectLimit, nil); err != nil {
		return nil, err
	}
	columns, _, err := QueryRow(ctx, s.Conn, "SELECT * FROM "+quote.Qualified(cmp.Or(table.DB, s.DB), table.Table)+" leafsql_t LIMIT 0")
	if !s.Restore(ctx, "SET character_set_results = @leafsql_r, sql_select_limit = @leafsql_o") {
		return nil, driver.ErrBadConn // no data was written
	}
	if err != nil {
		return nil, err
	}
	return lo.Map(columns, func(name string, _ int) string { return strings.TrimPrefix(name, "leafsql_t.") }), nil // the DSN's columnsWithAlias adds the alias
}

// MayReadCounts reports whether a text that may write rows seems to call ROW_COUNT() or
// FOUND_ROWS(). These functions return counts of the previous statement, and an internal query would
// change the counts.
func MayReadCounts(text string) bool {
	text = strings.ToLower(text)
	if !strings.Contains(text, "insert") && !strings.Contains(text, "replace") {
		return false
	}
	for _, name := range []string{"row_count", "found_rows"} {
		for _, after := range strings.Split(text, name)[1:] {
			if after = strings.TrimLeft(after, "`\" \t\n\v\f\r"); after != "" && strings.IndexByte("(/-#", after[0]) >= 0 { // a parenthesis, or a comment before it
				return true
			}
		}
	}
	return false
}

// CheckQueryAllowed returns an *insert.Refusal if MayReadCounts is true for text, and nil otherwise. The caller calls it before
// it queries a setting of the session; depends is the setting's name in the message.
func CheckQueryAllowed(text, depends, fix string) error {
	if !MayReadCounts(text) {
		return nil
	}
	return refuse("its meaning depends on the session's "+depends+", and a query for that would change ROW_COUNT() and FOUND_ROWS()",
		fix+", or store the count in a user variable first")
}

// refuse returns a transient refusal: before the next statement, a query may be possible.
func refuse(reason, fix string) error {
	return &insert.Refusal{Reason: reason, Fix: fix, Transient: true}
}

// ParseVersion parses the result of VERSION() and returns the version in the form of version
// comments: 101119 for "10.11.19-MariaDB", 80403 for "8.4.3", 0 if there is no number. MariaDB may put
// "5.5.5-" in front of its version.
func ParseVersion(s string) (mariaDB bool, version int) {
	mariaDB = strings.Contains(strings.ToLower(s), "mariadb")
	if mariaDB {
		s = strings.TrimPrefix(s, "5.5.5-")
	}
	var parts [3]int
	fmt.Sscanf(s, "%d.%d.%d", &parts[0], &parts[1], &parts[2]) // 0 if the part is not a number
	for _, n := range parts {
		version = version*100 + min(n, 99)
	}
	return mariaDB, version
}
