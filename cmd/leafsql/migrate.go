package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/leafsql/leafsql/cmd/leafsql/internal/databases"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/migrate"
	"github.com/leafsql/leafsql/cmd/leafsql/internal/screen"
)

func runMigrate(ctx context.Context, s *screen.Screen, args []string) (int, error) {
	f := newFlags(s, "migrate").withShards().withJSON()
	do := f.String("do", "", "run this `step`, which has to be the next one: widen, switch, drop, unguard")
	back := f.Bool("back", false, "undo the last step, as long as the trigger exists")
	keep := f.Bool("keep-type", false, "leave the key's type as it is")
	ignore := f.Bool("ignore-programs", false, "continue although triggers, routines or events write the tables, or some of them are not visible")
	if err := f.parse(args, true); err != nil {
		return exitFailure, err
	}
	step := migrate.Step(*do)
	switch {
	case f.NArg() == 0:
		return exitFailure, errors.New("leafsql: migrate: no table is named; for the steps of a table orders run leafsql migrate -dsn DSN orders")
	case *back && *do != "":
		return exitFailure, errors.New("leafsql: migrate: both -do and -back are set; set one of them")
	case *do != "" && !slices.Contains(migrate.Steps, step):
		return exitFailure, fmt.Errorf("leafsql: migrate: unknown step %q; the steps are widen, switch, drop and unguard, and the command without -do shows the next one", *do)
	}
	set, err := databases.Open(ctx, f.dsn, f.shards)
	if err != nil {
		return exitFailure, err
	}
	defer set.Close()
	m := &migrate.Migration{Set: set, Tables: f.Args(), KeepType: *keep, IgnorePrograms: *ignore, Texts: s.Texts}
	if err := m.Configure(); err != nil {
		return exitFailure, err
	}
	tags, err := m.ReadTags(ctx)
	if err != nil {
		return exitFailure, err
	}
	plan := &plan{s, f.json, make(map[string]bool)}
	for _, tag := range tags {
		plan.guarded[tag.Name] = tag.IsGuarded()
	}
	switch {
	case *back:
		err = undoSteps(ctx, m, tags, plan)
		status, printed := plan.print(tags)
		if err == nil {
			status = exitOK // the requested step is done
		}
		return status, errors.Join(err, printed)
	case slices.ContainsFunc(tags, func(t *migrate.Tag) bool { return t.IsBlocked(step) }):
		return plan.refuse(tags, step)
	}
	for _, tag := range tags {
		err = errors.Join(err, tag.Err()) // all of them, to be fixed together
	}
	if err != nil {
		return exitFailure, err
	}
	if *do == "" {
		return plan.print(tags)
	}
	for i, tag := range tags {
		if tag.IsDone(step) {
			continue
		}
		if tags[i], err = plan.runStep(tag, func() (*migrate.Tag, error) { return m.RunStep(ctx, tag, step, plan.printStatement) }); err != nil {
			return exitFailure, err
		}
	}
	_, err = plan.print(tags)
	return exitOK, err
}

// undoSteps undoes the last step of each tag. After an error it continues with the other tags.
func undoSteps(ctx context.Context, m *migrate.Migration, tags []*migrate.Tag, plan *plan) error {
	var errs error
	for i, tag := range tags {
		after, err := plan.runStep(tag, func() (*migrate.Tag, error) { return m.Undo(ctx, tag, plan.printStatement) })
		if err == nil {
			tags[i] = after
		}
		errs = errors.Join(errs, err)
	}
	return errs
}
