package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/survey"
	"github.com/leafsql/leafsql/driver"
	"github.com/leafsql/leafsql/internal/errprefix"
)

func runInit(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "init").onDatabases().withJSON()
	dry := f.Bool("dry-run", false, "write the SQL, and what is to be done in the registry of worker ids, and do none of it")
	fresh := f.Bool("new-registry", false, "declare that the registry of worker ids is new and nobody who uses it is running; refused where it holds any worker id")
	from := f.String("from-stores", "", "the `DSNs` A|B|C of leafStore before version 0.2: make one store, that of -dsn, of them; all writers have to be stopped")
	scan := f.Bool("scan", false, "read whole tables where no index tells the highest key")
	if err := f.parse(args, false); err != nil {
		return unclear, err
	}
	ran := []change{}
	if *from != "" {
		steps, err := fromStores(ctx, f, *from, *dry)
		for _, step := range steps {
			ran = append(ran, change{step.On.Label, step.SQL})
			if !f.json {
				s.Printf("-- on %s\n%s;\n", step.On.Label, step.SQL)
			}
		}
		switch {
		case err != nil:
			return unclear, err
		case *dry && f.json:
			return mend, s.JSON(ran)
		case *dry:
			return mend, nil
		}
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
	for _, step := range steps {
		if !f.json {
			s.Printf("%s;\n", step.SQL)
		}
		if !*dry {
			if runErr := step.Run(ctx); runErr != nil {
				err = fmt.Errorf("leafsql: init on %s: %s; %s; nothing after this was run, and init can be run again",
					step.On.Label, errprefix.Trim(runErr), databases.WayOut(runErr))
				break
			}
		}
		ran = append(ran, change{step.On.Label, step.SQL})
	}
	if err == nil {
		var did string
		if did, err = prepareRegistry(ctx, s, found, *fresh, *dry); did != "" {
			ran = append(ran, change{found.Set.Store.Label, did})
			if !f.json {
				s.Printf("%s\n", did)
			}
		}
	}
	if f.json {
		if jsonErr := s.JSON(ran); jsonErr != nil {
			return unclear, jsonErr
		}
	}
	switch {
	case errors.Is(err, errInUse):
		fmt.Fprintln(s.Err, err)
		return mend, nil
	case err != nil:
		return unclear, err
	case *dry && len(ran) > 0:
		return mend, nil
	case !f.json && len(ran) == 0:
		s.Printf("leaf_alloc has a row above all keys for each of %d tags; nothing to do.\n", len(found.Tags))
		return fine, nil
	case f.json || len(steps) == 0:
		return fine, nil
	}
	s.Printf("Done. Processes that were running may hold ranges from before; restart them if a row was raised.\n")
	for _, tag := range found.Tags {
		if tag.AutoIncrement() {
			s.Printf("%s still has AUTO_INCREMENT: writers with and without mysql-leaf must not write it at the same time; leafsql migrate goes there.\n", screen.Plain(tag.Name))
		}
	}
	return fine, nil
}

// A change is a change that init makes, or would make without -dry-run.
type change struct {
	Server string `json:"server"`
	SQL    string `json:"sql"` // a comment if it changes a registry of worker ids
}

// prepare returns the changes after which each tag has a row above all keys, each row has a mark, and worker
// ids have their table. An error names the tables for which this is not possible; the changes are then for the
// others.
func prepare(found *survey.Survey) (steps []survey.Change, err error) {
	config := found.Shards[0].Config
	noTables := config.Auto() && len(found.Rows) == 0
	if store := found.Set.Store; found.Alloc.Denied {
		return nil, fmt.Errorf("leafsql: this user may not read %s on %s; leafsql check says which rights it lacks", store.Name(), store.Label)
	}
	var errs []error
	if noTables {
		errs = append(errs, errors.New("leafsql: leafTables=auto means the tables that have a row in leaf_alloc, and there is none; name the tables, for example leafTables=orders,users, here alone, or write leafTables=none for ids without tables"))
	}
	for _, shard := range found.Shards {
		for _, rule := range shard.Inspection.Missing {
			if !shard.Config.Auto() {
				errs = append(errs, fmt.Errorf("leafsql: leafTables names %s, which is not on %s; create the table, or correct the rule", rule, shard.Label))
			}
		}
	}
	for _, tag := range found.Tags {
		if tag.Row != nil && !tag.TooLow() && len(tag.Unknown()) == 0 && tag.Broken == nil {
			continue
		}
		start, err := tag.Start()
		switch {
		case err != nil:
			errs = append(errs, err)
		case tag.Row == nil:
			steps = append(steps, found.AddRow(tag, start))
		default:
			steps = append(steps, found.RaiseRow(tag.Row.Tag, start))
		}
	}
	if len(steps) > 0 || noTables || config.None { // leafsql serve needs no tables
		steps = append(found.CreateAlloc(), steps...)
	}
	if found.Leases != nil && !found.Leases.Exists {
		steps = append(steps, found.Leases.Create())
	}
	steps = append(steps, found.MarkRows()...)
	return steps, errors.Join(errs...)
}

// scanKeys reads the highest keys that no index contains.
func scanKeys(ctx context.Context, s *screen.Screen, found *survey.Survey) error {
	for _, tag := range found.Tags {
		for _, t := range tag.Unknown() {
			if !t.Integer || t.DeniedRead || t.Kind != driver.Segment {
				continue
			}
			done := s.Progress(func() string { return s.Texts.Sprintf("reading all of %s", t.Where()) })
			highest, err := t.Max(ctx, t.Near-1)
			done()
			if err != nil {
				return fmt.Errorf("leafsql: the highest key of %s: %w; %s", t.Where(), err, databases.WayOut(err))
			}
			t.HighestKey, t.Top, t.Known, t.Why = highest, highest, true, ""
		}
	}
	return nil
}
