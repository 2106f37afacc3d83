// Package read makes a plan of a SQL text.
//
//	plan, unknown, err := read.Parse(text, settings, schema)
//
// It is pure: no I/O, no generators, no database/sql. It does not parse SQL:
// it finds the places of the keys among the tokens, and refuses a statement
// that would write a configured table in a form it cannot read. A statement
// whose rows only the server knows (INSERT … SELECT, LOAD DATA) gets a Staging,
// by which package staged puts the rows into a temporary table first.
//
// The files, in the order in which a text goes through them:
//
//	schema.go                what the reader asks of others
//	parse.go                 Parse, and when the session has to be asked how it reads texts
//	charset.go               in which character sets a text may have other tokens
//	statement.go, ddl.go     which statement begins; those that are not INSERTs
//	insert.go                one INSERT, REPLACE or LOAD DATA from its first word to its end
//	columns.go, values.go    its columns; rows in the text
//	source.go, selection.go  rows from a query or a file, and how they are staged; the names that a query has for them
//	key.go                   the key of a row
//	upsert.go                its update list
//	edits.go                 what of it is noted in the plan
//	targets.go               which tables a stored program inserts into
//	reader.go                tokens, names and expressions
package read

import (
	"math"
	"strings"
	"sync"

	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Parse plans a text. Where the text means something else under other settings of the
// session, and those are not known, there is no plan: unknown says that the session
// has to be asked first. The error is an *insert.Refusal, or what a function of schema
// returned. An error in the SQL is none of Parse's concern: what no server would run
// is planned as nothing to do.
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
	plan, unknown = r.plan(), r.unknown
	if r.s.Seen&^seenHere != 0 || otherBytes(text) < len(text) {
		unknown, err = r.decide(plan, unknown, err)
	}
	*r = reader{}
	readers.Put(r)
	switch {
	case unknown: // what is refused now may be read in another way then
		return nil, true, nil
	case err != nil:
		return nil, false, err
	}
	return plan, false, nil
}

// readers are those that read nothing now, and are zero.
var readers = sync.Pool{New: func() any { return new(reader) }}

// decide looks whether a text may mean something else than was read: whether its
// session has to be asked first, or the text is refused.
func (r *reader) decide(p *insert.Plan, unknown bool, err error) (bool, error) {
	seen, odd := r.s.Seen, otherBytes(r.text)
	first := odd // from where on it may be read in another way
	if seen&lex.SeenDoubleQuote != 0 || seen&lex.SeenBackslash != 0 && (!r.settings.BackslashKnown || r.setsMode) {
		first = min(first, strings.IndexAny(r.text, "\\\""))
	}
	if seen&lex.SeenSixDigits != 0 {
		first = min(first, strings.Index(r.text, "/*!"))
	}
	refusal, refused := err.(*insert.Refusal)
	refused = refused && !refusal.Passing // which is not for what was read
	switch {
	case err != nil && !refused && !r.settings.SessionKnown && first < len(r.text): // of a word that may be no table
		return true, nil
	case err != nil && !refused, err == nil && r.decided <= first && strings.IndexByte(r.text[first:], ';') < 0:
		return unknown, err
	case !r.settings.SessionKnown && first < len(r.text):
		return true, nil
	}
	reason, fix := "", "send the SET in a text of its own"
	switch {
	case seen&lex.SeenSixDigits != 0:
		reason, fix = "a version comment of six digits means different things to MySQL servers", "write five digits, or no comment"
	case r.setsMode && seen&(lex.SeenBackslash|lex.SeenDoubleQuote) != 0:
		reason = "the text sets sql_mode and reads differently under another one"
	case odd == len(r.text):
	case mentions(r.settings.Charset, unsafeCharsets...):
		reason = "in the client's character set " + r.settings.Charset + " a byte of the text may be white space, or a part of a character, so that the end of a string is not certain"
		fix = "connect with charset=utf8mb4, or pass the values as arguments"
	case r.Session && mentions(r.text, unsafeCharsets...):
		reason = "the text sets a character set and may read differently under another one"
	}
	switch {
	case reason == "":
		return unknown, err
	case refused:
		return false, &insert.Refusal{Of: refusal.Of, Text: refusal.Text, Reason: reason, Fix: fix}
	case len(p.Inserts) > 0:
		return false, p.Inserts[0].Table.Refuse(reason, fix)
	}
	return false, &insert.Refusal{Reason: reason, Fix: fix}
}
