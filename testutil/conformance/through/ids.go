package through

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"sync"

	"github.com/jmoiron/sqlx"

	"github.com/leafsql/leafsql/idgen/segment"
)

// openStore creates an empty leaf_alloc in a separate database, because suites
// list the tables of their own database.
func openStore(db *sql.DB) (*segment.AllocStore, error) {
	var name string
	if err := db.QueryRow("SELECT CONCAT(DATABASE(), '_ids')").Scan(&name); err != nil {
		return nil, err
	}
	for _, stmt := range []string{"DROP DATABASE IF EXISTS ", "CREATE DATABASE "} {
		if _, err := db.Exec(stmt + name); err != nil {
			return nil, err
		}
	}
	store := segment.NewAllocStore(sqlx.NewDb(db, "mysql"), name+".leaf_alloc")
	return store, store.Create(context.Background())
}

// tableIDs issues a table's ids. A suite creates the same table many times, and each
// time the ids come from a new tag.
type tableIDs struct {
	table string
	db    *sql.DB
	store *segment.AllocStore

	mu      sync.Mutex
	current *segment.Generator // nil: not used since the table was created
	lives   int
}

func (g *tableIDs) restart() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current != nil {
		g.current.Close()
		g.current = nil
	}
}

// Next implements idgen.Generator.
func (g *tableIDs) Next(ctx context.Context, n int) (int64, error) {
	current, err := g.generator(ctx)
	if err != nil {
		return 0, err
	}
	return current.Next(ctx, n)
}

// Skip moves the counter past k, a key that a row has already.
func (g *tableIDs) Skip(ctx context.Context, k int64) error {
	current, err := g.generator(ctx)
	if err != nil {
		return err
	}
	return current.Skip(ctx, k)
}

// generator adds the tag's row if it is missing, above every key in the table,
// as leafCreate does.
func (g *tableIDs) generator(ctx context.Context) (*segment.Generator, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.current == nil {
		g.lives++
		tag := fmt.Sprintf("%s#%d", g.table, g.lives)
		if err := g.store.Ensure(ctx, tag, g.highest(ctx)+1, 100); err != nil {
			return nil, err
		}
		g.current = segment.New(g.store, tag, nil)
	}
	return g.current, nil
}

// highest returns the table's highest key, or 0 if it cannot be read: the table
// is temporary or locked, or the name is a pattern.
func (g *tableIDs) highest(ctx context.Context) (highest int64) {
	if strings.Contains(g.table, "*") {
		return 0
	}
	c, err := g.db.Conn(ctx)
	if err != nil {
		return 0
	}
	defer c.Close()
	var column string
	const key = "SELECT column_name FROM information_schema.columns WHERE table_schema = DATABASE() AND table_name = ? AND column_key = 'PRI'"
	if err := c.QueryRowContext(ctx, key, g.table).Scan(&column); err != nil {
		return 0
	}
	if _, err := c.ExecContext(ctx, "SET SESSION lock_wait_timeout = 1"); err != nil {
		return 0
	}
	if err := c.QueryRowContext(ctx, "SELECT COALESCE(MAX(`"+column+"`), 0) FROM `"+g.table+"`").Scan(&highest); err != nil {
		return 0
	}
	return highest
}
