package survey

import (
	"context"
	"fmt"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// A Change is one SQL statement that changes leaf_alloc or the table of worker ids.
type Change struct {
	On  *databases.Server
	SQL string
}

// Run runs the statement.
func (c Change) Run(ctx context.Context) error {
	_, err := c.On.DB.ExecContext(ctx, c.SQL)
	return err
}

// CreateAlloc returns the statement that creates leaf_alloc, or nothing if it exists.
func (s *Survey) CreateAlloc() (changes []Change) {
	if !s.Alloc.Exists {
		changes = append(changes, Change{s.Set.Store.Server, schema.LeafAlloc(quote.Table(s.Set.Store.Plain()))})
	}
	return changes
}

// Create creates the table of worker ids.
func (l *Leases) Create() Change {
	return Change{l.Table.Server, schema.LeafWorker(quote.Table(l.Table.Plain()))}
}

// AddRow adds a tag's row, or raises one that came meanwhile.
func (s *Survey) AddRow(tag string, maxID int64) Change {
	store := s.Set.Store
	return Change{store.Server, fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step) VALUES (%s, %d, %d) ON DUPLICATE KEY UPDATE max_id = GREATEST(max_id, %[3]d)",
		store.Name(), quote.String(tag), maxID, Step)}
}

// RaiseRow raises a tag's row, and never lowers it.
func (s *Survey) RaiseRow(tag string, maxID int64) Change {
	store := s.Set.Store
	return Change{store.Server, fmt.Sprintf("UPDATE %s SET max_id = GREATEST(max_id, %d) WHERE biz_tag = %s", store.Name(), maxID, quote.String(tag))}
}
