package survey

import (
	"context"
	"database/sql"
	"fmt"
	"strconv"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/inspect"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/servererr"
)

// A Table is a configured table of a shard.
type Table struct {
	inspect.Table
	Shard *Shard

	IsKeyKnown    bool  // HighestKey is valid
	HighestKey    int64 // highest key below CounterLimit; 0: no key is above 0
	Top           int64 // HighestKey, or CounterLimit if a row has CounterLimit as its key
	HighestGiven  int64 // highest value that AUTO_INCREMENT generated, also for deleted rows; 0: none, or unknown
	UnknownReason string
	DeniedRead    bool // the user may not read the key
	Properties

	HasGuard bool  // a trigger refuses rows without a key
	GuardErr error // the reason why the existence of such a trigger is unknown
}

// Name returns the table's name for people: db.table.
func (t *Table) Name() string { return t.Database + "." + t.Table.Table }

// QuotedName returns the table's name for SQL, quoted.
func (t *Table) QuotedName() string {
	return quote.Qualified(t.Database, t.Table.Table)
}

// ShardName returns the name that is equal for a table on all shards: without the database if that is the DSN's.
func (t *Table) ShardName() string {
	if t.Database == t.Shard.Database {
		return t.Table.Table
	}
	return t.Name()
}

// Location returns the server and the table, for people.
func (t *Table) Location() string {
	return t.Shard.Label + ": " + t.Name()
}

// readHighest reads the highest key if an index contains it. If the key is not an integer, or not indexed, the
// highest key is only known for an empty table.
func (t *Table) readHighest(ctx context.Context) error {
	if t.Kind != driver.Segment || t.Err != nil {
		return nil
	}
	switch {
	case !t.Integer:
		t.UnknownReason = "its key has the type " + t.Type + ", whose values are not compared as numbers"
	case !t.Indexed:
		t.UnknownReason = "no index begins with its key"
	}
	var err error
	if t.UnknownReason == "" {
		if t.Top, err = t.ReadMax(ctx, t.CounterLimit); t.Top < t.CounterLimit {
			t.HighestKey = t.Top
		} else {
			t.HighestKey, err = t.ReadMax(ctx, t.CounterLimit-1)
		}
	} else {
		err = t.Shard.DB.QueryRowContext(ctx, "SELECT 1 FROM "+t.QuotedName()+" LIMIT 1").Scan(new(int))
	}
	switch {
	case err == sql.ErrNoRows:
		t.IsKeyKnown, t.UnknownReason = true, ""
	case databases.IsDenied(err):
		t.UnknownReason, t.DeniedRead = "this user has no right to read it", true
	case servererr.Is(err, servererr.LockWait):
		t.UnknownReason = "it is locked"
	case err != nil:
		return fmt.Errorf("leafsql: the highest key of %s: %w; %s", t.Location(), err, databases.Hint(err))
	default:
		t.IsKeyKnown = t.UnknownReason == ""
	}
	if t.IsKeyKnown && t.AutoIncrement {
		return t.readGiven(ctx)
	}
	return nil
}

// readGiven reads the highest number that AUTO_INCREMENT generated. It ignores a next value of CounterLimit or
// above, since a single row with such a key can cause it.
func (t *Table) readGiven(ctx context.Context) error {
	var next sql.NullString
	err := t.Shard.DB.QueryRowContext(ctx, "SELECT auto_increment FROM information_schema.tables WHERE table_schema = ? AND table_name = ?", t.Database, t.Table.Table).Scan(&next)
	if err != nil {
		return fmt.Errorf("leafsql: the AUTO_INCREMENT of %s: %w; %s", t.Location(), err, databases.Hint(err))
	}
	if !next.Valid {
		t.IsKeyKnown, t.UnknownReason, t.DeniedRead = false, "its AUTO_INCREMENT cannot be read", true
	}
	if n, _ := strconv.ParseInt(next.String, 10, 64); n < t.CounterLimit {
		t.HighestGiven = max(n-1, 0)
	}
	return nil
}

// ReadMax returns the highest key that is at most limit, or 0 if there is none. It reads the whole table unless
// the key is indexed.
func (t *Table) ReadMax(ctx context.Context, limit int64) (int64, error) {
	var v sql.NullInt64
	key := quote.Name(t.Column)
	err := t.Shard.DB.QueryRowContext(ctx, "SELECT MAX("+key+") FROM "+t.QuotedName()+" WHERE "+key+" <= "+strconv.FormatInt(limit, 10)).Scan(&v)
	return max(v.Int64, 0), err
}

// ReadCreate returns the table's CREATE TABLE, from SHOW CREATE TABLE.
func (t *Table) ReadCreate(ctx context.Context) (string, error) {
	var name, create string
	err := t.Shard.DB.QueryRowContext(ctx, "SHOW CREATE TABLE "+t.QuotedName()).Scan(&name, &create)
	if err != nil {
		return "", fmt.Errorf("leafsql: SHOW CREATE TABLE of %s: %w; %s", t.Location(), err, databases.Hint(err))
	}
	return create, nil
}
