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
	f := newFlags(s, "init").withShards().withJSON()
	dry := f.Bool("dry-run", false, "print the SQL and the changes of the registry of worker ids without executing them")
	fresh := f.Bool("new-registry", false, "declare that the registry of worker ids is new and that no process uses it; refused if it has any worker id")
	from := f.String("from-stores", "", "the `DSNs` A|B|C of leafStore before version 0.2: make one store, that of -dsn, of them; all writers have to be stopped")
	scan := f.Bool("scan", false, "read whole tables if no index has the highest key")
	if err := f.parse(args, false); err != nil {
		return exitFailure, err
	}
	executed := []change{}
	if *from != "" {
		steps, err := convertStores(ctx, f, *from, *dry)
		for _, step := range steps {
			executed = append(executed, change{step.Server.Label, step.SQL})
			if !f.json {
				printSQLOn(s, 0, step.Server.Label, step.SQL)
			}
		}
		switch {
		case err != nil:
			return exitFailure, err
		case *dry && f.json:
			return exitProblems, s.JSON(executed)
		case *dry:
			return exitProblems, nil
		}
	}
	found, err := f.takeSurvey(ctx)
	if err != nil {
		return exitFailure, err
	}
	defer found.Set.Close()
	if *scan {
		if err := scanKeys(ctx, s, found); err != nil {
			return exitFailure, err
		}
	}
	steps, err := planChanges(found)
	for _, step := range steps {
		if !f.json {
			s.PrintSQL(0, step.SQL+";")
		}
		if !*dry {
			if runErr := step.Run(ctx); runErr != nil {
				err = fmt.Errorf("leafsql: init on %s: %s; %s; nothing after this statement was run; run init again",
					step.Server.Label, errprefix.Trim(runErr), databases.Hint(runErr))
				break
			}
		}
		executed = append(executed, change{step.Server.Label, step.SQL})
	}
	if err == nil {
		var summary string
		summary, err = prepareRegistry(ctx, s, found, *fresh, *dry, func(line string) {
			if !f.json {
				s.Printf("%s\n", line)
			}
		})
		if summary != "" {
			executed = append(executed, change{found.Set.Store.Label, summary})
		}
	}
	if f.json {
		if jsonErr := s.JSON(executed); jsonErr != nil {
			return exitFailure, jsonErr
		}
	}
	switch {
	case errors.Is(err, errInUse):
		s.PrintErr(err)
		return exitProblems, nil
	case err != nil:
		return exitFailure, err
	case *dry && len(executed) > 0:
		return exitProblems, nil
	case !f.json && len(executed) == 0:
		s.Printf("leaf_alloc has a row above all keys for each of %d tags; nothing to do.\n", len(found.Tags))
		return exitOK, nil
	case f.json || len(steps) == 0:
		return exitOK, nil
	}
	s.Printf("Done. Processes that were running may hold ranges from before; restart them if a row was raised.\n")
	for _, tag := range found.Tags {
		switch name := screen.ReplaceControl(tag.Name); {
		case !tag.HasAutoIncrement():
		case tag.CanMigrate():
			s.Printf("%s still has AUTO_INCREMENT: writers with and without mysql-leaf must not write it at the same time; migrate it with leafsql migrate.\n", name)
		default:
			s.Printf("%s still has AUTO_INCREMENT: writers with and without mysql-leaf must not write it at the same time.\n", name)
		}
	}
	return exitOK, nil
}

// A change is a change that init makes, or would make without -dry-run.
type change struct {
	Server string `json:"server"`
	SQL    string `json:"sql"` // a comment if it changes a registry of worker ids
}

// planChanges returns the changes after which each tag has a row with a next id above all keys, each row has a mark (the
// server on which its ids were last fetched), and the table of worker ids exists. An error names the tables for which
// this is not possible; steps then contains the changes for the other tables.
func planChanges(found *survey.Survey) (steps []survey.Change, err error) {
	config := found.Shards[0].Config
	noTables := config.Auto() && len(found.Rows) == 0
	if store := found.Set.Store; found.Alloc.Denied {
		return nil, fmt.Errorf("leafsql: this user has no right to read %s on %s; leafsql check lists the missing rights", store.QuotedName(), store.Label)
	}
	var errs []error
	if noTables {
		errs = append(errs, errors.New("leafsql: leafTables=auto means the tables that have a row in leaf_alloc, and leaf_alloc has no rows; name the tables for this run, for example leafTables=orders,users, or write leafTables=none for ids without tables"))
	}
	for _, shard := range found.Shards {
		for _, rule := range shard.Inspection.Missing {
			if !shard.Config.Auto() {
				errs = append(errs, fmt.Errorf("leafsql: leafTables names %s, which does not exist on %s; create the table, correct the rule, or create only leaf_alloc and the records of worker ids with leafTables=none", rule, shard.Label))
			}
		}
	}
	for _, tag := range found.Tags {
		if tag.Row != nil && !tag.IsRowTooLow() && len(tag.UnknownTables()) == 0 && tag.Broken == nil {
			continue
		}
		start, err := tag.StartID()
		switch {
		case err != nil:
			errs = append(errs, err)
		case tag.Row == nil:
			steps = append(steps, found.AddRow(tag, start))
		default:
			steps = append(steps, found.RaiseRow(tag.Row.Tag, start))
		}
	}
	if len(steps) > 0 || noTables || config.None { // with leafTables=none there need be no tables, as for leafsql serve
		steps = append(found.CreateAlloc(), steps...)
	}
	if found.Leases != nil && !found.Leases.Exists {
		steps = append(steps, found.Leases.Create())
	}
	steps = append(steps, found.MarkRows()...)
	return steps, errors.Join(errs...)
}

// scanKeys reads the highest keys of tables without an index that begins with the key.
func scanKeys(ctx context.Context, s *screen.Screen, found *survey.Survey) error {
	for _, tag := range found.Tags {
		for _, t := range tag.UnknownTables() {
			if !t.Integer || t.DeniedRead || t.Kind != driver.Segment {
				continue
			}
			done := s.Progress(func() string { return s.Texts.Sprintf("reading all of %s", t.Location()) })
			highest, err := t.ReadMax(ctx, t.CounterLimit-1)
			done()
			if err != nil {
				return fmt.Errorf("leafsql: the highest key of %s: %w; %s", t.Location(), err, databases.Hint(err))
			}
			t.HighestKey, t.Top, t.IsKeyKnown, t.UnknownReason = highest, highest, true, ""
		}
	}
	return nil
}
