package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/idgen/segment"
)

func runInit(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "init").onDatabases()
	dry := f.Bool("dry-run", false, "write the SQL and run none of it")
	scan := f.Bool("scan", false, "read whole tables where no index tells the highest key")
	if err := f.parse(args, false); err != nil {
		return unclear, err
	}
	found, err := f.survey(ctx)
	if err != nil {
		return unclear, err
	}
	defer found.Set.Close()
	if *scan {
		if err := scanKeys(ctx, s, found); err != nil {
			return unclear, err
		}
	}
	steps, err := prepare(found)
	if len(steps) == 0 && err == nil {
		s.Printf("leaf_alloc has a row above all keys for each of %d tags; nothing to do.\n", len(found.Tags))
		return fine, nil
	}
	for _, step := range steps {
		s.Printf("%s;\n", step)
		if *dry {
			continue
		}
		if _, err := found.Set.Store.DB.ExecContext(ctx, step); err != nil {
			return unclear, fmt.Errorf("leafsql: init on %s: %w; nothing after this statement was run, and init can be run again", found.Set.Store.Label, err)
		}
	}
	switch {
	case err != nil:
		return unclear, err
	case *dry:
		return mend, nil
	}
	s.Printf("Done. Processes that were running may hold ranges from before; restart them if a row was raised.\n")
	for _, tag := range found.Tags {
		if tag.AutoIncrement() {
			s.Printf("%s still has AUTO_INCREMENT: writers with and without mysql-leaf must not write it at the same time; leafsql migrate goes there.\n", screen.Plain(tag.Name))
		}
	}
	return fine, nil
}

// prepare is the SQL after which every tag has a row above all keys. With an error,
// which names tables for which that cannot be said, it is for the others.
func prepare(found *survey.Survey) (steps []string, err error) {
	store := found.Set.Store
	if first := found.Shards[0].Config; first.Auto && len(found.Rows) == 0 {
		return nil, errors.New("leafsql: leafTables=auto means the tables that have a row in leaf_alloc, and there is none; name the tables, for example leafTables=orders,users, here alone")
	}
	if found.Alloc.Denied {
		return nil, fmt.Errorf("leafsql: this user may not read %s; leafsql check says which rights it lacks", store.Name())
	}
	var errs []error
	for _, shard := range found.Shards {
		for _, rule := range shard.Inspection.Missing {
			if !shard.Config.Auto {
				errs = append(errs, fmt.Errorf("leafsql: leafTables names %s, which is not on %s; create the table, or correct the rule", rule, shard.Label))
			}
		}
	}
	for _, tag := range found.Tags {
		if tag.Row != nil && !tag.TooLow() && len(tag.Unknown()) == 0 {
			continue
		}
		start, err := tag.Start(survey.Margin)
		switch {
		case err != nil:
			errs = append(errs, err)
		case tag.Row == nil:
			steps = append(steps, survey.AddRow(store, tag.Name, start, survey.Step))
		default:
			steps = append(steps, survey.RaiseRow(store, tag.Row.Tag, start))
		}
	}
	if !found.Alloc.Exists && len(steps) > 0 {
		steps = slices.Insert(steps, 0, segment.CreateTable(store.Database+"."+store.Table))
	}
	return steps, errors.Join(errs...)
}

// scanKeys reads the highest keys that no index tells.
func scanKeys(ctx context.Context, s *screen.Screen, found *survey.Survey) error {
	for _, tag := range found.Tags {
		for _, t := range tag.Unknown() {
			if !t.Integer || t.DeniedRead || t.Kind != driver.Segment {
				continue
			}
			done := s.Progress(func() string { return "reading all of " + t.Where() })
			highest, err := t.Max(ctx, t.TableInfo.Highest)
			done()
			if err != nil {
				return fmt.Errorf("leafsql: the highest key of %s: %s", t.Where(), strings.TrimPrefix(err.Error(), "leafsql: "))
			}
			t.HighestKey, t.Known, t.Why = highest, true, ""
		}
	}
	return nil
}
