package driver

import (
	"context"
	"sync"

	"github.com/google/uuid"

	"github.com/leafsql/leafsql/driver/internal/insert"
)

// GeneratedIDs are the ids that one statement gave to its rows: First,
// First+1, … in row order, counting only rows that had none. Under INSERT
// IGNORE and ON DUPLICATE KEY UPDATE some of them may not have been stored.
type GeneratedIDs struct {
	Table string // db.table
	First int64
	N     int

	// UUIDs are the keys of a uuid7 rule, N of them; First is 0 then.
	UUIDs []uuid.UUID
}

type generatedKey struct{}

type generatedTo struct {
	mu  sync.Mutex
	ids *[]GeneratedIDs
}

// WithGeneratedIDs returns a context under which each statement that was run
// adds to ids what it generated. The slice may be read once those calls have
// returned.
func WithGeneratedIDs(ctx context.Context, ids *[]GeneratedIDs) context.Context {
	return context.WithValue(ctx, generatedKey{}, &generatedTo{ids: ids})
}

// collect adds what an executed text generated, if the context asks for it.
func collect(ctx context.Context, p *insert.Plan, blocks []insert.Block) {
	to, ok := ctx.Value(generatedKey{}).(*generatedTo)
	if !ok {
		return
	}
	to.mu.Lock()
	defer to.mu.Unlock()
	for i, b := range blocks {
		if b.N == 0 {
			continue
		}
		g := GeneratedIDs{Table: p.Inserts[i].Table.Ref.(*table).name.String(), First: b.First, N: b.N}
		if p.Inserts[i].Table.UUID != insert.NoUUID {
			for k := range b.N {
				g.UUIDs = append(g.UUIDs, b.UUIDAt(k))
			}
		}
		*to.ids = append(*to.ids, g)
	}
}
