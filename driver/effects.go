package driver

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/ids"
	"github.com/leafsql/leafsql/driver/internal/insert"
	"github.com/leafsql/leafsql/internal/servererr"
)

// What texts do to the session and to tables, apart from writing rows: it is noted
// once they ran, and what is known no more is looked at again.

// after notes what a text did to the session and to the tables.
func (c *conn) after(st *statement, err error) {
	p := st.plan
	if p.Opaque {
		c.afterOpaque()
	}
	if len(p.Changes) > 0 { // whose bare names are of the database before a USE in the text
		c.noteChanges(p, err != nil)
	}
	switch {
	case err != nil || p.Opaque:
		c.doubtDatabase(st)
	case p.Use != "":
		c.Use(p.Use)
	}
	if p.Session {
		c.ForgetSettings()
	}
	if p.Runs {
		c.doubtTemporary()
	}
	if err != nil && servererr.Is(err, servererr.UnknownColumn, servererr.ColumnCount, servererr.NoSuchTable) {
		c.connector.forget(func(name catalog.Name) bool {
			return slices.ContainsFunc(p.Inserts, func(in insert.Insert) bool { return in.Table.Ref.(*table).name == name })
		})
	}
}

// doubtDatabase notes that a text's USE may not have worked: the rest of the text
// failed, or the answers of its statements are still to be read.
func (c *conn) doubtDatabase(st *statement) {
	if st.plan.Use != "" {
		c.DBUnknown, c.last = true, nil
	}
}

// errUnread stands for what the answers may tell that are still to be read.
var errUnread = errors.New("leafsql: answers are still to be read")

// unread is the error to be noted of a statement that answers with rows.
func (st *statement) unread(err error) error {
	if err == nil && st.plan.Results > 1 {
		return errUnread
	}
	return err
}

// afterOpaque notes that statements ran whose texts were not seen: in a routine, or
// prepared by SQL. They can change the database in use on MariaDB alone, since
// 10.6.2, where EXECUTE may run a USE.
func (c *conn) afterOpaque() {
	c.opaque = true
	c.DBUnknown = c.DBUnknown || c.Settings.MariaDB && c.Settings.Version >= 100602
	c.verified, c.last = c.verified[:0], nil
	c.ForgetSettings()
	c.doubtTemporary()
}

// noteChanges forgets what is known of tables that a text changes. A temporary
// table is this connection's alone.
func (c *conn) noteChanges(p *insert.Plan, failed bool) {
	ofOwn, like := false, catalog.Name{} // the text has named a temporary table, made LIKE that one
	for _, change := range p.Changes {
		if change.Program { // which any statement may run
			c.connector.forget(func(catalog.Name) bool { return true })
			continue
		}
		name, anyDB := c.nameOf(change.TableName), change.DB == "" && c.DBUnknown
		gone := name // perhaps, and with it rows that ids come from
		if anyDB {
			gone.DB = ""
		}
		ids.Gone(server(c.connector.cfg.MySQL), gone.DB, gone.Table, change.Database && !failed)
		if t, own := c.temporary[name]; own {
			ofOwn, like = true, cmp.Or(like, t.like)
		}
		switch {
		case change.Database:
			c.connector.forget(func(n catalog.Name) bool { return n.DB == name.DB })
		case change.Truncate:
		case c.changeTemporary(change, name, failed, ofOwn, like):
		default:
			c.connector.forget(func(n catalog.Name) bool { return n == name || anyDB && n.Table == name.Table })
		}
	}
	if c.DBUnknown {
		c.doubtTemporary()
	}
}

// verify looks again at the tables of a statement, after a routine ran that may have
// changed their columns, or made temporary tables of their names.
func (c *conn) verify(ctx context.Context, text string, st *statement) (*statement, error) {
	for i := range st.plan.Inserts {
		t := st.plan.Inserts[i].Table
		name := t.Ref.(*table).name
		if slices.Contains(c.verified, name) {
			continue
		}
		again, err := c.askTemporary(ctx, text, name)
		if err != nil {
			return nil, err
		}
		if !again && st.positional() {
			columns, err := c.VisibleColumns(ctx, text, insert.TableName(name))
			if err != nil && !servererr.Is(err, servererr.TableDenied, servererr.ColumnDenied) {
				return nil, err
			}
			if again = err == nil && !slices.Equal(columns, t.Columns); again {
				c.forget(name)
			}
		}
		c.verified = append(c.verified, name)
		if again {
			if st, _, err = c.plan(ctx, text); err != nil {
				return nil, err
			}
			return c.verify(ctx, text, st)
		}
	}
	return st, nil
}

// forget forgets what is known of a table, here and everywhere.
func (c *conn) forget(name catalog.Name) {
	c.connector.forget(func(n catalog.Name) bool { return n == name })
	c.schema = c.connector.schema.Load()
	c.replan()
}
