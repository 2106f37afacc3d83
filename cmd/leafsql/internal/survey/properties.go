package survey

import (
	"context"
	"database/sql"
	"fmt"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
)

// Properties are the properties of a table and its key, as far as the user can see them.
type Properties struct {
	Engine        string
	Transactional bool // the engine rolls back a failed statement
	Versioned     bool // MariaDB keeps the table's history (WITH SYSTEM VERSIONING)
	Nullable      bool // the key may be NULL
	AutoRandom    bool // TiDB generates the key, and accepts no other
	Sequence      bool // the key's default is the next number of a MariaDB sequence
}

// readProperties queries the catalog for the table's properties.
func (t *Table) readProperties(ctx context.Context) error {
	if t.Err != nil {
		return nil
	}
	var nullable, byDefault, transactions string
	err := t.Shard.DB.QueryRowContext(ctx, "SELECT c.is_nullable, COALESCE(c.column_default, ''), COALESCE(t.engine, ''), COALESCE(e.transactions, ''), t.table_type = 'SYSTEM VERSIONED'"+
		" FROM information_schema.columns c, information_schema.tables t LEFT JOIN information_schema.engines e ON e.engine = t.engine"+
		" WHERE c.table_schema = ? AND c.table_name = ? AND c.column_name = ? AND t.table_schema = ? AND t.table_name = ?",
		t.Database, t.Table.Table, t.Column, t.Database, t.Table.Table).
		Scan(&nullable, &byDefault, &t.Engine, &transactions, &t.Versioned)
	switch {
	case err == sql.ErrNoRows: // the user has lost the right, or MariaDB omits the table because it is locked
		return nil
	case err != nil:
		return fmt.Errorf("leafsql: the engine and key of %s: %w; %s", t.Location(), err, databases.Hint(err))
	}
	if t.Shard.TiDB {
		err := t.Shard.DB.QueryRowContext(ctx, "SELECT COALESCE(tidb_row_id_sharding_info, '') LIKE 'PK_AUTO_RANDOM_BITS%' FROM information_schema.tables WHERE table_schema = ? AND table_name = ?",
			t.Database, t.Table.Table).Scan(&t.AutoRandom)
		if err != nil {
			return fmt.Errorf("leafsql: the key of %s: %w; %s", t.Location(), err, databases.Hint(err))
		}
	}
	t.Nullable, t.Transactional = nullable == "YES", transactions == "YES"
	t.Sequence = strings.HasPrefix(strings.ToLower(byDefault), "nextval(")
	return nil
}
