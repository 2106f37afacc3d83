// Package survey reads the state of all databases that use one leaf_alloc: the configured tables, their highest
// keys, leaf_alloc and its rows.
//
//	s, err := survey.Take(ctx, set, "", nil)
//	for _, tag := range s.Tags {
//		highest, table := tag.Highest()
//	}
//
// It changes nothing and draws no conclusions: this is done by the packages check and migrate and by the command init.
// It never reads a whole table, except in [Table.ReadMax]. Errors are for people: the command prints them.
package survey

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"

	"github.com/samber/lo"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/idgen/segment"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/inspect"
)

// A Survey is the state of the databases when it was taken.
type Survey struct {
	Set    *databases.Set
	Shards []*Shard
	Alloc  Alloc   // definition of leaf_alloc
	Rows   []Row   // sorted by tag
	Tags   []*Tag  // tags from which configured tables take ids, sorted by name
	Leases *Leases // nil: worker ids come from another source
	Marks  control.Marks

	NewMark     string // the mark of rows that are added; "": no mark
	MayLackRows bool   // the server may lack rows
	MarkErr     error  // the reason why the user cannot write marks: a right or the column is missing
}

// Leases describes the table of worker ids, leaf_worker.
type Leases struct {
	Table  *databases.Store
	Exists bool
	Denied bool // the server denies reading the table; some servers also do this for a missing table
	Layout
	Persistence
}

// CanReadAlloc reports whether leaf_alloc exists and the user may read it.
func (s *Survey) CanReadAlloc() bool { return s.Alloc.Exists && !s.Alloc.Denied }

// A Shard is a database with its configured tables.
type Shard struct {
	*databases.Shard
	Inspection  *inspect.Inspection
	Tables      []*Table
	foreignKeys []foreignKey // nil: not read yet
}

// A Tag is a biz_tag and its tables on all shards.
type Tag struct {
	Name   string
	Row    *Row              // nil: the tag has no row
	Broken *segment.RowError // the reason why no ids can be fetched from its row, if the row's description shows it
	Tables []*Table
}

// Highest returns the highest key that a table of the tag has, or has had from AUTO_INCREMENT, and this table. Without
// keys it returns 0 and nil. It skips tables with an unknown highest key.
func (t *Tag) Highest() (int64, *Table) {
	highest, table := int64(0), (*Table)(nil)
	for _, o := range t.Tables {
		if k := max(o.HighestKey, o.HighestGiven); o.IsKeyKnown && k > highest {
			highest, table = k, o
		}
	}
	return highest, table
}

// MaxID returns the highest id that fits into every key column of the tag.
func (t *Tag) MaxID() int64 {
	room := int64(1<<63 - 1)
	for _, o := range t.Tables {
		if o.Err == nil {
			room = min(room, o.Highest)
		}
	}
	return room
}

// UnknownTables returns the tables of the tag with an unknown highest key.
func (t *Tag) UnknownTables() []*Table {
	return lo.Filter(t.Tables, func(o *Table, _ int) bool { return !o.IsKeyKnown && o.Err == nil })
}

// HasAutoIncrement reports whether the server still generates keys for a table of the tag.
func (t *Tag) HasAutoIncrement() bool {
	return slices.ContainsFunc(t.Tables, func(o *Table) bool { return o.AutoIncrement })
}

// CanMigrate reports whether all servers of the tag's tables have the triggers that leafsql migrate needs.
func (t *Tag) CanMigrate() bool {
	return !slices.ContainsFunc(t.Tables, func(o *Table) bool { return o.Shard.NoTriggers != "" })
}

// Take surveys the tables of one tag, or of all tags if tag is "". If progress is not nil, it is called for
// every table, by several goroutines. It fails if a server cannot be queried.
func Take(ctx context.Context, set *databases.Set, tag string, progress func()) (*Survey, error) {
	if progress == nil {
		progress = func() {}
	}
	s := &Survey{Set: set}
	var err error
	if s.Alloc, err = readAlloc(ctx, set.Store); err != nil {
		return nil, err
	}
	if slices.ContainsFunc(set.Shards, (*databases.Shard).UsesLeaseTable) {
		s.Leases = &Leases{Table: set.Store.LeaseTable()}
		if s.Leases.Exists, s.Leases.Denied, err = readAccess(ctx, s.Leases.Table); err == nil && s.Leases.Exists && !s.Leases.Denied {
			if s.Leases.Persistence, err = readPersistence(ctx, s.Leases.Table); err == nil {
				s.Leases.Layout, err = readLayout(ctx, s.Leases.Table, "worker_id")
			}
		}
		if err != nil {
			return nil, err
		}
	}
	if err := s.readRows(ctx); err != nil {
		return nil, err
	}
	s.Shards = make([]*Shard, len(set.Shards))
	errs := make([]error, len(set.Shards))
	var looking sync.WaitGroup
	for i, shard := range set.Shards {
		looking.Go(func() { s.Shards[i], errs[i] = s.readShard(ctx, shard, tag, progress) })
	}
	looking.Wait()
	for _, err := range errs {
		if err != nil {
			return nil, err
		}
	}
	// Read the rows again after the keys: keys that were written in the meantime come from ranges below the
	// rows' new values.
	if err := s.readRows(ctx); err != nil {
		return nil, err
	}
	return s, s.groupTags(ctx)
}

// readShard reads a shard's tables, or only the tables of one tag, and their highest keys.
func (s *Survey) readShard(ctx context.Context, db *databases.Shard, tag string, progress func()) (*Shard, error) {
	var err error
	shard := &Shard{Shard: db}
	tags := lo.Map(s.Rows, func(r Row, _ int) string { return r.Tag })
	tables := db.Config.Clone()
	tables.Store = "" // the store does not determine which tables get ids
	if shard.Inspection, err = inspect.Server(ctx, tables.FormatDSN(), tags); err != nil {
		return nil, err
	}
	for _, info := range shard.Inspection.Tables {
		if tag != "" && info.Tag != tag {
			continue
		}
		t := &Table{Shard: shard, Table: info}
		if err := t.readHighest(ctx); err != nil {
			return nil, err
		}
		if err := t.readProperties(ctx); err != nil {
			return nil, err
		}
		t.readGuard(ctx)
		shard.Tables = append(shard.Tables, t)
		progress()
	}
	return shard, nil
}

// groupTags groups the tables by tag, and adds the tags' rows.
func (s *Survey) groupTags(ctx context.Context) error {
	tags := make(map[string]*Tag)
	for _, shard := range s.Shards {
		for _, t := range shard.Tables {
			if t.Tag == "" {
				continue
			}
			if tags[t.Tag] == nil {
				tags[t.Tag] = &Tag{Name: t.Tag}
			}
			tags[t.Tag].Tables = append(tags[t.Tag].Tables, t)
		}
	}
	if err := s.readMarks(ctx); err != nil {
		return err
	}
	s.Tags = lo.Values(tags)
	slices.SortFunc(s.Tags, func(a, b *Tag) int { return cmp.Compare(a.Name, b.Name) })
	for _, tag := range s.Tags {
		var err error
		if tag.Row, err = s.readRow(ctx, tag.Name); err != nil {
			return err
		}
		for _, err := range s.Marks.Broken {
			if broken, ok := errors.AsType[*segment.RowError](err); ok && tag.Row != nil && tag.Row.Tag == broken.Tag {
				tag.Broken = broken
			}
		}
	}
	return nil
}

// readMarks reads the marks of leaf_alloc's rows, and the mark for new rows.
func (s *Survey) readMarks(ctx context.Context) (err error) {
	store := s.Set.Store
	if s.Alloc.Denied {
		return nil
	}
	if s.NewMark, s.MayLackRows, err = AllocRows(store).NewMark(ctx); err != nil {
		return readError(store, err)
	}
	if !s.Alloc.Exists {
		return nil
	}
	rows, err := store.DB.QueryContext(ctx, "EXPLAIN UPDATE "+store.QuotedName()+" SET description = description WHERE biz_tag = '' AND LOCATE('leafsql@', description) > 0")
	if err == nil {
		rows.Close()
	}
	if s.MarkErr = err; err != nil || !s.Alloc.Columns["description"].HoldsMarks() {
		s.NewMark = ""
	}
	s.Marks, err = ReadMarks(ctx, store)
	return err
}
