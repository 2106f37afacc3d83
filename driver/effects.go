package driver

import (
	"context"
	"slices"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/driver/internal/insert"
)

// What texts do to the session and to tables, apart from writing rows: it is noted
// once they ran, and what is known no more is looked at again.

// after notes what a text did to the session and to the tables.
func (c *conn) after(st *statement, err error) {
	p := st.plan
	switch {
	case p.Unseen:
		c.afterUnseen()
	case p.Use != "" && err != nil:
		c.doubtUse(st)
	case p.Use != "":
		c.use(p.Use)
	}
	if p.Charset || p.Unseen && c.settings.CharsetKnown {
		c.settings.Charset, c.settings.CharsetKnown = "", false
		c.replan()
	}
	if len(p.Changes) > 0 {
		c.noteChanges(p)
	}
	if err != nil && isServerError(err, errUnknownColumn, errColumnCount, errNoSuchTable) {
		c.connector.forget(func(name catalog.Name) bool {
			return slices.ContainsFunc(p.Inserts, func(in insert.Insert) bool { return in.Table.Ref.(*table).name == name })
		})
	}
}

// doubtUse notes that a text's USE may not have worked: the rest of the text
// failed, or the answers of its statements are still to be read.
func (c *conn) doubtUse(st *statement) {
	if st.plan.Use != "" {
		c.dbUnknown, c.last = true, nil
	}
}

// afterUnseen notes that statements ran whose texts were not seen: in a routine, or
// prepared by SQL. They can change the database in use on MariaDB alone, since
// 10.6.2, where EXECUTE may run a USE.
func (c *conn) afterUnseen() {
	c.unseen = true
	if c.settings.MariaDB && c.settings.Version >= 100602 || !c.settings.VersionKnown {
		c.dbUnknown = true
	}
	c.verified, c.last = c.verified[:0], nil
}

// noteChanges forgets what is known of tables that a text changes. A temporary
// table is this connection's alone.
func (c *conn) noteChanges(p *insert.Plan) {
	for _, change := range p.Changes {
		if change.Program { // which any statement may run
			c.connector.forget(func(catalog.Name) bool { return true })
			continue
		}
		db := change.DB
		if db == "" {
			db = c.db
		}
		name := c.connector.fold(db, change.Table)
		_, configured := c.connector.rule(c.connector.schema.Load(), name)
		switch _, own := c.temporary[name]; {
		case change.Database:
			c.connector.forget(func(n catalog.Name) bool { return n.DB == name.DB })
		case !configured:
		case change.Temporary:
			c.setTemporary(name, nil)
		case own && change.Drop:
			delete(c.temporary, name)
			c.replan()
		case own:
			c.setTemporary(name, nil)
		default:
			c.connector.forget(func(n catalog.Name) bool { return n == name })
		}
		if change.DB == "" && c.dbUnknown {
			c.connector.forget(func(n catalog.Name) bool { return n.Table == name.Table })
		}
	}
}

// verify looks again at the tables of a statement whose columns come from the
// catalog, after a routine ran that may have changed them or made a temporary
// table of that name.
func (c *conn) verify(ctx context.Context, text string, st *statement) (*statement, error) {
	for i := range st.plan.Inserts {
		t := st.plan.Inserts[i].Table
		name := t.Ref.(*table).name
		if c.temporary[name] != nil || slices.Contains(c.verified, name) {
			continue
		}
		if mayReadCounts(text) {
			return nil, countsRefusal("columns, which a routine may have changed,", "list them")
		}
		columns, err := c.visibleColumns(ctx, name)
		if isServerError(err, errTableDenied, errColumnDenied) {
			continue // a temporary table may always be read
		}
		if err != nil {
			return nil, err
		}
		if !slices.Equal(columns, t.Columns) {
			c.forget(name)
			if now, err := c.connector.lookup(ctx, c.schema, name); err != nil && err != errUnseenTable {
				return nil, err
			} else if now == nil || !slices.Equal(columns, now.Columns) {
				c.setTemporary(name, nil)
			}
			st, _, err = c.plan(ctx, text, c.settings)
			return st, err
		}
		c.verified = append(c.verified, name)
	}
	return st, nil
}

// forget forgets what is known of a table, here and everywhere.
func (c *conn) forget(name catalog.Name) {
	c.connector.forget(func(n catalog.Name) bool { return n == name })
	c.schema = c.connector.schema.Load()
	c.replan()
}
