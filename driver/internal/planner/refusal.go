package planner

import (
	"cmp"
	"context"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/servererr"
)

// judgeRefusal returns the error for a refused statement: the server's error if the server also refuses the
// statement, otherwise the refusal. For a session with a client's own account any error of the server counts; for other
// sessions only a syntax error counts.
func (p *Planner) judgeRefusal(ctx context.Context, refusal *insert.Refusal, text string) error {
	if p.Permitted == nil && (!refusal.Unreadable || strings.Contains(text, ";")) {
		return refusal
	}
	one := cmp.Or(refusal.Statement, text)
	err := p.tryPrepare(ctx, one, refusal.Table)
	switch parse := servererr.Is(err, servererr.Parse); {
	case err == nil, p.Permitted == nil && !parse, servererr.Is(err, servererr.NotPreparable):
		return refusal
	case parse && strings.Contains(one, ";"):
		return &insert.Refusal{Reason: "one of its statements cannot be filled, and the server cannot check the account's right to it within this query", Fix: "send the statements one by one"}
	}
	return err
}

// unseenTableError returns the error for a statement that writes a table which is neither in the catalog nor a
// temporary table of this session. It is the server's error, 1142 or 1146. If there is no such error, it is the refusal
// for a table that leafsql's account may not see.
func (p *Planner) unseenTableError(ctx context.Context, text string, name catalog.Name) error {
	if strings.Contains(text, ";") {
		text = emptyInsert(name)
	}
	if err := p.tryPrepare(ctx, text, name); err != nil {
		return err
	}
	return &insert.Refusal{Table: name, Transient: true,
		Reason: "leafsql's account has no right to read the table", Fix: "GRANT SELECT, INSERT ON " + name.Quoted() + " to the account in leafsql's DSN"}
}

// tryPrepare is like TryPrepare, but replaces a query that the server cannot prepare by an INSERT of no
// columns into its table. It also replaces a LOAD DATA that is denied: for its SET, MariaDB requires
// the privilege UPDATE when the statement is prepared, but not when it runs.
func (p *Planner) tryPrepare(ctx context.Context, text string, name catalog.Name) error {
	err := p.TryPrepare(ctx, text)
	load := strings.EqualFold(text[:min(len(text), len("LOAD"))], "LOAD")
	if (servererr.Is(err, servererr.NotPreparable) || load && servererr.Denied(err)) && name.Table != "" {
		err = p.TryPrepare(ctx, emptyInsert(name))
	}
	return err
}

func emptyInsert(name catalog.Name) string { return "INSERT INTO " + name.Quoted() + " () VALUES ()" }
