package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/servererr"
)

func runTags(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "tags").onDatabases().withJSON()
	watch := f.Bool("watch", false, "look again and again, until interrupted")
	every := f.Duration("every", 2*time.Second, "how long to wait between two looks")
	if err := f.parse(args, false); err != nil {
		return unclear, err
	}
	if *every <= 0 {
		return unclear, fmt.Errorf("leafsql: -every %v is no pause; take 1s or more", *every)
	}
	set, err := databases.Open(ctx, f.dsn, f.shards)
	if err != nil {
		return unclear, err
	}
	defer set.Close()
	before := make([][]survey.Row, len(set.Stores))
	for at := time.Now(); ; {
		now := time.Now()
		all := []storeTag{}
		status, failed, broken := fine, error(nil), error(nil)
		for i, store := range set.Stores {
			rows, err := readTags(ctx, store)
			switch {
			case ctx.Err() != nil && *watch:
				return fine, nil // interrupted, as is usual
			case err != nil && !set.Several():
				return unclear, err
			case err != nil:
				failed = errors.Join(failed, err)
				continue
			}
			for _, tag := range check.TagsOf(rows, check.Rates(before[i], rows, now.Sub(at))) {
				of := storeTag{Tag: tag}
				if set.Several() {
					of.Store = store.Label
				}
				all = append(all, of)
			}
			before[i] = rows
			odd, err := set.RowErrors(ctx, i)
			failed = errors.Join(failed, err)
			for _, err := range odd {
				broken = errors.Join(broken, err)
			}
		}
		var err error
		if f.json {
			err = s.JSON(all)
		} else {
			printTags(s, all, *watch, set.Several())
		}
		if broken != nil {
			status = mend
			fmt.Fprintln(s.Err, broken)
		}
		if failed != nil {
			status = unclear
			fmt.Fprintln(s.Err, failed)
		}
		if err != nil || !*watch {
			return status, err
		}
		at = now
		select {
		case <-ctx.Done():
		case <-time.After(*every):
		}
	}
}

// A storeTag is a row of one store.
type storeTag struct {
	Store string `json:"store,omitempty"` // where there are several
	check.Tag
}

// readTags reads leaf_alloc; Java Leaf's older tables do not note when a row changed.
func readTags(ctx context.Context, store *databases.Store) ([]survey.Row, error) {
	if store.Away != nil { // it may be back
		ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
		defer cancel()
		if err := store.DB.PingContext(ctx); err != nil {
			return nil, store.Away
		}
	}
	rows, err := survey.ReadRows(ctx, store, "update_time")
	if servererr.Is(err, servererr.UnknownColumn) {
		rows, err = survey.ReadRows(ctx, store, "NULL")
	}
	return rows, err
}

func printTags(s *screen.Screen, tags []storeTag, watch, several bool) {
	names := []string{"TAG", "NEXT ID", "STEP", "LAST FETCH"}
	if several {
		names = append([]string{"STORE"}, names...)
	}
	if watch {
		names = append(names, "IDS/S")
		s.Clear()
	}
	var rows [][]string
	for _, tag := range tags {
		row := []string{tag.Tag.Tag, screen.Count(tag.MaxID), screen.Count(tag.Step), screen.Unknown}
		if tag.Updated != nil {
			row[3] = tag.Updated.Format(time.RFC3339)
		}
		if several { // whose steps are in their descriptions
			row = append([]string{tag.Store}, row...)
			row[3] = screen.Unknown
		}
		switch {
		case watch && tag.Rate != nil:
			row = append(row, fmt.Sprintf("%.0f", *tag.Rate))
		case watch:
			row = append(row, screen.Unknown)
		}
		rows = append(rows, row)
	}
	s.Table(names, rows)
}
