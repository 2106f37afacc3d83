package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/check"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/internal/control"
	"github.com/leafsql/leafsql/internal/servererr"
)

func runTags(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "tags").withShards().withJSON()
	watch := f.Bool("watch", false, "look again and again, until interrupted")
	every := f.Duration("every", 2*time.Second, "how long to wait between two looks")
	if err := f.parse(args, false); err != nil {
		return exitFailure, err
	}
	if *every <= 0 {
		return exitFailure, fmt.Errorf("leafsql: -every %v is too short; set 1s or more", *every)
	}
	set, err := databases.Open(ctx, f.dsn, f.shards)
	if err != nil {
		return exitFailure, err
	}
	defer set.Close()
	var first []survey.Row // the rows of the first reading
	for began := time.Now(); ; {
		now := time.Now()
		rows, err := readTags(ctx, set.Store)
		var marks control.Marks
		if err == nil {
			marks, err = survey.ReadMarks(ctx, set.Store)
		}
		switch {
		case ctx.Err() != nil && *watch:
			return exitOK, nil // -watch is normally ended by an interrupt
		case err != nil:
			return exitFailure, err
		}
		rates := averageRates(first, rows, now.Sub(began))
		if first == nil {
			first, began = rows, now
		}
		all := check.NewTags(rows, rates)
		if f.json {
			err = s.JSON(all)
		} else {
			printTags(s, all, *watch)
		}
		status := exitOK
		for _, row := range marks.Broken {
			status = exitProblems
			s.PrintErr(row)
		}
		if err != nil || !*watch {
			return status, err
		}
		select {
		case <-ctx.Done():
		case <-time.After(*every):
		}
	}
}

// averageRates returns the rates of the tags in first, since that reading: 0 if no ids were fetched.
func averageRates(first, rows []survey.Row, since time.Duration) map[string]check.Rate {
	rates := check.CompareRows(first, rows, since)
	for _, row := range first {
		if _, ok := rates[row.Tag]; !ok {
			rates[row.Tag] = check.Rate{}
		}
	}
	return rates
}

// readTags reads leaf_alloc's rows. Older tables of Java Leaf do not record the time of changes.
func readTags(ctx context.Context, store *databases.Store) ([]survey.Row, error) {
	rows, err := survey.ReadRows(ctx, store, "update_time")
	if servererr.Is(err, servererr.UnknownColumn) {
		rows, err = survey.ReadRows(ctx, store, "NULL")
	}
	return rows, err
}

func printTags(s *screen.Screen, tags []check.Tag, watch bool) {
	names := []string{"TAG", "NEXT ID", "STEP", "LAST FETCH"}
	if watch {
		names = append(names, "IDS/S")
		s.Clear()
	}
	var rows [][]string
	for _, tag := range tags {
		row := []string{tag.Tag, screen.FormatCount(tag.MaxID), screen.FormatCount(tag.Step), screen.Unknown}
		if tag.Updated != nil {
			row[3] = tag.Updated.Format(time.RFC3339)
		}
		switch {
		case watch && tag.Rate != nil:
			row = append(row, screen.FormatCount(int64(math.Round(*tag.Rate))))
		case watch:
			row = append(row, screen.Unknown)
		}
		rows = append(rows, row)
	}
	s.Table(names, rows, "NEXT ID", "STEP", "IDS/S")
}
