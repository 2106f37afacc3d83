// Package read makes the plan of a query.
//
//	plan, unknown, err := read.Parse(text, settings, schema)
//
// The package does no I/O, and uses neither generators nor database/sql. It does not parse SQL completely: it finds the
// places of the keys among the tokens, and refuses a statement that would write a configured table in a form that it
// does not know. Only the server has the rows of INSERT … SELECT and LOAD DATA. Such a statement is staged: it gets
// a Staging, with which package staged writes the rows to a temporary table first. Package insert explains the other
// terms.
//
// The files, in the order in which they read a query:
//
//	schema.go                the functions that the reader calls for facts about names
//	parse.go                 Parse, and when the session's settings have to be read first
//	charset.go               character sets in which a query may have other tokens
//	statement.go, ddl.go     the statements of a query, and those that are not INSERTs
//	insert.go                one INSERT, REPLACE or LOAD DATA from its first word to its end
//	columns.go, values.go    its column list; its rows in VALUES or SET
//	source.go, selection.go  its rows from a SELECT or a file; the names in a SELECT
//	key.go                   the key of a row
//	upsert.go                the update list of an upsert
//	edits.go                 the edits of a statement in the plan
//	targets.go               which tables a stored program inserts into
//	reader.go                tokens, names and expressions
//
// The design is in docs/design/reading-sql.md.
package read

import (
	"math"
	"strings"
	"sync"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Parse returns the plan of a query. If the meaning of the query depends on session settings that
// are not known, there is no plan: unknown is set, and the caller has to read the settings and
// call Parse again. The error is an *insert.Refusal, or an error of a function in schema. Parse reports
// no SQL errors: a query that is invalid on every server gets a plan without changes. Parse is safe for
// concurrent use if the functions in schema are safe for it.
func Parse(text string, settings insert.Settings, schema Schema) (plan *insert.Plan, unknown bool, err error) {
	if len(text) > math.MaxInt32 {
		plan = new(insert.Plan)
		plan.Init(text, insert.Findings{})
		return plan, false, nil // longer than a packet can be
	}
	r := readers.Get().(*reader)
	r.text, r.settings, r.schema = text, settings, schema
	r.s = settings.Scanner(text)
	err = r.statements()
	plan, unknown = r.plan(), r.needsSettings
	if r.s.Seen&^statementFlags != 0 || indexAmbiguous(text) < len(text) {
		unknown, err = r.checkAmbiguity(plan, unknown, err)
	}
	*r = reader{}
	readers.Put(r)
	switch {
	case unknown: // with the session's real settings, the query may not be refused
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	return plan, false, nil
}

// readers holds unused readers, whose fields are zero.
var readers = sync.Pool{New: func() any { return new(reader) }}

// checkAmbiguity checks whether the query may have another meaning than the reader found. It reports
// whether the session's settings have to be read first, or refuses the query.
func (r *reader) checkAmbiguity(p *insert.Plan, unknown bool, err error) (bool, error) {
	seen, odd := r.s.Seen, indexAmbiguous(r.text)
	first := odd // offset from which the server may parse the query differently
	if seen&lex.SeenDoubleQuote != 0 || seen&lex.SeenBackslash != 0 && (!r.settings.BackslashKnown || r.changesQuotes) {
		first = min(first, strings.IndexAny(r.text, "\\\""))
	}
	if seen&lex.SeenSixDigits != 0 {
		first = min(first, strings.Index(r.text, "/*!"))
	}
	refusal, refused := err.(*insert.Refusal)
	refused = refused && !refusal.Transient // a transient refusal does not depend on the query
	switch {
	case err != nil && !refused && !r.settings.SessionKnown && first < len(r.text): // err may come from a word that is not a table
		return true, nil
	case err != nil && !refused, err == nil && r.harmlessUpTo <= first && strings.IndexByte(r.text[first:], ';') < 0:
		return unknown, err
	case !r.settings.SessionKnown && first < len(r.text):
		return true, nil
	}
	reason, fix := "", "send the SET as a separate query"
	switch {
	case seen&lex.SeenSixDigits != 0:
		reason, fix = "MySQL servers read a version comment of six digits differently", "write five digits, or no comment"
	case r.changesQuotes && seen&(lex.SeenBackslash|lex.SeenDoubleQuote) != 0:
		reason = "the query sets sql_mode, and its text has another meaning under the new sql_mode"
	case odd == len(r.text):
	case containsAny(r.settings.Charset, unsafeCharsets...):
		reason = "in the client's character set " + r.settings.Charset + " a byte of the query may be white space or part of a character, so the end of a string is uncertain"
		fix = "connect with charset=utf8mb4, or pass the values as arguments"
	case r.SetsSession && containsAny(r.text, unsafeCharsets...):
		reason = "the query sets a character set, and its text may have another meaning under it"
	}
	switch {
	case reason == "":
		return unknown, err
	case refused:
		return false, &insert.Refusal{Table: refusal.Table, Statement: refusal.Statement, Reason: reason, Fix: fix}
	case len(p.Inserts) > 0:
		return false, p.Inserts[0].Table.Refuse(reason, fix)
	}
	return false, &insert.Refusal{Reason: reason, Fix: fix}
}
