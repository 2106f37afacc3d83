package planner

import (
	"cmp"
	"context"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
	"github.com/leafsql/leafsql/driver/internal/tables"
	"github.com/leafsql/leafsql/internal/servererr"
)

// Temporary tables belong to the server: one connection alone sees them, so that
// nothing can collide. A name that is known to be one is left alone.

// A temporaryTable is what a connection knows of one that it has.
type temporaryTable struct {
	// known is false once something may have dropped it unseen: it is asked for before
	// a statement relies on it.
	known bool
	like  catalog.Name // made LIKE that table, and not given AUTO_INCREMENT since; else zero
}

// isTemporary says whether a name means a temporary table of this connection that a
// text or a question has shown, and what is to be filled of it: mostly nothing.
func (p *Planner) isTemporary(ctx context.Context, text string, name catalog.Name) (bool, *insert.Table, error) {
	t, ok := p.temporary[name]
	if !ok {
		return false, nil, nil
	}
	if !t.known {
		// Where it hides no table that is to be filled, the server has an error for one that is gone.
		hidden, err := p.schema.Lookup(ctx, name)
		if hidden != nil || err != nil && err != tables.ErrUnseen || t.like != (catalog.Name{}) {
			is, err := p.askTemporary(ctx, text, name)
			if servererr.Is(err, servererr.NoSuchTable) {
				err = nil
			}
			if err != nil || !is {
				return false, nil, err
			}
			t = p.temporary[name]
		}
	}
	if t.like == (catalog.Name{}) {
		return true, nil, nil
	}
	like, err := p.schema.Lookup(ctx, t.like)
	if err == tables.ErrUnseen || like == nil || like.AutoIncrement {
		return true, nil, nil
	}
	desc := tables.Keyless(like, name)
	desc.Columns, err = p.VisibleColumns(ctx, text, name) // it may have been altered
	return true, desc, err
}

// askTemporary asks whether a name means a temporary table on this connection. The error
// is the server's own, 1146 where there is no such table.
func (p *Planner) askTemporary(ctx context.Context, text string, name catalog.Name) (bool, error) {
	if err := session.MayAsk(text, "temporary tables", "drop the temporary table"); err != nil {
		return false, err
	}
	_, row, err := session.Row(ctx, p.Conn, "SHOW CREATE TABLE "+name.Quoted())
	made := ""
	switch {
	case err == nil && len(row) > 1:
		made = inASCII.Replace(row[1])
	case servererr.Is(err, servererr.TableDenied): // a temporary one may always be shown
		err = nil
	case !servererr.Is(err, servererr.NoSuchTable):
		return false, err
	}
	is := strings.HasPrefix(made, "CREATE TEMPORARY")
	t, ok := p.temporary[name]
	if strings.Contains(made, "AUTO_INCREMENT") {
		t.like = catalog.Name{}
	}
	switch t.known = true; {
	case is:
		p.setTemporary(name, t)
	case ok:
		delete(p.temporary, name)
		p.replan()
	}
	return is, err
}

// inASCII undoes what a session's character_set_results makes of letters, which have several bytes in some, and of spaces, which
// MariaDB's filename escapes.
var inASCII = strings.NewReplacer("\x00", "", "@0020", " ")

// setTemporary notes a temporary table.
func (p *Planner) setTemporary(name catalog.Name, t temporaryTable) {
	if p.temporary == nil {
		p.temporary = make(map[catalog.Name]temporaryTable)
	}
	p.temporary[name] = t
	p.replan()
}

// ownPlans says whether plans depend on temporary tables.
func (p *Planner) ownPlans() bool {
	for name, t := range p.temporary {
		if p.schema.Configured(name) || p.schema.Configured(t.like) {
			return true
		}
	}
	return false
}

// DoubtTemporary notes that something ran which may have dropped or made temporary
// tables unseen.
func (p *Planner) DoubtTemporary() {
	doubt := false
	for name, t := range p.temporary {
		doubt = doubt || t.known
		p.temporary[name] = temporaryTable{like: t.like}
	}
	if doubt {
		p.replan()
	}
}

// knowsTemporary says whether a name means a temporary table, as far as is known.
func (p *Planner) knowsTemporary(n insert.TableName) bool {
	_, ok := p.temporary[p.nameOf(n)]
	return ok
}

// changeTemporary notes what a change does to temporary tables, and says whether it
// concerns nothing else. ofOwn says that the text changes a temporary table, which was
// made LIKE like.
func (p *Planner) changeTemporary(change insert.Change, name catalog.Name, failed, ofOwn bool, like catalog.Name) bool {
	t, own := p.temporary[name]
	switch {
	case change.Temporary && !change.Drop:
		t.known = !failed && !own // else it may be as it was: the text says IF NOT EXISTS, perhaps
		if t.like == (catalog.Name{}) && change.Like.Table != "" {
			t.like = p.nameOf(change.Like)
			if of, ok := p.temporary[t.like]; ok {
				t.like = of.like
			}
		}
	case own && change.Drop && !failed:
		delete(p.temporary, name)
		p.replan()
		return true
	case own, ofOwn: // what it was renamed to, perhaps
		t = temporaryTable{like: cmp.Or(t.like, like)}
	default:
		return change.Temporary // of no other table
	}
	p.setTemporary(name, t)
	return own || change.Temporary
}

// nameOf is what a name in a text means, as far as the database in use is known.
func (p *Planner) nameOf(n insert.TableName) catalog.Name {
	if n.DB == "" {
		n.DB = p.DB
	}
	return p.tables.Name(n.DB, n.Table)
}
