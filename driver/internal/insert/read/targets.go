package read

import (
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/lex"
)

// Targets returns the tables that INSERT, REPLACE and LOAD write in the text of a stored
// program, each as often as it is named. db is what bare names in it mean. Strings count as
// text if the program runs texts: EXECUTE could run them.
func Targets(text, db string, settings insert.Settings) []insert.TableName {
	var targets []insert.TableName
	var strs []string
	executes := false
	r := programReader(text, db, settings)
	r.schema.Table = func(db, name string) (*insert.Table, error) {
		targets = append(targets, insert.TableName{DB: db, Table: name})
		return nil, nil
	}
	prev := r.tok
	for r.next(); !r.ended(); r.next() {
		switch before := text[prev.Pos:prev.End]; {
		case r.tok.Kind == lex.String:
			strs = append(strs, stringContent(r.str()))
		case r.tok.Kind == lex.Word && prev.Kind != '.':
			executes = executes || r.isAny("execute", "prepare")
			if r.writes() && !lex.Is(before, "or") { // CREATE OR REPLACE is no REPLACE
				at := r.cursor
				_ = r.statement() // looks up its table, and no other
				r.cursor = at
			}
		}
		prev = r.tok
	}
	if executes {
		for _, s := range strs {
			targets = append(targets, Targets(s, db, settings)...)
		}
	}
	return targets
}

// programReader returns a reader in front of a stored program's first token.
func programReader(text, db string, settings insert.Settings) *reader {
	r := &reader{text: text, settings: settings, Findings: insert.Findings{Use: db}}
	r.s = settings.Scanner(text)
	return r
}
