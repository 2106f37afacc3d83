package driver

import (
	"cmp"
	"context"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/driver/internal/session"
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
func (c *conn) isTemporary(ctx context.Context, text string, name catalog.Name) (bool, *insert.Table, error) {
	t, ok := c.temporary[name]
	if !ok {
		return false, nil, nil
	}
	if !t.known {
		// Where it hides no table that is to be filled, the server has an error for one that is gone.
		hidden, err := c.connector.lookup(ctx, c.schema, name)
		if hidden != nil || err != nil && err != errUnseenTable || t.like != (catalog.Name{}) {
			is, err := c.askTemporary(ctx, text, name)
			if servererr.Is(err, servererr.NoSuchTable) {
				err = nil
			}
			if err != nil || !is {
				return false, nil, err
			}
			t = c.temporary[name]
		}
	}
	if t.like == (catalog.Name{}) {
		return true, nil, nil
	}
	like, err := c.connector.lookup(ctx, c.schema, t.like)
	if err == errUnseenTable || like == nil || like.Ref.(*table).key.AutoIncrement {
		return true, nil, nil
	}
	desc := keyless(like, name)
	desc.Columns, err = c.VisibleColumns(ctx, text, insert.TableName(name)) // it may have been altered
	return true, desc, err
}

// askTemporary asks whether a name means a temporary table on this connection. The error
// is the server's own, 1146 where there is no such table.
func (c *conn) askTemporary(ctx context.Context, text string, name catalog.Name) (bool, error) {
	if err := session.MayAsk(text, "temporary tables", "drop the temporary table"); err != nil {
		return false, err
	}
	rows, err := session.ReadAll(ctx, c.Conn, "SHOW CREATE TABLE "+name.Quoted())
	made := ""
	switch {
	case err == nil && len(rows.All) > 0:
		made = strings.ReplaceAll(session.Text(rows.All[0][1]), "\x00", "") // in some character_set_results a letter has several bytes
	case servererr.Is(err, servererr.TableDenied): // a temporary one may always be shown
		err = nil
	case !servererr.Is(err, servererr.NoSuchTable):
		return false, err
	}
	is := strings.HasPrefix(made, "CREATE TEMPORARY")
	t, ok := c.temporary[name]
	if strings.Contains(made, "AUTO_INCREMENT") {
		t.like = catalog.Name{}
	}
	switch t.known = true; {
	case is:
		c.setTemporary(name, t)
	case ok:
		delete(c.temporary, name)
		c.replan()
	}
	return is, err
}

// setTemporary notes a temporary table.
func (c *conn) setTemporary(name catalog.Name, t temporaryTable) {
	if c.temporary == nil {
		c.temporary = make(map[catalog.Name]temporaryTable)
	}
	c.temporary[name] = t
	c.replan()
}

// ownPlans says whether plans depend on temporary tables.
func (c *conn) ownPlans() bool {
	for name, t := range c.temporary {
		if c.configured(name) || c.configured(t.like) {
			return true
		}
	}
	return false
}

// doubtTemporary notes that something ran which may have dropped or made temporary
// tables unseen.
func (c *conn) doubtTemporary() {
	doubt := false
	for name, t := range c.temporary {
		doubt = doubt || t.known
		c.temporary[name] = temporaryTable{like: t.like}
	}
	if doubt {
		c.replan()
	}
}

// knowsTemporary says whether a name means a temporary table, as far as is known.
func (c *conn) knowsTemporary(n insert.TableName) bool {
	_, ok := c.temporary[c.nameOf(n)]
	return ok
}

// changeTemporary notes what a change does to temporary tables, and says whether it
// concerns nothing else. ofOwn says that the text changes a temporary table, which was
// made LIKE like.
func (c *conn) changeTemporary(change insert.Change, name catalog.Name, failed, ofOwn bool, like catalog.Name) bool {
	t, own := c.temporary[name]
	switch {
	case change.Temporary:
		t.known = !failed && !own // else it may be as it was: the text says IF NOT EXISTS, perhaps
		if t.like == (catalog.Name{}) && change.Like.Table != "" {
			t.like = c.nameOf(change.Like)
			if of, ok := c.temporary[t.like]; ok {
				t.like = of.like
			}
		}
	case own && change.Drop && !failed:
		delete(c.temporary, name)
		c.replan()
		return true
	case own, ofOwn: // what it was renamed to, perhaps
		t = temporaryTable{like: cmp.Or(t.like, like)}
	default:
		return false
	}
	c.setTemporary(name, t)
	return own || change.Temporary
}

// keyless is a temporary table that was made like a configured one: it has neither
// AUTO_INCREMENT nor ids, so that a row without a key is refused.
func keyless(like *insert.Table, name catalog.Name) *insert.Table {
	t := like.Ref.(*table)
	desc := *like
	desc.DB, desc.Name = name.DB, name.Table
	desc.Floors, desc.Marker, desc.UpsertMarker, desc.Triggers = false, false, false, insert.Effects{}
	desc.Ref = &table{fit: t.fit, c: t.c, name: name, keyless: true}
	return &desc
}

// configured says whether a rule means a table of that name.
func (c *conn) configured(name catalog.Name) bool {
	_, ok := c.connector.rule(c.connector.schema.Load(), name)
	return ok
}

// nameOf is what a name in a text means, as far as the database in use is known.
func (c *conn) nameOf(n insert.TableName) catalog.Name {
	if n.DB == "" {
		n.DB = c.DB
	}
	return c.connector.fold(n.DB, n.Table)
}
