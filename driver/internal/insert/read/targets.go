package read

import (
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// FindTargets returns the tables that INSERT, REPLACE and LOAD write in the text of a stored program, once
// for each statement. db is the database of unqualified names. If the program has EXECUTE or PREPARE, strings are
// also read as SQL, since EXECUTE could run them.
func FindTargets(text, db string, settings insert.Settings) []insert.TableName {
	var targets []insert.TableName
	var strs []string
	executes := false
	r := programReader(text, db, settings)
	r.schema.Table = func(db, name string) (*insert.Table, error) {
		targets = append(targets, insert.TableName{DB: db, Table: name})
		return nil, nil
	}
	prev := r.tok
	for r.next(); !r.atQueryEnd(); r.next() {
		switch before := text[prev.Pos:prev.End]; {
		case r.tok.Kind == lex.String:
			strs = append(strs, stringContent(r.tokenText()))
		case r.tok.Kind == lex.Word && prev.Kind != '.':
			executes = executes || r.isAny("execute", "prepare")
			if r.beginsWrite() && !lex.Is(before, "or") { // CREATE OR REPLACE is not REPLACE
				at := r.cursor
				_ = r.statement() // looks up the target of this statement only
				r.cursor = at
			}
		}
		prev = r.tok
	}
	if executes {
		for _, s := range strs {
			targets = append(targets, FindTargets(s, db, settings)...)
		}
	}
	return targets
}

// programReader returns a reader positioned in front of a stored program's first token.
func programReader(text, db string, settings insert.Settings) *reader {
	r := &reader{text: text, settings: settings, Findings: insert.Findings{Use: db}}
	r.s = settings.Scanner(text)
	return r
}
