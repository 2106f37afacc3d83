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

// leafsql adds no keys to rows of a table that is known to be temporary: only one connection sees such a table, so the
// server's ids cannot collide.

// A temporaryTable is the known state of one of the connection's temporary tables.
type temporaryTable struct {
	// known is false after a statement may have dropped the table unnoticed. The server is then queried
	// before a statement relies on the table.
	known bool
	like  catalog.Name // table that it was created LIKE; zero if there is none, or if it has got AUTO_INCREMENT since
}

// isTemporary reports whether a name is known to refer to a temporary table of this connection. It also
// returns the table to fill, which is nil for most temporary tables.
func (p *Planner) isTemporary(ctx context.Context, text string, name catalog.Name) (bool, *insert.Table, error) {
	t, ok := p.temporary[name]
	if !ok {
		return false, nil, nil
	}
	if !t.known {
		// If it hides no configured table, no look-up is needed: the server returns an error if the temporary table was dropped.
		hidden, err := p.schema.Lookup(ctx, name)
		if hidden != nil || err != nil && err != tables.ErrNotInCatalog || t.like != (catalog.Name{}) {
			is, err := p.queryTemporary(ctx, text, name)
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
	if err == tables.ErrNotInCatalog || like == nil || like.AutoIncrement {
		return true, nil, nil
	}
	desc := tables.KeylessCopy(like, name)
	desc.Columns, err = p.VisibleColumns(ctx, text, name) // it may have been altered
	return true, desc, err
}

// queryTemporary queries the server, and reports whether a name refers to a temporary table on this
// connection. The error is a refusal or the server's, 1146 if there is no such table.
func (p *Planner) queryTemporary(ctx context.Context, text string, name catalog.Name) (bool, error) {
	if err := session.CheckQueryAllowed(text, "temporary tables", "drop the temporary table"); err != nil {
		return false, err
	}
	_, row, err := session.QueryRow(ctx, p.Conn, "SHOW CREATE TABLE "+name.Quoted())
	made := ""
	switch {
	case err == nil && len(row) > 1:
		made = asciiReplacer.Replace(row[1])
	case servererr.Is(err, servererr.TableDenied): // a temporary table is never denied
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
		p.selectPlans()
	}
	return is, err
}

// asciiReplacer reverts the effect of a session's character_set_results: in some character sets letters have
// several bytes, and MariaDB's filename escapes spaces.
var asciiReplacer = strings.NewReplacer("\x00", "", "@0020", " ")

// setTemporary records a temporary table.
func (p *Planner) setTemporary(name catalog.Name, t temporaryTable) {
	if p.temporary == nil {
		p.temporary = make(map[catalog.Name]temporaryTable)
	}
	p.temporary[name] = t
	p.selectPlans()
}

// needsPrivatePlans reports whether plans depend on temporary tables.
func (p *Planner) needsPrivatePlans() bool {
	for name, t := range p.temporary {
		if p.schema.IsConfigured(name) || p.schema.IsConfigured(t.like) {
			return true
		}
	}
	return false
}

// DoubtTemporary records that a statement may have dropped or created temporary tables unnoticed.
func (p *Planner) DoubtTemporary() {
	if len(p.temporary) > 0 { // this function is inlined in the way of each statement
		p.doubtTemporary()
	}
}

func (p *Planner) doubtTemporary() {
	doubt := false
	for name, t := range p.temporary {
		doubt = doubt || t.known
		p.temporary[name] = temporaryTable{like: t.like}
	}
	if doubt {
		p.selectPlans()
	}
}

// knowsTemporary reports whether a name is known to be a temporary table.
func (p *Planner) knowsTemporary(n insert.TableName) bool {
	_, ok := p.temporary[p.resolveName(n)]
	return ok
}

// recordTemporaryChange records the effect of a change on temporary tables, and reports whether it affects no
// other tables. ofOwn is set if the query changes a temporary table; like is the table that it was created LIKE.
func (p *Planner) recordTemporaryChange(change insert.Change, name catalog.Name, failed, ofOwn bool, like catalog.Name) bool {
	t, own := p.temporary[name]
	switch {
	case change.Temporary && !change.Drop:
		t.known = !failed && !own // after an error, or if the table existed before (IF NOT EXISTS), it may be unchanged
		if t.like == (catalog.Name{}) && change.Like.Table != "" {
			t.like = p.resolveName(change.Like)
			if of, ok := p.temporary[t.like]; ok {
				t.like = of.like
			}
		}
	case own && change.Drop && !failed:
		delete(p.temporary, name)
		p.selectPlans()
		return true
	case own, ofOwn: // it may be the new name of a renamed temporary table
		t = temporaryTable{like: cmp.Or(t.like, like)}
	default:
		return change.Temporary // DROP TEMPORARY affects no other table
	}
	p.setTemporary(name, t)
	return own || change.Temporary
}

// resolveName returns the table that a name in a query refers to, as far as the database in use is known.
func (p *Planner) resolveName(n insert.TableName) catalog.Name {
	if n.DB == "" {
		n.DB = p.DB
	}
	return p.tables.NormalizeName(n.DB, n.Table)
}
