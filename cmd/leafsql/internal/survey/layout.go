package survey

import (
	"context"
	"database/sql"
	"slices"
	"strconv"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
)

// A Layout describes the columns and keys of leaf_alloc or leaf_worker.
type Layout struct {
	Columns    map[string]Column // by name, in lower case
	Unique     bool              // no two rows can have the same tag or worker id
	PrimaryKey bool              // it has a primary key, on any columns
}

// A Column is a column of a Layout.
type Column struct {
	Type     string // in lower case
	Charset  string // "" if it has no character set
	Nullable bool
	Default  sql.NullString
	Extra    string // in lower case
}

// HoldsMarks reports whether the column has room for a text and the mark at its end.
func (c Column) HoldsMarks() bool {
	typ, rest, _ := strings.Cut(c.Type, "(")
	length, _ := strconv.Atoi(strings.TrimSuffix(rest, ")"))
	return strings.HasSuffix(typ, "text") || strings.HasSuffix(typ, "char") && length >= 256
}

// readLayout queries the catalog. key is the column that must be unique.
func readLayout(ctx context.Context, table *databases.Store, key string) (l Layout, err error) {
	l.Columns = make(map[string]Column)
	err = table.Each(ctx, func(scan func(...any) error) error {
		var name, nullable string
		var c Column
		if err := scan(&name, &c.Type, &c.Charset, &nullable, &c.Default, &c.Extra); err != nil {
			return err
		}
		c.Type, c.Extra, c.Nullable = strings.ToLower(c.Type), strings.ToLower(c.Extra), nullable == "YES"
		l.Columns[strings.ToLower(name)] = c
		return nil
	}, "SELECT column_name, column_type, COALESCE(character_set_name, ''), is_nullable, column_default, extra FROM information_schema.columns WHERE table_schema = ? AND table_name = ?", table.Database, table.Table)
	if err != nil {
		return l, readError(table, err)
	}
	keys, err := table.List(ctx, "SELECT CASE WHEN COUNT(*) = 1 AND MAX(LOWER(column_name)) = ? THEN 'key' ELSE 'other' END FROM information_schema.statistics"+
		" WHERE table_schema = ? AND table_name = ? AND non_unique = 0 GROUP BY index_name", key, table.Database, table.Table)
	if err != nil {
		return l, readError(table, err)
	}
	l.Unique = slices.Contains(keys, "key")
	primary, err := table.List(ctx, "SELECT column_name FROM information_schema.statistics WHERE table_schema = ? AND table_name = ? AND index_name = 'PRIMARY'", table.Database, table.Table)
	if err != nil {
		return l, readError(table, err)
	}
	l.PrimaryKey = len(primary) > 0
	return l, nil
}
