package driver

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/leafsql/leafsql/driver/internal/catalog"
	"github.com/leafsql/leafsql/idgen"
)

// likes are the tables of a database whose names fit a pattern.
func (c *Connector) likes(ctx context.Context, pattern catalog.Name) (likes []catalog.Name, err error) {
	if !strings.Contains(pattern.Table, "*") {
		return []catalog.Name{pattern}, nil
	}
	names, err := c.catalog.Tables(ctx, pattern.DB)
	if err != nil {
		return nil, catalogError("the tables of "+pattern.DB, err)
	}
	for _, name := range names {
		if wildcard(pattern.Table, name) {
			likes = append(likes, catalog.Name{DB: pattern.DB, Table: name})
		}
	}
	return likes, nil
}

// vacant refuses ids first … last of a sequence that begins again at its end while a
// table that it feeds has keys among them.
func (t *table) vacant(ctx context.Context, first, last int64) error {
	refused := func(table, column, reason, way string) error {
		return &TableError{table, column, fmt.Sprintf("sequence %q, which cycles, would give out ids from %d to %d again, and %s", t.tag(), first, last, reason), way}
	}
	if t.c.otherStore() {
		return refused(t.name.String(), t.column, "other shards, which cannot be seen from here, may have rows with them", "set cycle = 0 for tables on several shards")
	}
	for _, rule := range t.c.rules {
		if rule.Exclude || rule.Kind != Sequence {
			continue
		}
		if strings.Contains(rule.Database, "*") {
			return refused(t.name.String(), t.column, "its tables are in databases that no rule names", "name the databases in leafTables")
		}
		pattern := catalog.Name{DB: rule.Database, Table: rule.Table}
		if pattern.DB == "" {
			pattern.DB = t.c.defaultDB
		}
		names, err := t.c.likes(ctx, pattern)
		if err != nil {
			return err
		}
		for _, name := range names {
			desc, err := t.c.lookup(ctx, t.c.schema.Load(), name)
			if errors.Is(err, errUnseenTable) || err == nil && desc == nil {
				continue
			}
			if err != nil {
				return err
			}
			other := desc.Ref.(*table)
			if other.rule.Kind != Sequence || other.tag() != t.tag() {
				continue
			}
			highest, known, err := other.readBelow(ctx, name, last+1)
			switch {
			case err != nil:
				return catalogError("the keys of table "+name.String(), err)
			case !known:
				return refused(name.String(), other.column, "no index tells whether its rows have them", "add an index that begins with the column, or set cycle = 0")
			case highest >= first:
				return refused(name.String(), other.column, fmt.Sprintf("its row %d has one", highest), "delete the rows that are in the way, or raise max_value")
			}
		}
	}
	return nil
}

// tag is the biz_tag, or the sequence, that feeds the table.
func (t *table) tag() string { return t.rule.tag(t.name.Table) }

// counter is what ids are drawn from once the row was looked at.
func (t *table) counter() idgen.Generator {
	if t.cycle != nil {
		return t.cycle
	}
	return t.gen
}
