package survey

import (
	"context"
	"fmt"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/idgen/segment"
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

// AddRow adds a tag's row with its mark, or raises one that came meanwhile. A server that may lack rows may lack this one, so
// that it begins a margin higher there.
func (s *Survey) AddRow(tag *Tag, maxID int64) Change {
	if s.Lossy {
		maxID += segment.Margin(tag.Room() - maxID + 1)
	}
	columns, mark := "", ""
	if s.NewMark != "" {
		columns, mark = ", description", ", "+quote.String(s.NewMark)
	}
	store := s.Set.Store
	return Change{store.Server, fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step%s) VALUES (%s, %d, %d%s) ON DUPLICATE KEY UPDATE max_id = GREATEST(max_id, %[4]d)",
		store.Name(), columns, quote.String(tag.Name), maxID, Step, mark)}
}

// MarkRows writes the first mark of rows that have none, so that a fail-over that loses their next fetch is noticed. A server that
// may lack rows may lack their marks as well: processes decide there.
func (s *Survey) MarkRows() (changes []Change) {
	if s.NewMark != "" && !s.Lossy && len(s.Marks.Unmarked) > 0 {
		store := s.Set.Store
		changes = append(changes, Change{store.Server, fmt.Sprintf("UPDATE %s SET description = CONCAT_WS(' ', NULLIF(description, ''), %s)"+
			" WHERE description IS NULL OR CHAR_LENGTH(description) <= 200 AND description NOT LIKE '%%leafsql@%%' AND description NOT LIKE 'leafsql: store %%'", store.Name(), quote.String(s.NewMark))})
	}
	return changes
}

// RaiseRow raises a tag's row, and never lowers it.
func (s *Survey) RaiseRow(tag string, maxID int64) Change {
	store := s.Set.Store
	return Change{store.Server, fmt.Sprintf("UPDATE %s SET max_id = GREATEST(max_id, %d) WHERE biz_tag = %s", store.Name(), maxID, quote.String(tag))}
}
