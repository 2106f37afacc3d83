package planner

import (
	"cmp"
	"context"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/servererr"
)

// judged returns the error for a statement that is refused: the server's own if it refuses the statement too, for a
// guarded session whatever its reason is, else if it cannot read it either.
func (p *Planner) judged(ctx context.Context, refusal *insert.Refusal, text string) error {
	if p.Permitted == nil && (!refusal.Unreadable || strings.Contains(text, ";")) {
		return refusal
	}
	one := cmp.Or(refusal.Text, text)
	err := p.tryPrepare(ctx, one, refusal.Of)
	switch parse := servererr.Is(err, servererr.Parse); {
	case err == nil, p.Permitted == nil && !parse, servererr.Is(err, servererr.NotPreparable):
		return refusal
	case parse && strings.Contains(one, ";"):
		return &insert.Refusal{Reason: "one of its statements cannot be filled, and the server cannot judge it within this text", Fix: "send the statements one by one"}
	}
	return err
}

// unseen returns the error for a statement into a table that the catalog does not show, and that is no temporary one of this
// session: the server's own, 1142 or 1146, or else the refusal for a table that leafsql's own account may not see.
func (p *Planner) unseen(ctx context.Context, text string, name catalog.Name) error {
	if strings.Contains(text, ";") {
		text = emptyInsert(name)
	}
	if err := p.tryPrepare(ctx, text, name); err != nil {
		return err
	}
	return &insert.Refusal{Of: name, Passing: true,
		Reason: "leafsql's own account may not see the table", Fix: "GRANT SELECT, INSERT ON " + name.Quoted() + " to the account in leafsql's DSN"}
}

// tryPrepare is TryPrepare. A text that the server cannot prepare is judged by an INSERT of no columns into its table, and so is LOAD
// DATA: MariaDB requires UPDATE for its SET when it prepares it, and not when it runs it.
func (p *Planner) tryPrepare(ctx context.Context, text string, name catalog.Name) error {
	err := p.TryPrepare(ctx, text)
	load := strings.EqualFold(text[:min(len(text), len("LOAD"))], "LOAD")
	if (servererr.Is(err, servererr.NotPreparable) || load && servererr.Denied(err)) && name.Table != "" {
		err = p.TryPrepare(ctx, emptyInsert(name))
	}
	return err
}

func emptyInsert(name catalog.Name) string { return "INSERT INTO " + name.Quoted() + " () VALUES ()" }
