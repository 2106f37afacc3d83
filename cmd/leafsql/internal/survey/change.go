package survey

import (
	"context"
	"fmt"
	"log/slog"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/idgen/segment/interleaved"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// A Change is of leaf_alloc, or of the table of worker ids: one SQL statement on one
// server, or what several stores do together.
type Change struct {
	On   *databases.Server
	SQL  string // "": Run does more than one statement says
	Text string // the SQL, or a comment that says what Run does
	Run  func(context.Context) error
}

// String is the text as it is shown, and as a client takes it.
func (c Change) String() string {
	if c.SQL == "" {
		return c.Text
	}
	return c.SQL + ";"
}

func statement(on *databases.Server, text string) Change {
	return Change{on, text, text, func(ctx context.Context) error {
		_, err := on.DB.ExecContext(ctx, text)
		return err
	}}
}

// CreateAllocs creates leaf_alloc where a store lacks it.
func (s *Survey) CreateAllocs() (changes []Change) {
	for i, store := range s.Set.Stores {
		if !s.Allocs[i].Exists {
			changes = append(changes, statement(store.Server, schema.LeafAlloc(quote.Table(store.Plain()))))
		}
	}
	return changes
}

// Create creates the table of worker ids.
func (l *Leases) Create() Change {
	return statement(l.Table.Server, schema.LeafWorker(quote.Table(l.Table.Plain())))
}

// AddRow adds a tag's row, or raises one that came meanwhile.
func (s *Survey) AddRow(tag string, maxID int64) Change {
	if s.Set.Several() {
		return s.together(tag, "add the row", maxID, func(ctx context.Context, stores *interleaved.Store) error {
			return stores.Ensure(ctx, tag, maxID, Step)
		})
	}
	store := s.Set.Store
	return statement(store.Server, fmt.Sprintf("INSERT INTO %s (biz_tag, max_id, step) VALUES (%s, %d, %d) ON DUPLICATE KEY UPDATE max_id = GREATEST(max_id, %[3]d)",
		store.Name(), quote.String(tag), maxID, Step))
}

// RaiseRow raises a tag's row, and never lowers it.
func (s *Survey) RaiseRow(tag string, maxID int64) Change {
	if s.Set.Several() {
		return s.together(tag, "raise the row", maxID, nil)
	}
	store := s.Set.Store
	return statement(store.Server, fmt.Sprintf("UPDATE %s SET max_id = GREATEST(max_id, %d) WHERE biz_tag = %s", store.Name(), maxID, quote.String(tag)))
}

// together changes a tag's rows in several stores, and sees that they are high enough then.
func (s *Survey) together(tag, what string, maxID int64, change func(context.Context, *interleaved.Store) error) Change {
	text := fmt.Sprintf("-- in all %d stores: %s of %s; its ids begin at %d or above", len(s.Set.Stores), what, quote.String(tag), maxID)
	return Change{On: s.Set.Store.Server, Text: text, Run: func(ctx context.Context) error {
		if err := s.Set.AllStores(); err != nil {
			return err
		}
		stores := s.Set.Interleaved()
		defer stores.Close()
		if change != nil {
			if err := change(ctx, stores); err != nil {
				return err
			}
		}
		if row, err := stores.RowAt(ctx, tag, maxID-1); err != nil || row.MaxID >= maxID {
			return err
		}
		ids := segment.New(stores, tag, &segment.Options{Logger: slog.New(slog.DiscardHandler)})
		defer ids.Close()
		return ids.Skip(ctx, maxID-1)
	}}
}
