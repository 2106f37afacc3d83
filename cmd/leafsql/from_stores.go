package main

import (
	"cmp"
	"context"
	"database/sql"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/errprefix"
	"github.com/leafsql/leafsql/internal/quote"
	"github.com/leafsql/leafsql/internal/schema"
)

// Before version 0.2 several stores (tables leaf_alloc) shared the ids of a tag. The ids were divided into epochs, and
// in each epoch every store owned one block of ids. At least two stores entered each epoch, so the latest epoch can be
// read even if one of a tag's rows is missing. A row's description contained the block's size and the step, and every
// statement compared the description.
const (
	oldDescription  = "leafsql: store %d of %d, blocks of %d, step %d,"
	oldRowCondition = "description LIKE 'leafsql: store %'"
	retiredSuffix   = ", given up"
)

// oldTagState is the combined state of the rows of one tag in several stores.
type oldTagState struct{ rows, stores, next, step int64 }

// convertStores converts the rows of several stores to ordinary rows in the store of -dsn, and returns the
// executed statements. It changes the descriptions of the old rows so that processes of both versions refuse
// them. After an error it can be run again.
func convertStores(ctx context.Context, f *flags, dsns string, dry bool) (executed []survey.Change, err error) {
	set, err := databases.Open(ctx, f.dsn, f.shards)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	run := func(on *databases.Server, text string) error {
		change := survey.Change{Server: on, SQL: text}
		if !dry {
			if err := change.Run(ctx); err != nil {
				return fmt.Errorf("leafsql: init on %s: %w; %s; run init again", on.Label, errprefix.Trim(err), databases.Hint(err))
			}
		}
		executed = append(executed, change)
		return nil
	}
	tags := make(map[string]*oldTagState)
	var stores []*databases.Store
	for dsn := range strings.SplitSeq(dsns, "|") {
		store, err := databases.OpenStore(ctx, dsn, set.Shards[0].Config.AllocTable)
		if err != nil {
			return executed, err
		}
		defer store.DB.Close()
		stores = append(stores, store)
		if err := run(store.Server, "UPDATE "+store.QuotedName()+" SET description = CONCAT(description, '"+retiredSuffix+"') WHERE "+oldRowCondition+" AND description NOT LIKE '%"+retiredSuffix+"'"); err != nil {
			return executed, err
		}
	}
	for _, store := range stores { // only after all stores have stopped issuing ids
		if err := readOldRows(ctx, store, tags); err != nil {
			return executed, err
		}
	}
	if len(tags) == 0 {
		return executed, fmt.Errorf("leafsql: init: the databases of -from-stores have no row of several stores; name those of the old leafStore")
	}
	target := set.Store
	if err := run(target.Server, schema.LeafAlloc(target.QuotedName())); err != nil {
		return executed, err
	}
	mark, _, err := survey.AllocRows(target).NewMark(ctx)
	if err != nil {
		return executed, err
	}
	var rows []string
	for _, tag := range slices.Sorted(maps.Keys(tags)) {
		t := tags[tag]
		if t.rows < t.stores-1 {
			return executed, fmt.Errorf("leafsql: init: tag %s has rows in %d of its %d stores, which do not show which of its ids are in use; name the other stores in -from-stores as well", tag, t.rows, t.stores)
		}
		rows = append(rows, fmt.Sprintf("(%s, %d, %d, %s)", quote.String(tag), t.next, cmp.Or(t.step, survey.DefaultStep), quote.String(mark)))
	}
	// One statement changes all tags or none. It overwrites the old rows of this store, so a second run could not
	// read from these rows which ids are in use.
	return executed, run(target.Server, "INSERT INTO "+target.QuotedName()+" (biz_tag, max_id, step, description) VALUES "+strings.Join(rows, ", ")+" ON DUPLICATE KEY UPDATE "+
		"max_id = GREATEST(max_id, VALUES(max_id)), step = IF(step = 0, VALUES(step), step), description = IF("+oldRowCondition+", VALUES(description), description)")
}

// readOldRows adds the rows of one store to the combined state.
func readOldRows(ctx context.Context, store *databases.Store, tags map[string]*oldTagState) error {
	err := store.Each(ctx, func(scan func(...any) error) error {
		var tag, description string
		var maxID sql.NullInt64
		if err := scan(&tag, &description, &maxID); err != nil {
			return err
		}
		var number, stores, block, step int64
		if n, _ := fmt.Sscanf(description, oldDescription, &number, &stores, &block, &step); n != 4 || stores < 2 || block < 1 || !maxID.Valid || maxID.Int64 < 0 {
			return fmt.Errorf("the row of tag %s cannot be read: max_id is %d, description %q", tag, maxID.Int64, description)
		}
		t := tags[tag]
		if t == nil {
			t = new(oldTagState)
			tags[tag] = t
		}
		epoch := stores * block
		t.rows, t.stores, t.step = t.rows+1, stores, step
		if next := maxID.Int64/epoch + 1; next <= math.MaxInt64/epoch {
			t.next = max(t.next, next*epoch)
		} else {
			t.next = math.MaxInt64 // all ids are used
		}
		return nil
	}, "SELECT biz_tag, description, max_id FROM "+store.QuotedName()+" WHERE "+oldRowCondition)
	if err != nil {
		return fmt.Errorf("leafsql: init: read %s on %s: %w; %s", store.QuotedName(), store.Label, errprefix.Trim(err), databases.Hint(err))
	}
	return nil
}
