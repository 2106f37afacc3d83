package insert

import (
	"context"

	"github.com/leafsql/leafsql/internal/quote"
)

// Keys give the rows of a table their ids, and keep the ids above the keys that rows bring.
type Keys interface {
	// Draw sets the first id of a block of N.
	Draw(ctx context.Context, s Session, b *Block) error

	// Skip moves the counter above a key that a row brings. late is the block of a statement
	// that draws no ids, or nil: a key that would take more than half of the room left in the
	// column is only noted in late.Late, for SkipAfter, as is the key that late.Late has already.
	Skip(ctx context.Context, s Session, key int64, late *Block) error

	// SkipAfter moves the counter above a key, unless 0, whose statement was sent first and ended
	// with err.
	SkipAfter(ctx context.Context, key int64, err error)

	// AfterDuplicate moves the counter above all keys if an id of the block was in use.
	AfterDuplicate(ctx context.Context, b *Block)
}

// A Session evaluates expressions on the application's connection.
type Session interface {
	Value(ctx context.Context, expression string) (string, error)
}

// A TableName is a table's name without quotes. DB is "" if a text names no database.
type TableName struct{ DB, Table string }

func (n TableName) String() string { return n.DB + "." + n.Table }

// Quoted returns the name as SQL writes it.
func (n TableName) Quoted() string { return quote.In(n.DB, n.Table) }
