package survey

import (
	"context"
	"fmt"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// A Change is an SQL statement that changes leaf_alloc or the table of worker ids.
type Change struct {
	Server *databases.Server
	SQL    string
}

// Run executes the statement.
func (c Change) Run(ctx context.Context) error {
	_, err := c.Server.DB.ExecContext(ctx, c.SQL)
	return err
}

// CreateAlloc returns the statement that creates leaf_alloc, or nil if it exists.
func (s *Survey) CreateAlloc() (changes []Change) {
	if !s.Alloc.Exists {
		changes = append(changes, Change{s.Set.Store.Server, schema.LeafAlloc(quote.Table(s.Set.Store.PlainName()))})
	}
	return changes
}

// Create returns the statement that creates the table of worker ids.
func (l *Leases) Create() Change {
	return Change{l.Table.Server, schema.LeafWorker(quote.Table(l.Table.PlainName()))}
}

// AddRow returns the statement that adds a tag's row with its mark. If another process has added the row, the statement
// raises its max_id. A server that may lack rows may have lost this tag's row; then the new row's max_id is higher by a
// margin.
func (s *Survey) AddRow(tag *Tag, maxID int64) Change {
	if s.MayLackRows {
		maxID += control.Margin(tag.MaxID() - maxID + 1)
	}
	columns, mark := "", ""
	if s.NewMark != "" {
		columns, mark = ", description", ", "+quote.String(s.NewMark)
	}
	store := s.Set.Store
	return Change{store.Server, fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step%s) VALUES (%s, %d, %d%s) ON DUPLICATE KEY UPDATE max_id = GREATEST(max_id, %[4]d)",
		store.QuotedName(), columns, quote.String(tag.Name), maxID, DefaultStep, mark)}
}

// MarkRows returns the statement that writes the first mark of rows without a mark, so that a fail-over that
// loses their next fetch is detected. A server that may lack rows may also lack their marks. For such a server MarkRows
// returns nil, and processes write the marks with their next fetches.
func (s *Survey) MarkRows() (changes []Change) {
	if s.NewMark != "" && !s.MayLackRows && len(s.Marks.Unmarked) > 0 {
		store := s.Set.Store
		changes = append(changes, Change{store.Server, fmt.Sprintf("UPDATE %s SET description = CONCAT_WS(' ', NULLIF(description, ''), %s)"+
			" WHERE description IS NULL OR CHAR_LENGTH(description) <= 200 AND description NOT LIKE '%%leafsql@%%' AND description NOT LIKE 'leafsql: store %%'", store.QuotedName(), quote.String(s.NewMark))})
	}
	return changes
}

// RaiseRow returns the statement that raises max_id in a tag's row, and never lowers it.
func (s *Survey) RaiseRow(tag string, maxID int64) Change {
	store := s.Set.Store
	return Change{store.Server, fmt.Sprintf("UPDATE %s SET max_id = GREATEST(max_id, %d) WHERE biz_tag = %s", store.QuotedName(), maxID, quote.String(tag))}
}
